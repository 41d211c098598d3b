import pytest
import torch

from fedre_audit.data import ImageData
from fedre_audit.data.cache import cached


@pytest.fixture
def data():
    images = torch.arange(48, dtype=torch.uint8).reshape(2, 1, 4, 6)
    return ImageData("x", images, torch.tensor([1, 0]), ("a", "b"), torch.zeros(2, dtype=torch.int8))


def no_build():
    raise AssertionError("read from the cache, not built")


def test_second_time_reads_what_the_first_built(tmp_path, data):
    cached("key", tmp_path / "new", lambda: data)
    again = cached("key", tmp_path / "new", no_build)
    assert again.content_hash == data.content_hash
    assert (again.name, again.classes) == ("x", ("a", "b"))
    assert [path.suffix for path in (tmp_path / "new").iterdir()] == [".safetensors"]


def test_damaged_file_is_built_anew(tmp_path, data):
    cached("key", tmp_path, lambda: data)
    (path,) = tmp_path.iterdir()
    good = path.read_bytes()
    flipped = good[:-1] + bytes([good[-1] ^ 1])
    for bad in (b"", good[:20], good[:-5], flipped):
        path.write_bytes(bad)
        assert cached("key", tmp_path, lambda: data).content_hash == data.content_hash
        assert cached("key", tmp_path, no_build).content_hash == data.content_hash


def test_unwritable_cache_is_done_without(tmp_path, data):
    (tmp_path / "file").write_bytes(b"in the way")
    assert cached("key", tmp_path / "file" / "cache", lambda: data) is data
    assert cached("key", tmp_path / "file", lambda: data) is data

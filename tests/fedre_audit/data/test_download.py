"""Downloads from a server on the loopback: checked, whole or absent, and explained where they fail."""

import gzip
import hashlib
import http.server
import struct
import threading
from dataclasses import replace

import numpy as np
import pytest

from fedre_audit.data import cifar10, cifar100, fashionmnist, load_dataset, tinyimagenet
from fedre_audit.data.download import Source, fetch
from knowledge_forms.errors import AuditError


@pytest.fixture
def served(tmp_path):
    """A folder of files, and its address."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, *arguments):
            """Say nothing."""

        def end_headers(self):
            if self.path.endswith("short"):
                self.send_header("Content-Length", "9999")
            super().end_headers()

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def moved(source: Source, address: str, data: bytes) -> Source:
    return replace(source, url=f"{address}/{source.name}", md5=hashlib.md5(data).hexdigest())


def test_checksum_decides_and_nothing_partial_stays(served, tmp_path):
    folder, address = served
    (folder / "a.bin").write_bytes(b"x" * 3_000_000)
    wrong, right = Source(f"{address}/a.bin", "0" * 32), moved(Source("/a.bin", ""), address, b"x" * 3_000_000)
    root = tmp_path / "root"
    with pytest.raises(AuditError, match=rf"{address}/a.bin arrived with MD5 .* put it at {root}/a.bin"):
        fetch(wrong, root)
    assert list(root.iterdir()) == []
    seen = []
    path = fetch(right, root, progress=lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == b"x" * 3_000_000
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert list(root.iterdir()) == [path]
    (folder / "a.bin").unlink()
    assert fetch(right, root) == path


@pytest.mark.parametrize("address", ["missing", "closed", "short"])
def test_a_failed_download_names_the_address_and_the_place(served, tmp_path, address):
    folder, server = served
    (folder / "short").write_bytes(b"cut off")
    url = {"missing": f"{server}/none", "closed": "http://127.0.0.1:9/none", "short": f"{server}/short"}[address]
    root = tmp_path / "root"
    with pytest.raises(AuditError, match=rf"{url} .* put it at {root}/{url.rpartition('/')[2]}"):
        fetch(Source(url, "0" * 32), root)
    assert list(root.iterdir()) == []


def test_a_root_that_cannot_be_written_is_explained(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(AuditError, match=r"could not be fetched \(.*put it at"):
        fetch(Source("http://127.0.0.1:9/a", "0" * 32), tmp_path / "file")


def records(labels, label_bytes):
    pixels = np.random.RandomState(0).randint(0, 256, (len(labels), 3072), dtype=np.uint8)
    return b"".join(bytes([7] * (label_bytes - 1) + [label]) + row.tobytes() for label, row in zip(labels, pixels))  # noqa: B905


def test_cifar100_from_its_official_address(served, pack, tmp_path, monkeypatch):
    folder, address = served
    names = "\n".join(f"class{i:02}" for i in range(100)).encode()
    files = {"c/train.bin": records((3, 99), 2), "c/test.bin": records((0,), 2), "c/fine_label_names.txt": names}
    archive = pack("cifar-100-binary.tar.gz", {**files, "c/coarse_label_names.txt": b"wrong"})
    archive.rename(folder / archive.name)
    data = (folder / archive.name).read_bytes()
    monkeypatch.setattr(cifar100, "OFFICIAL", moved(cifar100.OFFICIAL, address, data))
    root = tmp_path / "root"
    with pytest.raises(AuditError, match=r"no CIFAR-100 under .*fetch http"):
        load_dataset("cifar100", root=root)
    found = load_dataset("cifar100", root=root, download=True)
    assert found.labels.tolist() == [3, 99, 0]
    assert found.official_split.tolist() == [0, 0, 1]
    assert (found.shape, found.classes[99], len(found.classes)) == ((3, 32, 32), "class99", 100)
    assert (root / "cifar-100-binary.tar.gz").read_bytes() == data
    assert load_dataset("cifar100", root=root).content_hash == found.content_hash


def test_cifar100_refusals(pack, png, tmp_path):
    pack("cifar-100-python.tar.gz", {"x/train": b"never read"})
    with pytest.raises(AuditError, match=r"is pickled.*cifar-100-binary"):
        load_dataset("cifar100", root=tmp_path)
    archive = pack("cifar-100-binary.tar.gz", {"c/train.bin": records((3,), 2)})
    with pytest.raises(AuditError, match="with their class names"):
        load_dataset("cifar100", root=tmp_path)
    archive.unlink()
    pack("cifar100-images", {"train/cat/1.png": png(1), "train/cow/2.png": png(2)})
    with pytest.raises(AuditError, match="2 class folders, CIFAR-100 has 100"):
        load_dataset("cifar100", root=tmp_path)


def idx(values):
    return struct.pack(f">{values.ndim + 1}I", 0x800 + values.ndim, *values.shape) + values.tobytes()


@pytest.fixture
def clothes():
    images = np.random.RandomState(0).randint(0, 256, (5, 28, 28), dtype=np.uint8)
    labels = np.array([9, 0, 3, 1, 2], np.uint8)
    parts = (images[:3], labels[:3], images[3:], labels[3:])
    return images, labels, {s.name: gzip.compress(idx(p)) for s, p in zip(fashionmnist.OFFICIAL, parts, strict=True)}


def test_fashionmnist_goes_on_where_a_download_was_cut(served, clothes, tmp_path, monkeypatch):
    folder, address = served
    images, labels, files = clothes
    sources = tuple(moved(source, address, files[source.name]) for source in fashionmnist.OFFICIAL)
    monkeypatch.setattr(fashionmnist, "OFFICIAL", sources)
    last = sources[-1].name
    for name, data in files.items():
        if name != last:
            (folder / name).write_bytes(data)
    with pytest.raises(AuditError, match=f"fashion-mnist/{last}"):
        load_dataset("fashionmnist", root=tmp_path / "root", download=True)
    (folder / last).write_bytes(files[last])
    found = load_dataset("fashionmnist", root=tmp_path / "root", download=True)
    np.testing.assert_array_equal(found.images.numpy()[:, 0], images)
    assert found.labels.tolist() == labels.tolist()
    assert found.official_split.tolist() == [0, 0, 0, 1, 1]
    assert found.shape == (1, 28, 28)


def test_fashionmnist_unpacked_in_torchvisions_place_and_damaged(clothes, tmp_path):
    folder = tmp_path / "FashionMNIST" / "raw"
    folder.mkdir(parents=True)
    for name, data in clothes[2].items():
        (folder / name.removesuffix(".gz")).write_bytes(gzip.decompress(data))
    assert len(load_dataset("fashionmnist", root=tmp_path)) == 5
    images = folder / "train-images-idx3-ubyte"
    images.write_bytes(images.read_bytes()[:-1])
    with pytest.raises(AuditError, match="truncated or no idx file"):
        load_dataset("fashionmnist", root=tmp_path)
    (folder / "train-images-idx3-ubyte.gz").write_bytes(clothes[2]["train-images-idx3-ubyte.gz"][:-9])
    images.unlink()
    with pytest.raises(AuditError, match="truncated or no idx file"):
        load_dataset("fashionmnist", root=tmp_path)


def test_every_official_file_is_among_the_names_looked_for():
    for module in (cifar10, cifar100):
        assert module.OFFICIAL.name in module.BINARY
    assert tinyimagenet.OFFICIAL.name in tinyimagenet.NAMES

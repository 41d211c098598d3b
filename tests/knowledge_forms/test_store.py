"""Upload files: whole or refused."""

import json

import numpy as np
import pytest

from knowledge_forms.errors import AuditError
from knowledge_forms.header import read_arrays, read_blocks, read_header
from knowledge_forms.store import read_entries, read_folder, write_entries, write_tensors

ENTRIES = {(3, 7): {"representation": np.ones((2, 4), np.float32)}, (0, 7): {"x": np.arange(3)}}


def test_round_trip(tmp_path):
    write_entries(tmp_path / "a" / "r.safetensors", ENTRIES, {"form": "raw", "classes": 10})
    entries, metadata = read_entries(tmp_path / "a" / "r.safetensors")
    assert metadata == {"schema_version": 1, "form": "raw", "classes": 10}
    assert entries.keys() == ENTRIES.keys()
    np.testing.assert_array_equal(entries[3, 7]["representation"], ENTRIES[3, 7]["representation"])
    assert [path.name for path, _, _ in read_folder(tmp_path)] == ["r.safetensors"]
    assert not list(tmp_path.rglob("*.part"))


def test_missing_truncated_foreign_and_newer_files_are_named(tmp_path):
    path = tmp_path / "r.safetensors"
    with pytest.raises(AuditError, match="does not exist"):
        read_entries(path)
    write_entries(path, ENTRIES, {})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(AuditError, match="not a readable safetensors"):
        read_entries(path)
    path.write_bytes(b"PK\x03\x04 not ours")
    with pytest.raises(AuditError, match="not a readable safetensors"):
        read_entries(path)
    write_tensors(path, {"0/0/x": np.zeros(1)}, {"schema_version": 99})
    with pytest.raises(AuditError, match="schema version 99"):
        read_entries(path)
    write_tensors(path, {"x": np.zeros(1)}, {})
    with pytest.raises(AuditError, match="client/round/name"):
        read_entries(path)
    with pytest.raises(AuditError, match=r"holds no \.safetensors"):
        list(read_folder(tmp_path / "nothing"))


def test_unwritable_place_is_one_sentence(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises((AuditError, NotADirectoryError, FileExistsError)):
        write_entries(blocker / "r.safetensors", ENTRIES, {})


@pytest.mark.parametrize("shape", [[2**62, 0], [0, 2**62], [2**40, 0, 2**40]], ids=str)
def test_an_array_without_bytes_cannot_claim_a_size_that_no_array_has(tmp_path, shape):
    header = json.dumps({"0/0/representation": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
    path = tmp_path / "round-000000.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(AuditError, match="a shape that no array can have"):
        read_header(path)


@pytest.mark.parametrize("shape", [[2**50, 0], [0, 7]], ids=str)
def test_an_empty_array_costs_nothing(tmp_path, shape):
    header = json.dumps({"x": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    assert list(read_blocks(read_header(path), "x")) == []
    assert read_arrays(read_header(path))["x"].size == 0

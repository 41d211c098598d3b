"""Upload files: whole or refused."""

import numpy as np
import pytest

from knowledge_forms.errors import AuditError
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

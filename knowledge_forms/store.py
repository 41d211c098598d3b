"""Uploads and truth on disk: safetensors files of (client, round) entries. NumPy alone reads and writes them.

One file holds any set of entries under keys `client/round/name`; its JSON metadata says what they are.
A file appears whole or not at all (written beside its place, then moved). No pickle is ever read.
"""

import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from knowledge_forms.errors import AuditError
from knowledge_forms.header import HEADER_KEY, OWN, UPLOAD, Limits, read_arrays, read_header

SCHEMA_VERSION = 1
KEY = re.compile(r"([0-9]{1,9})/([0-9]{1,9})/([A-Za-z0-9_][A-Za-z0-9_.-]{0,63})")
Entries = dict[tuple[int, int], dict[str, NDArray[Any]]]


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file so that it appears whole or not at all, and survives a power cut once this returns."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        _discard(temporary)
        raise AuditError(f"cannot write {path} ({error.strerror}); free space or choose another --out") from error


def _sync_folder(folder: Path) -> None:
    """Make a new name in a folder last; systems without it (Windows) are done without."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _discard(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return


def write_tensors(path: Path, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
    """Named arrays plus JSON metadata to one safetensors file, atomically."""
    # One key: safetensors writes several in random order, and equal runs must give equal bytes.
    header = {HEADER_KEY: json.dumps({"schema_version": SCHEMA_VERSION, **metadata})}
    write_bytes(path, save({key: np.ascontiguousarray(value) for key, value in tensors.items()}, header))


def read_tensors(path: Path, limits: Limits = OWN) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Named arrays and metadata of one file; AuditError on a missing, truncated, foreign or hostile file."""
    header = read_header(path, limits)
    version = header.metadata.get("schema_version")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise AuditError(
            f"{path} has schema version {str(version)[:20]}, this program reads {SCHEMA_VERSION}; "
            "record it again with this version"
        )
    return read_arrays(header), header.metadata


def parse_key(key: str) -> tuple[int, int, str] | None:
    """(client, round, name) of an array's key; None where it is not client/round/name.

    >>> parse_key("00003/000007/representation"), parse_key("../7/x")
    ((3, 7, 'representation'), None)
    """
    match = KEY.fullmatch(key)
    return (int(match[1]), int(match[2]), match[3]) if match else None


def write_entries(path: Path, entries: Entries, metadata: Mapping[str, Any]) -> None:
    """(client, round) entries to one file; AuditError where an id or a name could not be read back."""
    flat = {
        f"{client:05d}/{round_:06d}/{name}": value
        for (client, round_), named in entries.items()
        for name, value in named.items()
    }
    for key in flat:
        if parse_key(key) is None:
            raise AuditError(f"'{key[:80]}' is no client/round/name: ids are whole numbers of at most nine digits")
    write_tensors(path, flat, metadata)


def read_entries(path: Path) -> tuple[Entries, dict[str, Any]]:
    """The (client, round) entries of one file and its metadata."""
    tensors, metadata = read_tensors(path, UPLOAD)
    entries: Entries = {}
    for key, value in tensors.items():
        parsed = parse_key(key)
        if parsed is None:
            raise AuditError(f"{path}: key {key[:80]!r} is not client/round/name; record the upload again")
        named = entries.setdefault(parsed[:2], {})
        if parsed[2] in named:
            raise AuditError(f"{path}: {key[:80]!r} comes twice, written differently; record the upload again")
        named[parsed[2]] = value
    return entries, metadata


def read_folder(folder: Path) -> Iterator[tuple[Path, Entries, dict[str, Any]]]:
    """Every entry file below a folder, in name order; raises AuditError where there is none."""
    paths = sorted(folder.rglob("*.safetensors"))
    if not paths:
        raise AuditError(f"{folder} holds no .safetensors file; check the path or record uploads first")
    for path in paths:
        entries, metadata = read_entries(path)
        yield path, entries, metadata

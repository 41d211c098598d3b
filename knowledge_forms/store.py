"""Uploads and truth on disk: safetensors files of (client, round) entries. NumPy alone reads and writes them.

One file holds any set of entries under keys `client/round/name`; its JSON metadata says what they are.
A file appears whole or not at all (written beside its place, then moved). No pickle is ever read.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from knowledge_forms.errors import AuditError

SCHEMA_VERSION = 1
HEADER = "fedre_audit"
Entries = dict[tuple[int, int], dict[str, NDArray[Any]]]


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file so that it appears whole or not at all, and survives a power cut once it appears."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise AuditError(f"cannot write {path} ({error.strerror}); free space or choose another --out") from error


def write_tensors(path: Path, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
    """Named arrays plus JSON metadata to one safetensors file, atomically."""
    # One key: safetensors writes several in random order, and equal runs must give equal bytes.
    header = {HEADER: json.dumps({"schema_version": SCHEMA_VERSION, **metadata})}
    write_bytes(path, save({key: np.ascontiguousarray(value) for key, value in tensors.items()}, header))


def read_tensors(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Named arrays and metadata of one file; raises AuditError on a missing, truncated or foreign file."""
    if not path.is_file():
        raise AuditError(f"{path} does not exist; check the path or record the run again")
    try:
        with safe_open(str(path), framework="np") as stream:
            metadata = json.loads((stream.metadata() or {}).get(HEADER, "{}"))
            tensors = {key: stream.get_tensor(key) for key in stream.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, ValueError, OSError, TypeError) as error:
        raise AuditError(f"{path} is not a readable safetensors file ({error}); record the upload again") from error
    if not isinstance(metadata, dict):
        raise AuditError(f"{path} has metadata that is no JSON object; record the upload again")
    if metadata.get("schema_version") != SCHEMA_VERSION:
        raise AuditError(
            f"{path} has schema version {metadata.get('schema_version')!r}, this program reads {SCHEMA_VERSION}; "
            "record it again with this version"
        )
    return tensors, metadata


def write_entries(path: Path, entries: Entries, metadata: Mapping[str, Any]) -> None:
    """(client, round) entries to one file."""
    flat = {
        f"{client:05d}/{round_:06d}/{name}": value
        for (client, round_), named in entries.items()
        for name, value in named.items()
    }
    write_tensors(path, flat, metadata)


def read_entries(path: Path) -> tuple[Entries, dict[str, Any]]:
    """The (client, round) entries of one file and its metadata."""
    tensors, metadata = read_tensors(path)
    entries: Entries = {}
    for key, value in tensors.items():
        client, _, rest = key.partition("/")
        round_, _, name = rest.partition("/")
        if not (client.isdigit() and round_.isdigit() and name):
            raise AuditError(f"{path}: key '{key}' is not client/round/name; record the upload again")
        entries.setdefault((int(client), int(round_)), {})[name] = value
    return entries, metadata


def read_folder(folder: Path) -> Iterator[tuple[Path, Entries, dict[str, Any]]]:
    """Every entry file below a folder, in name order; raises AuditError where there is none."""
    paths = sorted(folder.rglob("*.safetensors"))
    if not paths:
        raise AuditError(f"{folder} holds no .safetensors file; check the path or record uploads first")
    for path in paths:
        entries, metadata = read_entries(path)
        yield path, entries, metadata

"""The header of a safetensors file, refused before any memory is taken for what it promises.

Layout: 8 bytes little-endian header length, a JSON header, the data. Everything the header claims is compared with
the size of the file first, so a hostile one costs no more than its own bytes.
Source: the safetensors format, https://github.com/huggingface/safetensors (its limits here are tighter).
"""

import json
import math
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowledge_forms.errors import AuditError

HEADER_KEY = "fedre_audit"
MAX_DIMENSIONS = 8
DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
    "I8": "|i1", "U8": "|u1", "BOOL": "|u1",
}  # fmt: skip
FLOATS = ("F64", "F32", "F16", "BF16")
INTEGERS = ("I64", "I32", "I16", "I8", "U8")


class Limits(NamedTuple):
    """Bytes of a file and of its header."""

    file: int
    header: int


OWN = Limits(2**63, 2**26)
UPLOAD = Limits(2**32, 2**21)
"""For files that others made; some 9,000 (client, round) entries fit into one."""
BYTES_PER_BRACKET = 16
"""The shortest description of an array takes 19. Denser ones are hostile: empty lists cost 25 times their text."""


@dataclass(frozen=True)
class Slot:
    """Where one array lies: dtype (a key of DTYPES), shape, and its bytes `begin`..`end` from the file's start."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Header:
    """metadata: the JSON object under the key `fedre_audit` ({} where there is none). slots: arrays by name."""

    path: Path
    metadata: dict[str, Any]
    slots: dict[str, Slot]


def read_header(path: Path, limits: Limits = OWN) -> Header:
    """Header of one file, checked against the file's size; AuditError on anything that is not as the format says."""
    try:
        # Opening a pipe would wait for its writer, so it is opened without waiting and refused.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise AuditError(f"{path} is not a regular file; remove it from the folder")
            if status.st_size > limits.file:
                raise AuditError(f"{path} has {status.st_size} bytes, at most {limits.file} are read; split it")
            return _parse(path, stream, status.st_size, limits.header)
    except FileNotFoundError:
        raise AuditError(f"{path} does not exist; check the path or record the run again") from None
    except OSError as error:
        raise AuditError(f"{path} cannot be read ({error.strerror}); check the path and its permissions") from error


def read_arrays(header: Header) -> dict[str, NDArray[Any]]:
    """All arrays of a file by name; BF16 comes as float32, BOOL as bool."""
    with header.path.open("rb") as stream:
        return {name: _read(header.path, stream, slot, slot.shape) for name, slot in header.slots.items()}


def read_blocks(header: Header, name: str, scalars: int = 2**18) -> Iterator[NDArray[Any]]:
    """One array of at least one dimension in runs of whole rows, about `scalars` numbers each; none if empty."""
    slot = header.slots[name]
    width = math.prod(slot.shape[1:])
    if width == 0:  # any number of rows costs no byte
        return
    step = max(1, scalars // width)
    with header.path.open("rb") as stream:
        for start in range(0, slot.shape[0], step):
            rows = min(step, slot.shape[0] - start)
            size = np.dtype(DTYPES[slot.dtype]).itemsize * width
            part = Slot(slot.dtype, slot.shape, slot.begin + start * size, slot.begin + (start + rows) * size)
            yield _read(header.path, stream, part, (rows, *slot.shape[1:]))


def _read(path: Path, stream: BinaryIO, slot: Slot, shape: tuple[int, ...]) -> NDArray[Any]:
    stream.seek(slot.begin)
    dtype = np.dtype(DTYPES[slot.dtype])
    flat = np.fromfile(stream, dtype, (slot.end - slot.begin) // dtype.itemsize)
    if flat.nbytes != slot.end - slot.begin:
        raise AuditError(f"{path} became shorter while it was read; record the upload again")
    if slot.dtype == "BF16":
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
    elif slot.dtype == "BOOL":
        flat = flat != 0
    return flat.reshape(shape)


def _parse(path: Path, stream: BinaryIO, size: int, most: int) -> Header:
    def refuse(what: str) -> AuditError:
        return AuditError(f"{path} is not a readable safetensors file ({what}); record the upload again")

    length = int.from_bytes(stream.read(8), "little")
    if size < 8 or length > size - 8:
        raise refuse(f"{size} bytes are too few for the header it announces: truncated or foreign")
    if length > most:
        raise refuse(f"a header of {length} bytes, at most {most} are read")
    text = stream.read(length)
    if text.count(b"[") + text.count(b"{") > 64 + length // BYTES_PER_BRACKET:
        raise refuse("its header is nested too densely to describe arrays")
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_unique)
        described = header.pop("__metadata__", {}) if isinstance(header, dict) else None
        own = described.get(HEADER_KEY, "{}") if isinstance(described, dict) else None
        metadata = json.loads(own, object_pairs_hook=_unique) if isinstance(own, str) else None
    except RecursionError:
        raise refuse("its header is nested too deep") from None
    except ValueError as error:
        # JSON errors, bad UTF-8 and repeated keys; the text may hold pieces of the file, so it is cut.
        raise refuse(f"its header is not JSON: {str(error)[:80]!r}") from None
    if not isinstance(header, dict) or not isinstance(metadata, dict):
        raise refuse("its header or metadata is no JSON object")
    slots: dict[str, Slot] = {}
    for name, claim in header.items():
        slot = _slot(claim, 8 + length)
        if isinstance(slot, str):
            raise refuse(f"array {name[:80]!r}: {slot}")
        slots[name] = slot
    at = 8 + length
    for slot in sorted(slots.values(), key=lambda slot: (slot.begin, slot.end)):
        if slot.begin != at:
            raise refuse("its arrays overlap or leave holes")
        at = slot.end
    if at != size:
        raise refuse(f"its arrays end at byte {at}, the file at {size}")
    return Header(path, metadata, slots)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key comes twice")
    return made


def _whole(values: Any, most: int) -> bool:
    return isinstance(values, list) and len(values) <= most and all(type(v) is int and 0 <= v < 2**63 for v in values)


def _slot(claim: Any, start: int) -> Slot | str:
    """A slot, or what is wrong with the claim."""
    if not isinstance(claim, dict) or set(claim) != {"dtype", "shape", "data_offsets"}:
        return "not described by dtype, shape and data_offsets"
    dtype, shape, offsets = claim["dtype"], claim["shape"], claim["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        return f"dtype {str(dtype)[:20]!r}, must be one of {', '.join(DTYPES)}"
    if not _whole(shape, MAX_DIMENSIONS):
        return f"a shape that is not at most {MAX_DIMENSIONS} whole numbers"
    if not _whole(offsets, 2) or len(offsets) != 2:
        return "data_offsets that are not two whole numbers"
    itemsize = np.dtype(DTYPES[dtype]).itemsize
    if math.prod(max(side, 1) for side in shape) * itemsize >= 2**63:  # one side may be 0, and the file small
        return "a shape that no array can have"
    size = math.prod(shape) * itemsize
    if offsets[1] - offsets[0] != size:
        return f"a shape of {size} bytes in a place of {offsets[1] - offsets[0]}"
    return Slot(dtype, tuple(shape), start + offsets[0], start + offsets[1])

"""Spoiled upload files: every one is refused or read, quickly, in little memory, and nothing in them runs."""

import json
import os
import pickle
import random
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fedre_audit.figures import FIGURES, Figure
from knowledge_forms.check import check
from knowledge_forms.errors import AuditError
from knowledge_forms.store import read_entries, write_entries

Spoil = Callable[[random.Random, bytes], bytes]
GIANT = (2**31, 2**63 - 1, 2**63, 2**64, 10**30, -1)
KEYS = (
    "../../etc/passwd",
    "/0/0/x",
    "0/0/../x",
    "²/0/x",
    "0/0/\0",
    "1/0/x",
    "01/0/x",
    "9" * 400 + "/0/x",
    "",
    "__metadata__",
)


def seed_file(folder: Path) -> bytes:
    """A valid file of three prototype uploads."""
    rng = np.random.default_rng(0)
    entries = {
        (client, 0): {
            "representation": rng.random((3, 8), np.float32),
            "label_encoding": np.eye(3, 5, dtype=np.float32),
        }
        for client in range(3)
    }
    meta = {"system": "fuzz", "form": "prototype", "mechanism": "", "feature_width": 8, "classes": 5}
    write_entries(folder / "seed.safetensors", entries, meta)
    return (folder / "seed.safetensors").read_bytes()


def flip(rng: random.Random, data: bytes) -> bytes:
    """One to twenty bits."""
    made = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 20])):
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    return bytes(made)


def cut(rng: random.Random, data: bytes) -> bytes:
    """A truncated file, or one with bytes too many, or with a piece missing."""
    at = rng.randrange(len(data))
    return rng.choice([data[:at], data + data[:at], data[:at] + data[at + rng.randint(1, 64) :]])


def with_header(rng: random.Random, data: bytes) -> bytes:
    """One claim of the header replaced: giant or negative numbers, other dtypes, odd keys, nested metadata."""
    length = int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8 : 8 + length])
    name = rng.choice([key for key in header if key != "__metadata__"])
    claim = header[name]
    number = rng.choice(GIANT)
    changes: list[Callable[[], Any]] = [
        lambda: claim.update(dtype=rng.choice(["F64", "F16", "BF16", "BOOL", "I64", "O", "", None, [], "F8_E4M3"])),
        lambda: claim.update(
            shape=rng.choice([[number], [number, number], [0], [], [1.5], [True, 8], [[3]], "3", None])
        ),
        lambda: claim.update(data_offsets=rng.choice([[0, number], [number, 0], [0], "x", [0, 96], [96, 0], None])),
        lambda: claim.update(extra=1),
        lambda: header.update({rng.choice(KEYS): header.pop(name)}),
        lambda: header.update({rng.choice(KEYS): claim}),
        lambda: header.update(
            __metadata__=rng.choice([[], {"fedre_audit": number}, {"fedre_audit": "[" * 100_000}, None])
        ),
        lambda: header.update({rng.choice(KEYS): empty(rng, number)}),
        lambda: header["__metadata__"].update(fedre_audit=spoiled_metadata(rng, header["__metadata__"]["fedre_audit"])),
    ]
    rng.choice(changes)()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def empty(rng: random.Random, number: Any) -> dict[str, Any]:
    """An array without bytes that claims as many rows or columns as it likes."""
    return {
        "dtype": "F32",
        "shape": rng.choice([[number, 0], [0, number], [number, 0, number]]),
        "data_offsets": [0, 0],
    }


def spoiled_metadata(rng: random.Random, text: str) -> str:
    """One value of our own metadata replaced."""
    metadata = json.loads(text)
    metadata[rng.choice(list(metadata))] = rng.choice([*GIANT, None, [], {}, True, 1.5, "x" * 10_000, "../../x", 0])
    return json.dumps(metadata)


def hostile(rng: random.Random, data: bytes) -> bytes:
    """Header lengths that lie, headers nested or filled to the limit, keys that come twice, foreign formats."""
    filled = [
        b"[" * 2**19,
        b'{"a":' * 2**18,
        b"[[]" + b",[]" * 690_000 + b"]",
        b"[0" + b",0" * 10**6 + b"]",
        b'["a"' + b',"b"' * 500_000 + b"]",
        b"9" * 10_000,
        b'{"a":1,"a":2}',
        b"\xff\xfe",
    ]
    header = rng.choice(filled)
    return rng.choice(
        [
            rng.choice([2**64 - 1, 2**63, 2**40, len(data), 0]).to_bytes(8, "little") + data[8:],
            len(header).to_bytes(8, "little") + header,
            rng.choice([b"", b"PK\x03\x04", b"\x80\x04\x95", b"\x93NUMPY", b"\x89HDF\r\n\x1a\n"])
            + data[: rng.randrange(64)],
            rng.randbytes(rng.randrange(512)),
        ]
    )


def values(rng: random.Random, data: bytes) -> bytes:
    """NaN, infinity or huge numbers in the arrays."""
    made = bytearray(data)
    start = 8 + int.from_bytes(data[:8], "little")
    for _ in range(rng.randint(1, 8)):
        at = start + 4 * rng.randrange((len(made) - start) // 4)
        made[at : at + 4] = np.float32(rng.choice([np.nan, np.inf, -np.inf, 3e38, -1.0, 0.5])).tobytes()
    return bytes(made)


SPOILS: tuple[Spoil, ...] = (flip, cut, with_header, hostile, values)


class Bomb:
    """Unpickling this makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.path, "w")


def tricks(folder: Path) -> list[Path]:
    """What no bytes can say: a pipe, a loop of links, an endless device, a folder, a huge sparse file, a pickle."""
    names = ["pipe", "loop", "zero", "folder", "sparse", "bomb", "odd\nname"]
    pipe, loop, zero, inner, sparse, bomb, odd = (folder / f"{name}.safetensors" for name in names)
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    zero.symlink_to("/dev/zero")
    inner.mkdir()
    with sparse.open("wb") as stream:
        header = b'{"0/0/representation":{"dtype":"U8","shape":[1099511627000],"data_offsets":[0,1099511627000]}}'
        stream.write(len(header).to_bytes(8, "little") + header)
        stream.truncate(8 + len(header) + 1099511627000)
    bomb.write_bytes(pickle.dumps(Bomb(folder / "went-off")))
    odd.write_bytes(b"\x00" * 7)
    return [pipe, loop, zero, inner, sparse, bomb, odd]


def judge(path: Path) -> tuple[bool, float, int]:
    """(read without problem, CPU seconds, bytes of memory at most) of checking one file, and of reading it too."""
    started = time.process_time()
    fine = not check([path]).problems if not path.is_dir() else False
    try:
        read_entries(path)
    except AuditError:
        if fine:
            raise RuntimeError(f"{path} passes the check and cannot be read") from None
    seconds = time.process_time() - started
    # Apart, because tracing slows down what it traces.
    tracemalloc.start()
    try:
        check([path] if not path.is_dir() else [])
        return fine, seconds, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def fuzz(count: int, seed: int = 0) -> dict[str, Any]:
    """`count` spoiled files and the tricks; any other end than a refusal or a valid read raises."""
    rng = random.Random(seed)
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = seed_file(folder)
        for i in range(count):
            path = folder / "fuzzed.safetensors"
            path.write_bytes(SPOILS[i % len(SPOILS)](rng, data))
            results.append(judge(path))
        results += [judge(path) for path in tricks(folder)]
        went_off = (folder / "went-off").exists()
    return {
        "files": len(results),
        "read": sum(fine for fine, _, _ in results),
        "refused": sum(not fine for fine, _, _ in results),
        "slowest_cpu_seconds": round(max(seconds for _, seconds, _ in results), 3),
        "most_memory_mb": round(max(peak for _, _, peak in results) / 2**20, 1),
        "bombs_went_off": int(went_off),
    }


FIGURES.register("fuzz_uploads")(
    Figure(
        lambda: fuzz(10_000),
        (
            "knowledge_forms/header.py",
            "knowledge_forms/check.py",
            "knowledge_forms/store.py",
            "fedre_audit/figures/fuzz_uploads.py",
        ),
    )
)

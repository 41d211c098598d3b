"""Valid upload files to spoil."""

import json
from pathlib import Path

import numpy as np

from knowledge_forms.store import Entries, write_entries

WIDTH, CLASSES = 6, 4
META = {"system": "test", "form": "prototype", "mechanism": "", "feature_width": WIDTH, "classes": CLASSES}


def prototypes(rows: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    values = np.random.default_rng(seed).random((rows, WIDTH), dtype=np.float32)
    return {"representation": values, "label_encoding": np.eye(CLASSES, dtype=np.float32)[:rows]}


def write(path: Path, entries: Entries | None = None, **meta: object) -> Path:
    write_entries(path, entries if entries is not None else {(0, 0): prototypes()}, {**META, **meta})
    return path


def write_header(path: Path, header: object, data: bytes = b"") -> Path:
    """A file with any header at all."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path

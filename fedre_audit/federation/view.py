"""The server's side of a run folder: what crossed the wire, and nothing else. Never opens `truth/`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from knowledge_forms.base import Classifier, ServerView, Upload
from knowledge_forms.errors import AuditError
from knowledge_forms.header import UPLOAD, read_header
from knowledge_forms.store import Entries, parse_key, read_folder

BROADCAST = "broadcast"
LARGE = 2**20
"""Bytes from which an array is left on disk."""
META = ("system", "form", "mechanism", "feature_width", "classes")


def read_view(run_dir: Path, form: str) -> ServerView:
    """Uploads of one form, by round then client, and the classifiers the server sent, from `run_dir/uploads`."""
    folder = run_dir / "uploads" / form
    uploads: list[Upload] = []
    described: dict[str, Any] = {}
    for path, entries, metadata in read_folder(folder):
        meta = {key: metadata.get(key) for key in META}
        if None in meta.values() or (described and meta != described):
            raise AuditError(f"{path}: its metadata ({meta}) is incomplete or not that of the other files of {folder}")
        described = meta
        for (client, round_), arrays in _mapped(path, entries).items():
            uploads.append(_upload(path, client, round_, form, arrays))
    return ServerView(
        system=described["system"],
        form=form,
        mechanism=described["mechanism"],
        feature_width=described["feature_width"],
        num_classes=described["classes"],
        uploads=tuple(sorted(uploads, key=lambda upload: (upload.round, upload.client))),
        classifiers=_classifiers(run_dir / "uploads" / BROADCAST),
    )


def _mapped(path: Path, entries: Entries) -> Entries:
    """The same entries, checked already, with large arrays left in the file until someone looks at them.

    Rounds of raw uploads would not fit into memory together, and the attackers look at the newest alone.
    """
    slots = {parse_key(key): slot for key, slot in read_header(path, UPLOAD).slots.items()}
    for (client, round_), named in entries.items():
        for name, value in named.items():
            slot = slots[client, round_, name]
            if slot.dtype == "F32" and value.nbytes >= LARGE and slot.begin % value.itemsize == 0:
                named[name] = np.memmap(path, np.float32, "c", slot.begin, slot.shape)
    return entries


def _upload(path: Path, client: int, round_: int, form: str, arrays: Mapping[str, NDArray[Any]]) -> Upload:
    tensors: dict[str, Tensor] = {name: torch.from_numpy(value) for name, value in arrays.items()}
    for name in ("representation", "label_encoding"):
        if name not in tensors:
            raise AuditError(f"{path}: client {client}, round {round_} has no '{name}'; record the upload again")
    return Upload(client, round_, form, tensors.pop("representation"), tensors.pop("label_encoding"), tensors)


def _classifiers(folder: Path) -> dict[int, Classifier]:
    """By round; empty where the server sent none."""
    if not folder.is_dir():
        return {}
    sent = {}
    for path, entries, _ in read_folder(folder):
        for (_, round_), arrays in entries.items():
            if {"classifier.weight", "classifier.bias"} - set(arrays):
                raise AuditError(f"{path}: round {round_} has no whole classifier; record the run again")
            weight, bias = arrays["classifier.weight"], arrays["classifier.bias"]
            sent[round_] = Classifier(torch.from_numpy(weight), torch.from_numpy(bias))
    return sent

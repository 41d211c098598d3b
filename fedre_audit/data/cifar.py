"""The official binary version of CIFAR-10 and CIFAR-100 (Krizhevsky 2009), and the refusal of the pickled one."""

from pathlib import Path

import numpy as np
import torch

from fedre_audit.data.archive import read_files
from fedre_audit.data.base import ImageData
from knowledge_forms.errors import AuditError

PIXELS = 3 * 32 * 32
LISTING = "label_names.txt"


def refuse_pickle(path: Path, advice: str) -> None:
    """Raise AuditError: the Python version of the archives is never opened."""
    raise AuditError(f"{path} is pickled, and reading a pickle can run any code; {advice} instead")


def read_binary(path: Path, name: str, *, classes: tuple[str, ...] = (), label_bytes: int = 1) -> ImageData:
    """Records of `label_bytes` label bytes (the last one counts) and 3,072 pixel bytes in colour planes.

    Training images first. Without `classes` their names come from the archive's fine_label_names.txt.
    Raises AuditError where the files are not whole, a label has no name, or there are no names.
    """
    files = dict(read_files(path, lambda file: file.endswith((".bin", LISTING))))
    if not classes:
        listing = next((data for file, data in files.items() if file.endswith("fine_" + LISTING)), b"")
        classes = tuple(listing.decode(errors="replace").split())
    record = label_bytes + PIXELS
    parts = sorted((int("test" in file), file, data) for file, data in files.items() if file.endswith(".bin"))
    if not parts or not classes or any(len(data) % record for _, _, data in parts):
        raise AuditError(f"{path} holds no whole .bin files of {name} with their class names; fetch it again")
    rows = np.concatenate([np.frombuffer(data, np.uint8).reshape(-1, record) for _, _, data in parts])
    splits = np.concatenate([np.full(len(data) // record, split, np.int8) for split, _, data in parts])
    labels = rows[:, label_bytes - 1].astype(np.int64)
    if len(labels) and labels.max() >= len(classes):
        raise AuditError(f"{path} has label {labels.max()}, {name} has 0 to {len(classes) - 1}; fetch it again")
    return ImageData(
        name=name,
        images=torch.from_numpy(rows[:, label_bytes:].reshape(-1, 3, 32, 32).copy()),
        labels=torch.from_numpy(labels),
        classes=classes,
        official_split=torch.from_numpy(splits),
    )

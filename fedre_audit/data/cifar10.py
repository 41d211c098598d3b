"""`cifar10`: 60,000 colour images of 32x32 in ten classes (Krizhevsky 2009), 50,000 of them for training."""

from pathlib import Path

import numpy as np
import torch

from fedre_audit.data.archive import content_key, read_files
from fedre_audit.data.base import DATASETS, ImageData, Request
from fedre_audit.data.cache import cached
from fedre_audit.data.imagefolder import load_tree
from knowledge_forms.errors import AuditError

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
TREES = ("cifar10-images.tar.gz", "cifar10-images")
BINARY = ("cifar-10-binary.tar.gz", "cifar-10-batches-bin")
PICKLED = ("cifar-10-python.tar.gz", "cifar-10-batches-py")
RECORD = 1 + 3 * 32 * 32


@DATASETS.register("cifar10")
def cifar10(request: Request) -> ImageData:
    """From an archive or folder of class folders, or the official binary version; training images first."""
    advice = "fetch cifar-10-binary.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html"
    path = request.find("CIFAR-10", TREES + BINARY + PICKLED, advice)
    if path.name in PICKLED:
        raise AuditError(f"{path} is pickled, and reading a pickle can run any code; {advice} instead")
    if path.name in BINARY:
        return cached(content_key(path, "cifar10"), request.cache, lambda: read_binary(path))
    data = load_tree(path, "cifar10", request)
    if data.classes != CLASSES:
        raise AuditError(f"{path} has the classes {', '.join(data.classes)}, not CIFAR-10's; fetch it again")
    return data


def read_binary(path: Path) -> ImageData:
    """The official binary batches: records of a label byte and 3,072 pixel bytes in colour planes."""
    batches = sorted(read_files(path, lambda name: name.endswith(".bin")))
    parts = [(int("test" in name), data) for name, data in batches]
    if not parts or any(len(data) % RECORD for _, data in parts):
        raise AuditError(f"{path} holds no whole data_batch_*.bin and test_batch.bin; fetch it again")
    parts.sort(key=lambda part: part[0])
    rows = np.concatenate([np.frombuffer(data, np.uint8).reshape(-1, RECORD) for _, data in parts])
    splits = np.concatenate([np.full(len(data) // RECORD, split, np.int8) for split, data in parts])
    if len(rows) and rows[:, 0].max() >= len(CLASSES):
        raise AuditError(f"{path} has label {rows[:, 0].max()}, CIFAR-10 has 0 to 9; fetch it again")
    return ImageData(
        name="cifar10",
        images=torch.from_numpy(rows[:, 1:].reshape(-1, 3, 32, 32).copy()),
        labels=torch.from_numpy(rows[:, 0].astype(np.int64)),
        classes=CLASSES,
        official_split=torch.from_numpy(splits),
    )

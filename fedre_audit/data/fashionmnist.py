"""`fashionmnist`: 70,000 grey images of clothes, 28x28, in ten classes (Xiao et al., arXiv 1708.07747)."""

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from fedre_audit.data.archive import content_key
from fedre_audit.data.base import DATASETS, ImageData, Request
from fedre_audit.data.cache import cached
from fedre_audit.data.download import Source
from knowledge_forms.errors import AuditError

CLASSES = (
    "T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip
ADDRESS = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
OFFICIAL = tuple(
    Source(f"{ADDRESS}{name}.gz", md5)
    for name, md5 in (
        ("train-images-idx3-ubyte", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        ("train-labels-idx1-ubyte", "25c81989df183df01b3e8a0aad5dffbe"),
        ("t10k-images-idx3-ubyte", "bef4ecab320f06d8554ea6380940ec79"),
        ("t10k-labels-idx1-ubyte", "bb300cfdad3c16e7a12a480ee83cd310"),
    )
)
FOLDERS = ("fashion-mnist", "FashionMNIST/raw")
LIMIT = 60_000 * 28 * 28 + 16  # bytes of the largest file, unpacked


@DATASETS.register("fashionmnist")
def fashionmnist(request: Request) -> ImageData:
    """28x28 grey clothes in ten classes; the four official idx files in a folder `fashion-mnist`."""
    last = OFFICIAL[-1].name  # fetched last: where it is, the others are
    names = tuple(f"{folder}/{name}" for folder in FOLDERS for name in (last, last.removesuffix(".gz")))
    folder = request.find("Fashion-MNIST", names, f"fetch the four files of {ADDRESS}", OFFICIAL).parent
    return cached(content_key(folder, "fashionmnist"), request.cache, lambda: read_folder(folder))


def read_folder(folder: Path) -> ImageData:
    """The four idx files, gzipped or not; training images first. Raises AuditError where one is missing or damaged."""
    train_images, train_labels, test_images, test_labels = (
        read_idx(folder / source.name, 3 if "images" in source.name else 1) for source in OFFICIAL
    )
    labels = np.concatenate([train_labels, test_labels]).astype(np.int64)
    images = np.concatenate([train_images, test_images])[:, None]
    if len(labels) != len(images) or (len(labels) and labels.max() >= len(CLASSES)):
        raise AuditError(f"{folder}: labels and images do not belong together; fetch the four files again")
    split = np.repeat(np.array([0, 1], np.int8), [len(train_labels), len(test_labels)])
    return ImageData("fashionmnist", torch.from_numpy(images), torch.from_numpy(labels), CLASSES,
                     torch.from_numpy(split))  # fmt: skip


def read_idx(path: Path, axes: int) -> NDArray[np.uint8]:
    """An idx file of bytes: magic 0, 0, 8, number of axes; each length as a big-endian word; the values."""
    plain = path.with_suffix("")
    try:
        with plain.open("rb") if plain.exists() else gzip.open(path) as stream:
            raw = stream.read(LIMIT + 1)
        magic, *shape = struct.unpack_from(f">{axes + 1}I", raw)
        if magic != 0x800 + axes or len(raw) != 4 * (axes + 1) + int(np.prod(shape, dtype=np.uint64)):
            raise ValueError("not the size its header says")
    except (OSError, EOFError, zlib.error, struct.error, ValueError) as error:
        raise AuditError(f"{path} is missing, truncated or no idx file ({error}); fetch it again") from error
    return np.frombuffer(raw, np.uint8, offset=4 * (axes + 1)).reshape(shape).copy()

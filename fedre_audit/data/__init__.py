"""Data sets, archives, splits and partitions."""

from fedre_audit.data import cifar10, cifar100, fashionmnist, imagefolder, mnist5k, tinyimagenet
from fedre_audit.data.base import DATASETS, ImageData, image_hashes, load_dataset, to_float

__all__ = [
    "DATASETS", "ImageData", "cifar10", "cifar100", "fashionmnist", "image_hashes", "imagefolder", "load_dataset",
    "mnist5k", "tinyimagenet", "to_float",
]  # fmt: skip

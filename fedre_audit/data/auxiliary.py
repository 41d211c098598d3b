"""The attacker's public images: from the audited data set, from some of its classes, or from another data set.

Shifted public data asks how much an attack owes to public images that look like the private ones.
"""

import re
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from fedre_audit.data.base import ImageData, image_hashes, to_float
from fedre_audit.data.splits import Split, check_disjoint
from fedre_audit.seeding import generator
from knowledge_forms.errors import AuditError

SAME = "same"
CLASSES = "classes:"
LUMINANCE = (0.299, 0.587, 0.114)  # ITU-R BT.601


def fit_images(images: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """uint8 [N,c,h,w] -> uint8 of `shape` (c',h',w'): luminance or equal channels, bilinear with antialiasing."""
    channels, height, width = shape
    if tuple(images.shape[1:]) == shape:
        return images
    parts = []
    for part in images.split(1024):
        x = to_float(part)
        if x.shape[1] > channels:
            x = torch.einsum("nchw,c->nhw", x, torch.tensor(LUMINANCE))[:, None]
        if tuple(x.shape[2:]) != (height, width):
            x = F.interpolate(x, size=(height, width), mode="bilinear", antialias=True)
        parts.append((x.clamp(0, 1) * 255).round().to(torch.uint8).expand(-1, channels, -1, -1))
    return torch.cat(parts)


def parse_classes(text: str, count: int) -> list[int]:
    """`odd`, `even`, or numbers and ranges -> class numbers below `count`; AuditError names what is wrong.

    >>> parse_classes("odd", 6), parse_classes("0-2,5", 6)
    ([1, 3, 5], [0, 1, 2, 5])
    """
    if text in ("odd", "even"):
        return list(range(1 if text == "odd" else 0, count, 2))
    chosen: set[int] = set()
    for item in text.split(","):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", item.strip())
        if not found or int(found[1]) > int(found[2] or found[1]):
            raise AuditError(f"--auxiliary classes:{text} is not odd, even or numbers like 0-4,7 ('{item}')")
        chosen.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    if max(chosen, default=count) >= count:
        raise AuditError(f"--auxiliary classes:{text} goes beyond the data set's {count} classes (0 to {count - 1})")
    return sorted(chosen)


def same_classes(data: ImageData, split: Split, classes: list[int], count: int, seed: int) -> ImageData:
    """Up to `count` images of `classes`, disjoint by hash from the private and the evaluation images."""
    hashes = image_hashes(data.images)
    taken = torch.cat([split.private, split.evaluation]).numpy()
    free = ~np.isin(hashes, hashes[taken]) & np.isin(data.labels.numpy(), classes)
    ids = torch.from_numpy(np.flatnonzero(free))
    if len(ids) == 0:
        raise AuditError(
            f"{data.name} has no image of the auxiliary classes left beside the private ones; "
            "lower --private-images or choose other classes"
        )
    order = torch.randperm(len(ids), generator=generator(seed, "auxiliary"))
    return data.subset(ids[order[:count]])


def other_data(data: ImageData, split: Split, other: ImageData, count: int, seed: int) -> ImageData:
    """Up to `count` images of another data set in the shape of `data`; AuditError where they share an image.

    Classes are matched by name; an image of a class that `data` does not have gets label -1.
    """
    order = torch.randperm(len(other), generator=generator(seed, "auxiliary"))[:count]
    chosen = other.subset(order)
    images = fit_images(chosen.images, data.shape)
    taken = torch.cat([split.private, split.evaluation])
    check_disjoint(image_hashes(data.images[taken]), image_hashes(images), ("private or evaluation", "auxiliary"))
    number = {name: label for label, name in enumerate(data.classes)}
    table = torch.tensor([number.get(name, -1) for name in other.classes])
    return ImageData(other.name, images, table[chosen.labels], data.classes, chosen.official_split)


def auxiliary_data(
    data: ImageData, split: Split, spec: str, *, count: int, seed: int, load: Callable[[str], ImageData]
) -> ImageData | None:
    """The attacker's images as `spec` says, in the shape and class numbers of `data`; None: the split's own part.

    spec: 'same' (None), 'classes:WHICH' (see `parse_classes`) or a data set for `load`.
    """
    if spec == SAME:
        return None
    if spec.startswith(CLASSES):
        return same_classes(data, split, parse_classes(spec.removeprefix(CLASSES), len(data.classes)), count, seed)
    return other_data(data, split, load(spec), count, seed)

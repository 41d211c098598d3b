"""Images that need not lie in memory: made or read a block of rows at a time, as they are asked for.

100,000 colour images of 32x32 take 1.2 GB as float32, and an audit looks at seven answers to each of them.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from attacks.base import Attack
from attacks.floors import RandomImage
from fedre_audit.memory import return_memory
from knowledge_forms.base import ServerView
from knowledge_forms.header import Slot, read_header

SCALARS = 10_000_000
"""Numbers in a block of images: 40 MB as float32."""
TOGETHER = ("shadow",)
"""Attacks whose answer to a row depends on the other rows of the upload: they get all rows at once."""


class Images(Protocol):
    """Images [n,c,h,w] in [0,1]. `images[index]`, index [k] int64, gives [k,c,h,w] float32; a tensor is one of them."""

    @property
    def shape(self) -> Sequence[int]:
        """(n, c, h, w)."""

    def __getitem__(self, index: Tensor, /) -> Tensor: ...


def at_once(shape: Sequence[int]) -> int:
    """How many images of shape (..., c, h, w) make a block."""
    return max(1, SCALARS // int(np.prod(shape[-3:])))


def blocks(images: Images) -> tuple[Tensor, ...]:
    """Indices of all images, block by block; one empty block where there is no image."""
    parts = torch.arange(images.shape[0]).split(at_once(images.shape))
    if len(parts) > 1:
        return_memory()
    return parts


@dataclass(frozen=True)
class Chosen:
    """The images at `ids` [k] int64 of others, in that order."""

    images: Images
    ids: Tensor

    @property
    def shape(self) -> Sequence[int]:
        """(k, c, h, w)."""
        return (len(self.ids), *self.images.shape[1:])

    def __getitem__(self, index: Tensor) -> Tensor:
        return self.images[self.ids[index]]


@dataclass(frozen=True)
class Joined:
    """Two sets of images of one size, one after the other."""

    first: Images
    second: Images

    @property
    def shape(self) -> Sequence[int]:
        """(n + m, c, h, w)."""
        return (self.first.shape[0] + self.second.shape[0], *self.first.shape[1:])

    def __getitem__(self, index: Tensor) -> Tensor:
        count = self.first.shape[0]
        inside = index < count
        found = torch.empty(len(index), *self.shape[1:])
        found[inside] = self.first[index[inside]].to(found)
        found[~inside] = self.second[index[~inside] - count].to(found)
        return found


@dataclass(frozen=True)
class Pixels:
    """Images of a data set, kept as uint8 [N,c,h,w] and given as float in [0,1]."""

    bytes: Tensor

    @property
    def shape(self) -> Sequence[int]:
        """(N, c, h, w)."""
        return self.bytes.shape

    def __getitem__(self, index: Tensor) -> Tensor:
        return self.bytes[index].float() / 255.0


@dataclass(frozen=True)
class Stored:
    """Array `name` [n,c,h,w] float32 of safetensors files that hold its rows one file after the other."""

    paths: tuple[Path, ...]
    name: str

    @cached_property
    def _slots(self) -> list[tuple[Path, Slot]]:
        return [(path, read_header(path).slots[self.name]) for path in self.paths]

    @property
    def shape(self) -> Sequence[int]:
        """(n, c, h, w)."""
        return (sum(slot.shape[0] for _, slot in self._slots), *self._slots[0][1].shape[1:])

    def __getitem__(self, index: Tensor) -> Tensor:
        found = torch.empty(len(index), *self.shape[1:])
        start = 0
        for path, slot in self._slots:
            inside = (index >= start) & (index < start + slot.shape[0])
            if inside.any():
                # Mapped anew each time: pages of a file count as memory for as long as it is mapped.
                part = np.memmap(path, np.float32, "r", slot.begin, slot.shape)
                found[inside] = torch.from_numpy(part[(index[inside] - start).numpy()])
            start += slot.shape[0]
        return found


def take_rows(view: ServerView, rows: Tensor | slice) -> ServerView:
    """The view of one client with some rows of its newest upload."""
    upload = view.latest
    count = len(upload.representation)
    extra = {name: value[rows] if value.ndim and len(value) == count else value for name, value in upload.extra.items()}
    cut = replace(
        upload, representation=upload.representation[rows], label_encoding=upload.label_encoding[rows], extra=extra
    )
    return replace(view, uploads=tuple(cut if one is upload else one for one in view.uploads))


def answer(attack: Attack, view: ServerView, rows: Tensor) -> Tensor:
    """What a fitted attack answers to some rows [k] int64 of the newest upload of one client: [k,c,h,w]."""
    if attack.name in TOGETHER:
        return attack.reconstruct(view).images[rows]
    if isinstance(attack, RandomImage):  # the only one that looks at where a row stands
        attack = copy.copy(attack)
        attack.order_ = attack.order_[rows % len(attack.order_)]
    return attack.reconstruct(take_rows(view, rows)).images


@dataclass(frozen=True)
class Answers:
    """What a fitted attack answers to the newest upload of one client, by row. Few rows are answered once and kept."""

    attack: Attack
    view: ServerView

    @property
    def shape(self) -> Sequence[int]:
        """(n, c, h, w)."""
        return (len(self.view.latest.representation), *self.attack.image_shape_)

    @cached_property
    def _all(self) -> Tensor:
        return self.attack.reconstruct(self.view).images

    def __getitem__(self, index: Tensor) -> Tensor:
        if self.shape[0] <= at_once(self.shape):
            return self._all[index]
        rows, back = torch.unique(index, return_inverse=True)
        return answer(self.attack, self.view, rows)[back]

"""Images as one uint8 tensor with labels, and the table of data sets that load it."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedre_audit.data.download import Source, fetch
from knowledge_forms.errors import AuditError
from knowledge_forms.registry import Registry

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class ImageData:
    """Labelled images of one size; an image's id is its row.

    `images` uint8 [N,c,h,w] with c 1 or 3, `labels` int64 [N] in 0..len(classes)-1,
    `official_split` int8 [N]: 0 for the published training part, 1 for its test or validation part
    (all 0 where the data set publishes no split).
    """

    name: str
    images: Tensor
    labels: Tensor
    classes: tuple[str, ...]
    official_split: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of every image."""
        channels, height, width = self.images.shape[1:]
        return channels, height, width

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 (hex) of pixels, labels, class names and split: equal data give equal hashes."""
        digest = hashlib.sha256(repr((self.shape, self.classes)).encode())
        for tensor in (self.images, self.labels, self.official_split):
            digest.update(tensor.contiguous().numpy().data)
        return digest.hexdigest()

    def subset(self, ids: Tensor) -> "ImageData":
        """The images at `ids` (int64 [n]) in that order; class names and numbers stay."""
        return replace(self, images=self.images[ids], labels=self.labels[ids], official_split=self.official_split[ids])

    def limit_classes(self, count: int) -> "ImageData":
        """The images of the first `count` classes; the same data where it has no more than that."""
        if count >= len(self.classes):
            return self
        kept = self.subset((self.labels < count).nonzero().squeeze(1))
        return replace(kept, classes=self.classes[:count])


def image_hashes(images: Tensor) -> NDArray[np.bytes_]:
    """A digest per image of its shape and pixels, never its label: uint8 [N,c,h,w] -> [N] of dtype S32 (hex).

    >>> grey = torch.zeros(2, 1, 4, 4, dtype=torch.uint8)
    >>> first, second = image_hashes(grey)
    >>> bool(first == second)
    True
    """
    if images.dtype != torch.uint8 or images.ndim != 4:
        raise ValueError(f"images must be uint8 [N,c,h,w], got {images.dtype} {list(images.shape)}")
    # Images of equal bytes and different shape differ: the shape goes into the digest's personalisation.
    person = "x".join(map(str, images.shape[1:])).encode()[:16]
    rows = images.contiguous().numpy()
    digests = [hashlib.blake2b(row, digest_size=16, person=person).hexdigest() for row in rows]
    return np.array(digests, dtype="S32")


def to_float(images: Tensor) -> Tensor:
    """uint8 [N,c,h,w] in 0..255 -> float32 [N,c,h,w] in [0,1]."""
    return images.to(torch.float32) / 255


@dataclass(frozen=True)
class Request:
    """What a loader is asked: where data lies and decoded tensors are kept, whom to tell, whether it may download.

    dry: only say what would be downloaded.
    """

    argument: str
    root: Path
    cache: Path
    progress: Progress | None = None
    download: bool = False
    dry: bool = False

    def find(self, title: str, names: tuple[str, ...], advice: str, official: tuple[Source, ...] = ()) -> Path:
        """The first of `names` under the root, after a download of `official` (the last is among the names) if allowed.

        Raises AuditError with `advice` where there is none and none is to be downloaded.
        """
        for name in names:
            if (self.root / name).exists():
                return self.root / name
        if self.download and official:
            if self.dry:
                missing, what = (
                    "" if self.root.is_dir() else ", which does not exist",
                    ", ".join(one.url for one in official),
                )
                raise AuditError(
                    f"no {title} under {self.root}{missing}; without --dry-run {what} would "
                    "be fetched; or point --data-root or $FEDRE_AUDIT_DATA at the folder that holds it"
                )
            folder = (self.root / next(name for name in names if name.endswith(official[-1].name))).parent
            return [fetch(source, folder, progress=self.progress) for source in official][-1]
        raise AuditError(
            f"no {title} under {self.root} (looked for {', '.join(names)}); {advice}, "
            "or point --data-root or $FEDRE_AUDIT_DATA at the folder that holds it"
        )


DATASETS: Registry[Callable[[Request], ImageData]] = Registry("data set")


def default_root() -> Path:
    """$FEDRE_AUDIT_DATA, else ~/.cache/fedre-audit."""
    return Path(os.environ.get("FEDRE_AUDIT_DATA") or "~/.cache/fedre-audit").expanduser()


def default_cache() -> Path:
    """`fedre-audit/decoded` under $XDG_CACHE_HOME, else under ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "fedre-audit" / "decoded"


def load_dataset(
    spec: str,
    *,
    root: Path | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
    download: bool = False,
    dry: bool = False,
) -> ImageData:
    """The data set `spec` names: one of `audit list datasets`, or `imagefolder:PATH`.

    `root` is the data folder (default `default_root()`), `cache` keeps decoded tensors (default
    `default_cache()`), `progress(done, total)` is called while an archive is fetched (MiB) and while images are
    decoded. `download` allows fetching what is not there from its official address;
    `dry` names that address instead, as an AuditError.
    Raises AuditError on an unknown name (listing the choices) and on a missing or unreadable archive.
    """
    name, colon, argument = spec.partition(":")
    key = f"{name}:PATH" if colon else name
    loader = DATASETS[key if key in DATASETS else spec]
    return loader(Request(argument, root or default_root(), cache or default_cache(), progress, download, dry))

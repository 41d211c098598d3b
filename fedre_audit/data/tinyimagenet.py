"""`tinyimagenet`: colour images of 64x64 in 200 classes (Stanford CS231n), in the official layout.

Validation labels come from `val/val_annotations.txt`. Reading `val/` as class folders gives all of its
images one label: a bug of published code (PFLlib issue 231).
"""

from pathlib import Path

import torch

from fedre_audit.data.archive import content_key, read_files
from fedre_audit.data.base import DATASETS, ImageData, Progress, Request
from fedre_audit.data.cache import cached
from fedre_audit.data.decode import decode_images, is_image
from fedre_audit.data.download import Source
from knowledge_forms.errors import AuditError

NAMES = ("tiny-imagenet-200.zip", "tiny-imagenet-200", "tiny-imagenet-200-subset.tar.gz")
OFFICIAL = Source("http://cs231n.stanford.edu/tiny-imagenet-200.zip", "90528d7ca1a48142e341f4ef8d21d0de")
TEXTS = ("wnids.txt", "words.txt", "val/val_annotations.txt")


@DATASETS.register("tinyimagenet")
def tinyimagenet(request: Request) -> ImageData:
    """64x64 colour, 200 classes; the official zip, its folder or the subset archive."""
    path = request.find("TinyImageNet", NAMES, f"fetch {OFFICIAL.url}", (OFFICIAL,))
    key = content_key(path, "tinyimagenet")
    return cached(key, request.cache, lambda: read_tiny(path, progress=request.progress))


def read_tiny(path: Path, *, progress: Progress | None = None) -> ImageData:
    """Decode train/ and val/ (test/ has no labels); raises AuditError where an image has no known class."""
    raw = dict(read_files(path, _wanted))
    contents = {_inner(name): data for name, data in raw.items()}
    texts = {name: contents.pop(name, b"").decode(errors="replace") for name in TEXTS}
    wnids = sorted(texts["wnids.txt"].split())
    if not wnids:
        raise AuditError(f"{path} has no wnids.txt; fetch the archive in its official layout again")
    annotated = dict(line.split("\t")[:2] for line in texts[TEXTS[2]].splitlines() if "\t" in line)
    number = {wnid: index for index, wnid in enumerate(wnids)}
    placed = []
    for name in contents:
        held_out = name.startswith("val/")
        wnid = annotated.get(name.rpartition("/")[2]) if held_out else name.split("/")[1]
        if wnid not in number:
            source = "val_annotations.txt" if held_out else "wnids.txt"
            raise AuditError(f"{path}: {source} gives no class for '{name}'; fetch the archive again")
        placed.append((int(held_out), number[wnid], name))
    placed.sort()
    words = dict(line.split("\t", 1) for line in texts["words.txt"].splitlines() if "\t" in line)
    return ImageData(
        name="tinyimagenet",
        images=decode_images([(name, contents[name]) for _, _, name in placed], progress=progress),
        labels=torch.tensor([label for _, label, _ in placed]),
        classes=tuple(words.get(wnid, wnid).split(",")[0].strip() for wnid in wnids),
        official_split=torch.tensor([split for split, _, _ in placed], dtype=torch.int8),
    )


def _inner(name: str) -> str:
    """The name below the archive's top folder, whether or not it has one."""
    return name.partition("/")[2] if name.startswith("tiny-imagenet-200") else name


def _wanted(name: str) -> bool:
    inner = _inner(name)
    return inner in TEXTS or (inner.startswith(("train/", "val/")) and is_image(inner))

"""`imagefolder:PATH`: a folder per class, in a folder or archive, with or without train/ and test/."""

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

import torch

from fedre_audit.data.archive import content_key, read_files, shown
from fedre_audit.data.base import DATASETS, ImageData, Progress, Request
from fedre_audit.data.cache import cached
from fedre_audit.data.decode import decode_images, is_image
from knowledge_forms.errors import AuditError

HELD_OUT = ("test", "val", "valid", "validation")


@DATASETS.register("imagefolder:PATH")
def imagefolder(request: Request) -> ImageData:
    """Any class-per-folder tree; classes in alphabetical order, images in name order."""
    if not request.argument:
        raise AuditError("imagefolder: names no path; write --dataset imagefolder:PATH")
    try:
        path = Path(request.argument).expanduser()
        name = shown(path.resolve().name)
    except RuntimeError as error:  # an unknown ~user, or links in a circle
        raise AuditError(f"imagefolder:{request.argument} leads nowhere ({error}); give the path in full") from error
    return load_tree(path, name, request)


def load_tree(path: Path, name: str, request: Request) -> ImageData:
    """The class-per-folder tree at `path`, from the cache where it was decoded before."""
    key = content_key(path, f"tree:{name}")
    return cached(key, request.cache, lambda: read_tree(path, name, progress=request.progress))


def read_tree(path: Path, name: str, *, progress: Progress | None = None) -> ImageData:
    """Decode a class-per-folder tree; raises AuditError where its folders name no classes."""
    contents = dict(read_files(path, is_image))
    if not contents:
        raise AuditError(f"{path} holds no image; it must be a tree with a folder of images per class")
    placed = place(sorted(contents), str(path), empty_folders(path, contents))
    classes = tuple(sorted({label for _, label, _ in placed}))
    number = {label: index for index, label in enumerate(classes)}
    return ImageData(
        name=name,
        images=decode_images([(file, contents[file]) for _, _, file in placed], progress=progress),
        labels=torch.tensor([number[label] for _, label, _ in placed]),
        classes=classes,
        official_split=torch.tensor([split for split, _, _ in placed], dtype=torch.int8),
    )


def empty_folders(path: Path, files: Iterable[str]) -> list[str]:
    """Folders directly in the folder `path`, and in its train/, that hold none of `files`."""
    found = [
        shown(below.relative_to(path).as_posix())
        for base in (path, path / "train")
        if base.is_dir()
        for below in base.iterdir()
        if below.is_dir() and not below.name.startswith((".", "__"))
    ]
    held = {parent.as_posix() for file in files for parent in PurePosixPath(file).parents}
    return sorted(set(found) - held)


def place(files: Sequence[str], where: str, empty: Sequence[str] = ()) -> list[tuple[int, str, str]]:
    """(official split, class, file) of every file name, sorted so that the training part comes first.

    The folders all files share are skipped. Where what then comes first is `train` and a held-out name
    (test, val, ...) and nothing else, that is the split and the next folder the class.
    Raises AuditError on fewer than two classes, an image in no class folder and a held-out class that
    training lacks (a flat `val/images/` would otherwise pass as a class of its own). empty: folders without
    an image, named where classes are missing.

    >>> place(["x/train/cat/1.png", "x/train/dog/1.png", "x/test/cat/2.png"], "x.zip")[-1]
    (1, 'cat', 'x/test/cat/2.png')
    """
    folders = [file.split("/")[:-1] for file in files]
    shallowest = min(map(len, folders))
    skip = next((i for i, level in enumerate(zip(*folders, strict=False)) if len(set(level)) > 1), shallowest)
    tops = {parts[skip] for parts in folders if len(parts) > skip}
    has_split = "train" in tops and len(tops) > 1 and tops <= {"train", *HELD_OUT}
    depth = skip + 1 if has_split else skip
    for file, parts in zip(files, folders, strict=True):
        if tops and len(parts) <= depth:
            raise AuditError(f"{where}: '{file}' lies in no class folder; move it into one or remove it")
    placed = sorted(
        (int(has_split and parts[skip] != "train"), "".join(parts[depth : depth + 1]), file)
        for file, parts in zip(files, folders, strict=True)
    )
    if len({label for _, label, _ in placed}) < 2:
        if not tops and shallowest == 0:
            raise AuditError(f"{where}: its images lie directly in it; sort them into at least two class folders")
        without = f" (class folder {', '.join(empty)} holds no image)" if empty else ""
        raise AuditError(f"{where} has a single class folder{without}; it must hold at least two")
    trained = {label for split, label, _ in placed if split == 0}
    for split, label, file in placed:
        if split and label not in trained:
            raise AuditError(
                f"{where}: '{file}' is of class '{label}', which train/ lacks; "
                "put held-out images into the class folders of train/"
            )
    return placed

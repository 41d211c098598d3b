"""Client data of the public libraries: a folder of 0.npz, 1.npz, ... with arrays x and y. Never unpickles anything.

PFLlib and HtFLlib write `dataset/NAME/train/0.npz` with one pickled dictionary `data`; a pickle can run any code when
it is read, so such files are refused, with the way to convert those that one made oneself.
"""

import contextlib
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedre_audit.record import Truth
from knowledge_forms.errors import AuditError

LARGEST = 2**32
IMAGES, LABELS = ("x", "images", "X"), ("y", "labels", "Y")


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays of one file by name; sizes are compared with the file before memory is taken. AuditError else."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > LARGEST:
                raise AuditError(f"{path} unpacks to more than {LARGEST} bytes; split it")
            return {m.filename.removesuffix(".npy"): _read_member(path, archive, m) for m in members}
    except (zipfile.BadZipFile, OSError, ValueError, EOFError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, AuditError):
            raise
        raise AuditError(f"{path} is not a readable .npz file ({error}); write it again with numpy.savez") from error


def _read_member(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise AuditError(f"{path}: '{member.filename}' has version {version}; write it again with numpy.savez")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(stream)
        if dtype.hasobject:
            raise AuditError(
                f"{path}: '{member.filename}' is a pickled Python object, and reading one runs whatever code it holds; "
                "if you made the file yourself, convert it with examples/convert_pickled_npz.py, which says more"
            )
        size = math.prod(shape) * dtype.itemsize
        data = stream.read(size + 1) if size <= member.file_size else b""
        if len(data) != size:
            raise AuditError(f"{path}: '{member.filename}' claims {shape} of {dtype}, which is not what it holds")
        return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


def as_images(array: NDArray[Any], where: str) -> tuple[NDArray[Any], str]:
    """Images [N,c,h,w], uint8 or float in [0,1], of what libraries write; and what was done to get there.

    Takes [N,h,w], [N,c,h,w] and [N,h,w,c]; uint8, floats in [0,1], and floats in [-1,1] (their normalisation with
    mean 0.5 and deviation 0.5).
    """
    done = []
    if array.ndim == 3:
        array = array[:, None]
        done.append("one channel added")
    if array.ndim != 4 or (array.shape[1] not in (1, 3) and array.shape[3] not in (1, 3)):
        raise AuditError(
            f"{where} is {list(array.shape)}, no images [N,c,h,w], [N,h,w,c] or [N,h,w] of 1 or 3 channels"
        )
    if array.shape[1] not in (1, 3):
        array = array.transpose(0, 3, 1, 2)
        done.append("channels moved to the front")
    if array.dtype == np.uint8:
        return array, ", ".join(done)
    if array.dtype.kind != "f" or array.size == 0 or not np.isfinite(array).all():
        raise AuditError(f"{where} holds {array.dtype}, NaN or nothing; images are uint8, or floats in [0,1] or [-1,1]")
    low, high = float(array.min()), float(array.max())
    if low < -1.001 or high > 1.001:
        raise AuditError(f"{where} runs from {low:.3g} to {high:.3g}; undo the normalisation, to [0,1] or [-1,1]")
    if low < 0:
        array = (array + 1) / 2
        done.append("[-1,1] mapped to [0,1]")
    return np.clip(array, 0, 1), ", ".join(done)


def import_folder(folder: Path, out: Path) -> list[str]:
    """Every N.npz of a folder as the private images of client N below `out`; a line a client.

    All or none: where one file is refused, nothing stays in `out` that would refuse the mended command.
    """
    try:
        files = {int(path.stem): path for path in folder.glob("*.npz") if path.stem.isascii() and path.stem.isdigit()}
    except OSError as error:
        raise AuditError(f"cannot look into {folder} ({error.strerror}); mend its permissions") from error
    if not files:
        raise AuditError(f"{folder} holds no 0.npz, 1.npz, ...; give the train folder of a federated data set")
    lines = []
    with _taken_back(out) as written:
        for client, path in sorted(files.items()):
            images, labels, done = _read_client(path)
            written.append(Truth(out).images(client, images, labels))
            lines.append(f"client {client}: {len(images)} images {'x'.join(map(str, images.shape[1:]))}"
                         + (f" ({done})" if done else ""))  # fmt: skip
    return lines


def _read_client(path: Path) -> tuple[NDArray[Any], NDArray[Any], str]:
    """Images, labels, and what was done to the images."""
    arrays = read_npz(path)
    image_name, label_name = (next((n for n in names if n in arrays), None) for names in (IMAGES, LABELS))
    if image_name is None or label_name is None:
        raise AuditError(f"{path} holds {', '.join(arrays) or 'nothing'}; it must hold x (images) and y (labels)")
    images, done = as_images(arrays[image_name], f"{path}: {image_name}")
    labels = arrays[label_name]
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise AuditError(f"{path}: {label_name} is {labels.dtype} {list(labels.shape)}, must be whole numbers [N]")
    return images, labels, done


@contextlib.contextmanager
def _taken_back(out: Path) -> Iterator[list[Path]]:
    """A list of files to fill; where what is done inside fails, they go, and folders that then hold nothing."""
    kept = [folder for folder in (out / "images", out) if folder.exists()]
    written: list[Path] = []
    try:
        yield written
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        for folder in (out / "images", out):
            if folder not in kept:
                with contextlib.suppress(OSError):
                    folder.rmdir()
        raise

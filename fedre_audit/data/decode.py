"""Encoded images to one uint8 tensor, decoded by a pool of threads."""

import io
import os
import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from fedre_audit.data.base import Progress
from knowledge_forms.errors import AuditError

EXTENSIONS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".pbm", ".tif", ".tiff")
PIXEL_LIMIT = 4096 * 4096
BYTES_LIMIT = 16 * 2**30
CHUNK = 256
# Everything Pillow raises on bytes that are no image, or half of one.
BROKEN = (OSError, SyntaxError, ValueError, struct.error, EOFError, Image.DecompressionBombError)


def is_image(name: str) -> bool:
    """Whether a file name is an image's: a known ending, not hidden, not what macOS adds to a zip."""
    parts = name.split("/")
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in parts)
    return not hidden and name.lower().endswith(EXTENSIONS)


def decode_images(files: Sequence[tuple[str, bytes]], *, progress: Progress | None = None) -> Tensor:
    """(name, encoded bytes) of N images of one size -> uint8 [N,c,h,w]; c is 1 where all are grey, else 3.

    Raises AuditError on no image, a broken one, one of more than 8 bits a channel, mixed sizes (naming two)
    and more pixels than is safe to hold.
    """
    if not files:
        raise AuditError(f"there is no image to decode; files must end in one of {', '.join(EXTENSIONS)}")
    first, (width, height) = files[0][0], _header(*files[0])[1]
    grey = True
    for name, data in files:
        mode, size = _header(name, data)
        if size != (width, height):
            raise AuditError(
                f"images differ in size: '{first}' is {width}x{height}, '{name}' is {size[0]}x{size[1]} "
                "(width x height); resize all to one size first"
            )
        grey = grey and mode in ("L", "1")
    channels = 1 if grey else 3
    if width * height > PIXEL_LIMIT or len(files) * channels * height * width > BYTES_LIMIT:
        raise AuditError(f"{len(files)} images of {width}x{height} are more than fits; give fewer or smaller images")
    out = np.empty((len(files), channels, height, width), dtype=np.uint8)

    def fill(start: int) -> int:
        for row, (name, data) in enumerate(files[start : start + CHUNK], start):
            pixels = _pixels(name, data, "L" if grey else "RGB")
            out[row] = pixels[None] if grey else pixels.transpose(2, 0, 1)
        return min(start + CHUNK, len(files))

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for done in pool.map(fill, range(0, len(files), CHUNK)):
            if progress:
                progress(done, len(files))
    return torch.from_numpy(out)


def _header(name: str, data: bytes) -> tuple[str, tuple[int, int]]:
    try:
        with Image.open(io.BytesIO(data)) as image:
            mode, size, deep = image.mode, image.size, _is_deep(image, data)
    except BROKEN as error:
        raise _broken(name, error) from error
    if deep:
        raise AuditError(f"'{name}' has more than 8 bits a channel (mode {mode}); save it with 8 bits first")
    return mode, size


def _is_deep(image: Image.Image, data: bytes) -> bool:
    """Whether it has more than 8 bits a channel. The mode tells of grey alone: colour is RGB, and cut to 8 bits."""
    if image.mode.startswith(("I", "F")):
        return True
    if image.format == "PNG":
        return data[24] > 8  # the bit depth in IHDR, which comes first
    if image.format == "TIFF":
        return max(getattr(image, "tag_v2", {}).get(258, (1,))) > 8  # BitsPerSample
    told = [tile[3] for tile in getattr(image, "tile", ())] if image.format == "PPM" else []
    return any(isinstance(one, tuple) and one[-1] > 255 for one in told)  # (mode, largest value)


def _pixels(name: str, data: bytes, mode: str) -> np.ndarray:
    try:
        with Image.open(io.BytesIO(data)) as image:
            return np.asarray(image.convert(mode))
    except BROKEN as error:
        raise _broken(name, error) from error


def _broken(name: str, error: BaseException) -> AuditError:
    reason = str(error).split(" <")[0] or type(error).__name__
    return AuditError(f"'{name}' is no readable image ({reason}); remove it or fetch it again")

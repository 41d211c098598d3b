"""Decoded data sets kept as safetensors files, named by the content they were decoded from."""

import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from fedre_audit.data.base import ImageData

# Part of every key: raise it when decoding changes, so that old files are left unread.
FORMAT = "2"


def cached(key: str, cache: Path, build: Callable[[], ImageData]) -> ImageData:
    """The data set kept under `key`, or built now and kept.

    A damaged file is built anew; a cache that cannot be written is done without.
    """
    path = cache / f"{key}-{FORMAT}.safetensors"
    found = _read(path)
    if found is None:
        found = build()
        _write(path, found)
    return found


def _checksum(data: ImageData) -> str:
    tensors = (data.images, data.labels, data.official_split)
    total = 0
    for tensor in tensors:
        total = zlib.crc32(tensor.contiguous().numpy().data, total)
    return str(total)


def _read(path: Path) -> ImageData | None:
    try:
        with safe_open(str(path), framework="pt") as stream:
            header = stream.metadata() or {}
            data = ImageData(
                name=header["name"],
                images=stream.get_tensor("images"),
                labels=stream.get_tensor("labels"),
                classes=tuple(json.loads(header["classes"])),
                official_split=stream.get_tensor("official_split"),
            )
    except (SafetensorError, OSError, KeyError, ValueError):
        return None
    return data if header.get("crc32") == _checksum(data) else None


def _write(path: Path, data: ImageData) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    tensors: dict[str, torch.Tensor] = {
        "images": data.images,
        "labels": data.labels,
        "official_split": data.official_split,
    }
    header = {"name": data.name, "classes": json.dumps(data.classes), "crc32": _checksum(data)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(tensors, str(temporary), header)
        temporary.replace(path)
    except (OSError, SafetensorError):
        # The cache saves time only; a read-only home or a full disk must not stop an audit.
        _discard(temporary)


def _discard(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return

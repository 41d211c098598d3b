"""Strips of images for the page: `strips/strips.json` and its PNG files, as data URIs within a size budget."""

import base64
import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.schema import SchemaError

RANKS = ("best", "median", "worst")
ROLES = ("target", "reconstruction", "floor")
NAMES = {"floor": "class-mean guess"}
"""What the page calls a role: this floor is the guess of class means, not the best of all floors."""
BUDGET = 3_500_000
"""Bytes of data URIs on one page; the page stays under 5 MB with room for the words."""
SIDE = 112


@dataclass(frozen=True)
class Picture:
    """One image: a data URI, its shown size in pixels, its text, its name, and its PSNR (None: not a number)."""

    uri: str
    width: int
    height: int
    alt: str
    role: str
    name: str
    psnr: float | None


@dataclass(frozen=True)
class Strip:
    """One strip: rows of pictures by rank, each in the order target, reconstruction, floor."""

    title: str
    form: str
    attack: str
    client: Any
    rows: dict[str, list[Picture]]


def _size(data: bytes, where: str) -> tuple[int, int]:
    if data[:8] != b"\x89PNG\r\n\x1a\n" or len(data) < 24:
        raise SchemaError(f"{where} is not a PNG file; run `audit score` on this run folder again")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def _picture(run_dir: Path, image: dict[str, Any], title: str) -> Picture:
    path = run_dir / image["png"]
    if not path.resolve().is_relative_to(run_dir.resolve()):
        raise SchemaError(f"strips.json names {image['png']}, which lies outside the run folder")
    if not path.is_file():
        raise SchemaError(f"{image['png']} is missing from the run folder; run `audit score` on it again")
    data = path.read_bytes()
    name = NAMES.get(image["role"], image["role"])
    width, height = _size(data, image["png"])
    # Whole multiples keep every private pixel square and of one size.
    times = max(1, round(SIDE / max(width, height)))
    return Picture(
        uri="data:image/png;base64," + base64.b64encode(data).decode(),
        width=width * times,
        height=height * times,
        alt=f"{name}, {image['rank']} rank: {title}",
        role=image["role"],
        name=name,
        psnr=image["psnr"],
    )


def _entries(path: Path) -> list[dict[str, Any]]:
    keys = {"form", "attack", "client", "title", "images"}
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise SchemaError(f"{path} is not JSON ({error}); run `audit score` again") from None
    for i, entry in enumerate(entries if isinstance(entries, list) else [None]):
        if not isinstance(entry, dict) or not keys <= set(entry):
            raise SchemaError(f"{path}: entry {i} must hold {', '.join(sorted(keys))}")
        for image in entry["images"]:
            if not {"role", "png", "rank", "psnr"} <= set(image):
                raise SchemaError(f"{path}: every image of entry {i} must hold role, png, rank and psnr")
            if image["role"] not in ROLES or image["rank"] not in RANKS:
                raise SchemaError(f"{path}: entry {i} has role {image['role']!r}, rank {image['rank']!r}")
    return entries


def load_strips(run_dir: Path, budget: int = BUDGET) -> tuple[list[Strip], int]:
    """Strips of a run folder that fit `budget` bytes, first ones first, and how many were left out.

    No strips.json: none. Raises SchemaError where an entry, or a file it names, cannot be shown.
    """
    path = run_dir / "strips" / "strips.json"
    entries = _entries(path) if path.is_file() else []
    strips: list[Strip] = []
    for entry in entries:
        rows: dict[str, list[Picture]] = {}
        for rank in RANKS:
            images = [image for image in entry["images"] if image["rank"] == rank]
            images.sort(key=lambda image: ROLES.index(image["role"]))
            if images:
                rows[rank] = [_picture(run_dir, image, entry["title"]) for image in images]
        budget -= sum(len(picture.uri) for row in rows.values() for picture in row)
        if budget < 0:
            break
        strips.append(Strip(entry["title"], entry["form"], entry["attack"], entry["client"], rows))
    return strips, len(entries) - len(strips)

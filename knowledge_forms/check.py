"""Are these uploads what docs/uploads.md says? Every problem at once; NumPy alone, a block at a time."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knowledge_forms.errors import AuditError
from knowledge_forms.header import FLOATS, INTEGERS, UPLOAD, Header, read_blocks, read_header
from knowledge_forms.store import SCHEMA_VERSION, parse_key

BROADCAST = "broadcast"
FORM_NAMES = ("raw", "prototype", "entangled")
ONE_HOT = ("raw", "prototype")
METADATA: dict[str, type] = {"system": str, "form": str, "mechanism": str, "feature_width": int, "classes": int}
SHARED = ("system", "mechanism", "feature_width", "classes")
MAX_WIDTH = 2**20
SUM_TOLERANCE = 1e-4
"""A float32 sum over 100,000 classes stays within this of 1."""
SHOWN = 20
"""Problems listed of one file; the rest is counted."""

Key = tuple[int, int]


@dataclass
class Checked:
    """problems: what must be mended. notes: what may be meant so. entries: form -> (client, round) -> file."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: int = 0
    entries: dict[str, dict[Key, Path]] = field(default_factory=lambda: defaultdict(dict))


def upload_files(paths: Sequence[Path]) -> list[Path]:
    """The files to look at: files as given, the .safetensors files below folders (of a run folder, its uploads)."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inner = path / "uploads"
            folder = inner if inner.is_dir() else path
            below = sorted(folder.rglob("*.safetensors"))
            if not below:
                raise AuditError(f"{folder} holds no .safetensors file; check the path or record uploads first")
            found += below
        else:
            found.append(path)
    return found


def check(paths: Sequence[Path]) -> Checked:
    """Look at files and folders of uploads; raises AuditError only where a folder holds nothing to check."""
    result = Checked()
    seen: dict[str, tuple[Path, dict[str, Any]]] = {}
    for path in upload_files(paths):
        result.files += 1
        try:
            header = read_header(path, UPLOAD)
            found = list(metadata_problems(header))
            if not found:
                found = [*_agreement(header, seen), *_entries(header, result)]
        except AuditError as error:
            result.problems.append(str(error))
            continue
        result.problems += [f"{path}: {problem}" for problem in found[:SHOWN]]
        if len(found) > SHOWN:
            result.problems.append(f"{path}: and {len(found) - SHOWN} more problems")
    for form, entries in sorted(result.entries.items()):
        _rounds(form, entries, result)
    return result


def metadata_problems(header: Header) -> Iterator[str]:
    """What is wrong with the metadata of one file."""
    meta = header.metadata
    if not meta:
        yield "has no metadata under the key 'fedre_audit'; write it with the recorder, or see docs/uploads.md"
        return
    version = meta.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        yield f"schema_version is {str(version)[:20]}, this program reads {SCHEMA_VERSION}"
    for key, kind in METADATA.items():
        if type(meta.get(key)) is not kind:
            yield f"metadata '{key}' is {str(meta.get(key))[:40]!r}, must be {'text' if kind is str else 'whole'}"
        elif kind is int and not 1 <= meta[key] <= MAX_WIDTH:
            yield f"metadata '{key}' is {str(meta[key])[:20]}, must be between 1 and {MAX_WIDTH}"
        elif kind is str and len(meta[key]) > 100:
            yield f"metadata '{key}' has {len(meta[key])} letters, at most 100 are read"
    if isinstance(meta.get("form"), str) and meta["form"] not in (*FORM_NAMES, BROADCAST):
        yield f"form is {meta['form'][:40]!r}, must be one of {', '.join((*FORM_NAMES, BROADCAST))}"


def _agreement(header: Header, seen: dict[str, tuple[Path, dict[str, Any]]]) -> Iterator[str]:
    """Files of one form agree on everything; a broadcast agrees with the uploads on width and classes."""
    meta = header.metadata
    first_path, first = seen.setdefault(meta["form"], (header.path, meta))
    any_path, other = next(iter(seen.values()))
    for key in SHARED:
        if meta[key] != first[key]:
            yield f"{key} is {meta[key]!r}, but {first[key]!r} in {first_path}"
        elif key in ("feature_width", "classes") and meta[key] != other[key]:
            yield f"{key} is {meta[key]!r}, but {other[key]!r} in {any_path}"


def _entries(header: Header, result: Checked) -> Iterator[str]:
    names: dict[Key, dict[str, str]] = defaultdict(dict)
    for key in header.slots:
        parsed = parse_key(key)
        if parsed is None:
            yield f"key {key[:80]!r} is not client/round/name"
        elif parsed[2] in names[parsed[:2]]:
            yield f"key {key[:80]!r} comes twice, written differently"
        else:
            names[parsed[:2]][parsed[2]] = key
    form = header.metadata["form"]
    if not names:
        yield "holds no entry"
    for at, arrays in sorted(names.items()):
        where = f"client {at[0]}, round {at[1]}"
        earlier = result.entries[form].get(at)
        if earlier is not None:
            yield f"{where} is in {earlier} too; keep one of them"
        result.entries[form][at] = header.path
        look = _classifier if form == BROADCAST else _upload
        yield from (f"{where}: {problem}" for problem in look(header, arrays))


def _upload(header: Header, arrays: dict[str, str]) -> Iterator[str]:
    meta = header.metadata
    missing = [name for name in ("representation", "label_encoding") if name not in arrays]
    if missing:
        yield f"has no {' and no '.join(missing)}"
        return
    representation, encoding = (header.slots[arrays[name]] for name in ("representation", "label_encoding"))
    rows = representation.shape[0] if representation.shape else 0
    yield from _finite(header, arrays["representation"], "representation", (rows, meta["feature_width"]))
    if rows < 1:
        yield "representation has no rows"
    if meta["form"] == "entangled" and rows > 1:
        yield f"an entangled upload is one row, this has {rows}"
    ids = encoding.dtype in INTEGERS and len(encoding.shape) == 1
    if ids and meta["form"] in ONE_HOT and encoding.shape == (rows,):
        yield from _class_ids(header, arrays["label_encoding"])
    elif encoding.dtype in FLOATS and encoding.shape == (rows, meta["classes"]):
        yield from label_problems(meta["form"], meta["classes"], read_blocks(header, arrays["label_encoding"]))
    else:
        yield (
            f"label_encoding is {encoding.dtype} {list(encoding.shape)}, must be a float array "
            f"[{rows}, {meta['classes']}]" + (f", or class ids [{rows}]" if meta["form"] in ONE_HOT else "")
        )
    for name in sorted(set(arrays) - {"representation", "label_encoding"}):
        if header.slots[arrays[name]].dtype in FLOATS:
            yield from _finite(header, arrays[name], name, None)


def _classifier(header: Header, arrays: dict[str, str]) -> Iterator[str]:
    width, classes = header.metadata["feature_width"], header.metadata["classes"]
    for name, shape in {"classifier.weight": (classes, width), "classifier.bias": (classes,)}.items():
        if name not in arrays:
            yield f"has no {name}"
        else:
            yield from _finite(header, arrays[name], name, shape)


def _finite(header: Header, key: str, name: str, shape: tuple[int, ...] | None) -> Iterator[str]:
    slot = header.slots[key]
    if slot.dtype not in FLOATS:
        yield f"{name} is {slot.dtype}, must be a float array ({', '.join(FLOATS)})"
    elif shape is not None and slot.shape != shape:
        yield f"{name} is {list(slot.shape)}, must be {list(shape)}"
    elif slot.shape:
        bad = sum(int((~np.isfinite(block)).sum()) for block in read_blocks(header, key))
        if bad:
            yield f"{name} holds {bad} values that are NaN or infinite"


def _class_ids(header: Header, key: str) -> Iterator[str]:
    classes, outside, times = header.metadata["classes"], 0, np.zeros(header.metadata["classes"], np.int64)
    for block in read_blocks(header, key):
        inside = (block >= 0) & (block < classes)
        outside += int((~inside).sum())
        times += np.bincount(block[inside].astype(np.int64), minlength=classes)
    if outside:
        yield f"label_encoding names {outside} classes outside 0..{classes - 1}"
    yield from _repeated(header.metadata["form"], times)


def label_problems(form: str, classes: int, blocks: Iterable[NDArray[Any]]) -> Iterator[str]:
    """What is wrong with label encodings: float blocks [n,classes], all of one upload."""
    counted = dict.fromkeys(("hold NaN or infinite values", "hold negative weights", "do not sum to 1"), 0)
    soft, times = 0, np.zeros(classes, np.int64)
    for block in blocks:
        finite = np.isfinite(block).all(1)
        kept = block[finite].astype(np.float64)
        negative = (kept < 0).any(1)
        # Sums of huge weights overflow to infinity, which is no 1 either.
        with np.errstate(over="ignore", invalid="ignore"):
            unsummed = ~(np.abs(kept.sum(1) - 1) <= SUM_TOLERANCE)
        for problem, bad in zip(counted, (~finite, negative, unsummed), strict=True):
            counted[problem] += int(bad.sum())
        good = kept[~negative & ~unsummed]
        one_hot = (good > 0).sum(1) == 1
        soft += int((~one_hot).sum())
        times += np.bincount(good[one_hot].argmax(1), minlength=classes)
    yield from (f"{bad} rows of label_encoding {problem}" for problem, bad in counted.items() if bad)
    if form in ONE_HOT and soft:
        yield f"{soft} rows of label_encoding name several classes; rows of a {form} upload are one-hot"
    yield from _repeated(form, times)


def _repeated(form: str, times: NDArray[np.int64]) -> Iterator[str]:
    if form == "prototype" and (times > 1).any():
        yield f"class {int(times.argmax())} has {int(times.max())} prototypes; a client sends one per class"


def _rounds(form: str, entries: Iterable[Key], result: Checked) -> None:
    """A round that nobody uploaded is a problem; one that a client missed may be partial participation."""
    rounds: dict[int, set[int]] = defaultdict(set)
    for client, round_ in entries:
        rounds[client].add(round_)
    everyone = set().union(*rounds.values())
    gaps = _gaps(everyone)
    if gaps:
        result.problems.append(f"{form}: {gaps} missing between the first and the last; add its files")
    for client, own in sorted(rounds.items()):
        missed = _gaps(own, of=everyone)
        if missed and form != BROADCAST:
            result.notes.append(f"{form}: client {client} did not upload {missed}, while others did")


def _gaps(own: set[int], of: set[int] | None = None) -> str:
    """'round 3' or '12 rounds (3, 4, 5, ...)' that are missing; counted without listing a range as long as an id."""
    ordered = sorted(own)
    if of is not None:
        absent = sorted(r for r in of - own if ordered[0] < r < ordered[-1])
        count, first = len(absent), absent[:5]
    else:
        count = ordered[-1] - ordered[0] + 1 - len(ordered)
        first = []
        for low, high in pairwise(ordered):
            first += range(low + 1, min(high, low + 6))
        first = first[:5]
    if count == 0:
        return ""
    listed = ", ".join(map(str, first)) + (", ..." if count > len(first) else "")
    return f"round {listed}" if count == 1 else f"{count} rounds ({listed})"

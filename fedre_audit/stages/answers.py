"""Answers of attacks on disk, written and read block by block.

    client-000.safetensors            images, permuted f32 [k,c,h,w]: answers to the upload and to someone else's;
                                      rows int64 [k]: upload rows; metadata: what they cost, and `parts`
    client-000-part-001.safetensors   the next rows, where the upload has more of them than make a block

The first file is written last: where it is, all are.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import torch

from attacks.base import Attack
from attacks.floors import permuted_view
from attacks.knowledge import Q3
from fedre_audit.audit.scoring import ATTACK, PERMUTED
from fedre_audit.memory import return_memory
from fedre_audit.pictures import TOGETHER, Images, Stored, answer, at_once, take_rows
from knowledge_forms.base import ServerView
from knowledge_forms.store import read_tensors, write_bytes, write_tensors


def part_file(path: Path, part: int) -> Path:
    """Where a part of the answers in `path` lies; part 0 is `path` itself."""
    return path.with_name(f"{path.stem}-part-{part:03d}{path.suffix}") if part else path


def write_answers(path: Path, attack: Attack, view: ServerView, knowledge: Q3, rows: int | None, stream: int) -> None:
    """Answers of a fitted attack to a view (its first `rows`; None: all) and to its permuted null, with their cost."""
    shown = take_rows(view, slice(rows))
    null = permuted_view(shown, knowledge)
    count = len(shown.latest.representation)
    parts = torch.arange(count).split(count if attack.name in TOGETHER else at_once(knowledge.images.shape))
    if len(parts) > 1:
        return_memory()
    decoded_by: Counter[str] = Counter()
    for part in reversed(range(len(parts))):
        found = answer(attack, shown, parts[part])
        decoded_by += Counter(getattr(attack, "choice_", ()))  # of these answers, not of the null's
        others = answer(attack, null, parts[part])
        tensors = {"images": found.cpu().numpy(), "permuted": others.cpu().numpy(), "rows": parts[part].numpy()}
        cost = {
            "client": shown.latest.client,
            "round": shown.latest.round,
            "level": attack.level,
            "stream": stream,
            "auxiliary": len(knowledge.images),
            "steps": getattr(attack, "steps_", getattr(attack, "steps", None)),
            "restarts": getattr(attack, "restarts", None),
            "decoded_by": dict(decoded_by),
            "parts": len(parts),
        }
        write_tensors(part_file(path, part), tensors, cost)


def read_answers(path: Path) -> tuple[dict[str, Images], dict[str, Any]]:
    """Images by predictor ('attack', 'permuted'), not yet in memory, and what they cost."""
    _, meta = read_tensors(path)
    paths = tuple(part_file(path, part) for part in range(meta.get("parts", 1)))
    return {ATTACK: Stored(paths, "images"), PERMUTED: Stored(paths, "permuted")}, meta


def copy_answers(source: Path, path: Path) -> None:
    """The same answers at another place, the first file last."""
    for part in reversed(range(read_tensors(source)[1].get("parts", 1))):
        write_bytes(part_file(path, part), part_file(source, part).read_bytes())

"""The pictures of the report: target | reconstruction | class-mean guess of the best, median and worst pair."""

import io
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from fedre_audit.audit.intervals import Floats
from fedre_audit.audit.rows import FormAttack
from fedre_audit.audit.scoring import ATTACK
from fedre_audit.audit.truth import read_truth
from fedre_audit.federation.view import read_view
from fedre_audit.runs import Run
from fedre_audit.stages.prepare import Prepared
from fedre_audit.stages.tables import Case, cases
from knowledge_forms.store import write_bytes

SHOWN_FLOOR = "class_mean"
"""The guess beside each reconstruction; the page names it, since a row's best floor may be another."""


def png_bytes(image: Tensor) -> bytes:
    """[c,h,w] in [0,1] -> PNG; NaN pixels become black (the report says so beside it)."""
    array = (image.nan_to_num(0.0).clamp(0, 1) * 255).round().byte().permute(1, 2, 0).numpy()
    stream = io.BytesIO()
    Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array).save(stream, "PNG")
    return stream.getvalue()


def by_rank(values: Floats) -> dict[str, int]:
    """Positions of the best, median and worst finite PSNR: chosen by rank, never by hand.

    >>> by_rank(np.array([3.0, 1.0, np.nan, 2.0]))
    {'best': 0, 'median': 3, 'worst': 1}
    """
    finite = np.flatnonzero(np.isfinite(values))
    if len(finite) == 0:
        return {}
    order = finite[np.argsort(-values[finite], kind="stable")]
    return {"best": int(order[0]), "median": int(order[len(order) // 2]), "worst": int(order[-1])}


def rank_pictures(run: Run, found: dict[int, Case], scored: FormAttack, rank: str, pair: int) -> list[dict[str, Any]]:
    """Writes the three PNG files of one pair and returns their entries of strips.json."""
    table = scored.table
    client = int(table.client[pair])
    case = found[client]
    targets, _ = case.targets("members")
    local = (targets.sample_ids == int(table.sample[pair])).nonzero()[0]
    row = targets.row[local]
    answered = case.answers(scored.attack)
    assert answered is not None  # it was scored
    pictures = {
        "target": (targets.images[local][0], None),
        "reconstruction": (answered[0][ATTACK][row][0], table.values[ATTACK]["psnr"][pair]),
        "floor": (case.floors[SHOWN_FLOOR][row][0], table.values[SHOWN_FLOOR]["psnr"][pair]),
    }
    entries: list[dict[str, Any]] = []
    for role, (picture, psnr) in pictures.items():
        png = f"strips/{scored.form}-{scored.attack}-{scored.stream}-{rank}-{role}.png"
        write_bytes(run.path / png, png_bytes(picture))
        entries.append({"role": role, "png": png, "rank": rank, "psnr": None if psnr is None else float(psnr)})
    return entries


def strip(run: Run, found: dict[int, Case], scored: FormAttack) -> dict[str, Any]:
    """One strip: best, median and worst of one form, attack and stream length."""
    ranks = by_rank(scored.table.values[ATTACK]["psnr"])
    clients = {rank: int(scored.table.client[pair]) for rank, pair in ranks.items()}
    several = len(set(clients.values())) > 1
    rounds = "one round" if scored.stream == 1 else f"{scored.stream} rounds, unmixed"
    return {
        "form": scored.form,
        "attack": scored.attack,
        # In the order of the pictures, so that each has its owner.
        "client": ", ".join(f"{client} ({rank})" for rank, client in clients.items())
        if several
        else str(next(iter(clients.values()), "")),
        "title": f"{scored.form}, {scored.attack}, {rounds}",
        "images": [
            entry for rank, pair in ranks.items() for entry in rank_pictures(run, found, scored, rank, pair)
        ],
    }  # fmt: skip


def write_strips(run: Run, parts: list[tuple[Run, Prepared]], tables: list[FormAttack]) -> None:
    """Strips of every form, attack and stream length, and their index strips/strips.json."""
    shown = [t for t in tables if t.target == "members" and "psnr" in t.table.values[ATTACK]]
    made: dict[tuple[str, bool], dict[int, Case]] = {}
    for form in dict.fromkeys(t.form for t in shown):
        for seed, (one, prepared) in enumerate(parts):
            offset = seed * (run.config.clients or 0)
            for case in cases(one, prepared, read_view(one.path, form), read_truth(one.path, form), offset):
                made.setdefault((form, case.stream > 1), {})[case.cluster] = case
    strips = [strip(run, made[t.form, t.stream > 1], t) for t in shown]
    run.write_json("strips/strips.json", [entry for entry in strips if entry["images"]])

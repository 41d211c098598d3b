"""The pictures of the report: target | reconstruction | floor for the best, median and worst pair by rank."""

import io
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from fedre_audit.audit.intervals import Floats
from fedre_audit.audit.scoring import ATTACK, FormAttack, floor_images, private_images
from fedre_audit.audit.truth import make_targets, read_truth
from fedre_audit.federation.view import read_view
from fedre_audit.runs import Run
from fedre_audit.seeding import derive_seed
from fedre_audit.stages.attack import auxiliary
from fedre_audit.stages.prepare import Prepared
from knowledge_forms.store import read_tensors, write_bytes

SHOWN_FLOOR = "class_mean"


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


def strip(run: Run, prepared: Prepared, scored: FormAttack, rank: str, pair: int) -> dict[str, Any]:
    """One strip: writes its PNG files and returns its entry of strips.json."""
    table, client = scored.table, int(scored.table.client[pair])
    own = read_view(run.path, scored.form).client(client)
    contribution = read_truth(run.path, scored.form)[client, own.latest.round]
    targets = make_targets("members", contribution, private_images(prepared.data.images, contribution))
    local = pair - int(np.flatnonzero(table.client == client)[0])
    row = int(targets.row[local])
    name = f"client-{client:03d}.safetensors"
    tensors, _ = read_tensors(run.path / "attacks" / scored.form / scored.attack / name)
    images, labels = auxiliary(prepared)
    floors = floor_images(own, images, labels, derive_seed(run.config.seed, "floor", client=client))
    pictures = {
        "target": (targets.images[local], None),
        "reconstruction": (torch.from_numpy(tensors["images"])[row], table.values[ATTACK]["psnr"][pair]),
        "floor": (floors[SHOWN_FLOOR][row], table.values[SHOWN_FLOOR]["psnr"][pair]),
    }
    entries: list[dict[str, Any]] = []
    for role, (picture, psnr) in pictures.items():
        png = f"strips/{scored.form}-{scored.attack}-{rank}-{role}.png"
        write_bytes(run.path / png, png_bytes(picture))
        entries.append({"role": role, "png": png, "rank": rank, "psnr": None if psnr is None else float(psnr)})
    label = prepared.data.classes[int(prepared.data.labels[int(table.sample[pair])])]
    title = f"{scored.form}, {scored.attack}: {rank} pair (client {client}, class {label})"
    return {"form": scored.form, "attack": scored.attack, "client": client, "title": title, "images": entries}


def write_strips(run: Run, prepared: Prepared, tables: list[FormAttack]) -> None:
    """Strips of every form and attack, and their index strips/strips.json."""
    strips = [
        strip(run, prepared, scored, rank, pair)
        for scored in tables
        if scored.target == "members"
        for rank, pair in by_rank(scored.table.values[ATTACK]["psnr"]).items()
    ]
    run.write_json("strips/strips.json", strips)

"""The published-like attack: pixels fitted to an upload from a noise start, scored against every image that made it.

How the published figures were measured is described in no text we could read. This protocol gives their pattern; its
free parameters are a `Setting`, and the sweep says which of them give all three figures at once.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attacks.floors import MeanImage
from attacks.knowledge import Q0
from attacks.optimisation import feature_scale, optimise
from fedre_audit.audit.intervals import Floats, Ints
from fedre_audit.audit.metrics import score_images
from fedre_audit.audit.truth import read_truth
from fedre_audit.federation.view import read_view
from fedre_audit.models import as_encoder, load_clients
from fedre_audit.seeding import generator
from fedre_audit.stages.prepare import Prepared
from knowledge_forms.base import ServerView

FORMS_IN_ORDER = ("raw", "prototype", "entangled")
PUBLISHED = {"raw": (12.89, 4514.91), "prototype": (10.25, 6992.04), "entangled": (9.66, 7781.87)}
"""PSNR in dB and MSE on the 0-255 scale, TinyImageNet (FedRE, arXiv 2511.22265)."""


@dataclass(frozen=True)
class Setting:
    """lr: step size of Adam. tv: weight of the total-variation prior. start: 'noise' U(0,1) or 'normal' N(.5,.5).

    target: what an upload row is scored against: the mean over its 'members', its 'nearest' member, or the 'mixture'
    of its members by their weights.
    """

    steps: int
    lr: float
    tv: float
    start: str = "noise"
    target: str = "members"


@dataclass(frozen=True)
class Scored:
    """Per attacked upload row: client [n], PSNR, MSE and the mean image's PSNR, each averaged over its members."""

    client: Ints
    psnr: Floats
    mse: Floats
    floor: Floats


def chosen_rows(view: ServerView, per_client: int) -> list[tuple[int, int, int]]:
    """(client, round, row) of up to `per_client` rows a client, evenly spaced over its last upload: the round whose
    weights the attacker holds."""
    found = []
    for client in view.clients:
        last = view.client(client).uploads[-1]
        rows = len(last.representation)
        picked = np.linspace(0, rows - 1, min(per_client, rows)).round().astype(int)
        found += [(client, last.round, int(row)) for row in np.unique(picked)]
    return found


def start_images(kind: str, shape: tuple[int, ...], draw: torch.Generator) -> Tensor:
    """The first guess: 'noise' U(0,1), or 'normal' N(0.5, 0.5) clamped to [0,1]."""
    if kind == "noise":
        return torch.rand(shape, generator=draw)
    return (0.5 + 0.5 * torch.randn(shape, generator=draw)).clamp(0.0, 1.0)


def score_row(image: Tensor, members: Tensor, weights: Tensor, mean: Tensor, target: str) -> tuple[float, float, float]:
    """PSNR, MSE and the mean image's PSNR of one reconstruction [c,h,w] against members [m,c,h,w], weights [m]."""
    if target == "mixture":
        members = (members * (weights / weights.sum())[:, None, None, None]).sum(0, keepdim=True)
    scores = score_images(("psnr", "mse"), image.expand_as(members).contiguous(), members)
    floor = score_images(("psnr",), mean.expand_as(members).contiguous(), members)["psnr"]
    if target == "nearest":
        best = scores["psnr"].argmax()
        return float(scores["psnr"][best]), float(scores["mse"][best]), float(floor.max())
    return float(scores["psnr"].mean()), float(scores["mse"].mean()), float(floor.mean())


def attack_form(
    run_dir: Path, prepared: Prepared, form: str, setting: Setting, *, per_client: int, seed: int
) -> Scored:
    """Attack up to `per_client` rows of every client and score each as `setting.target` says."""
    view, truth, models = read_view(run_dir, form), read_truth(run_dir, form), load_clients(run_dir)
    auxiliary = prepared.auxiliary.images.float() / 255.0
    labels, classes = prepared.auxiliary.labels, len(prepared.data.classes)
    mean = MeanImage().fit(Q0(auxiliary, labels, classes, seed)).mean_
    chosen = chosen_rows(view, per_client)
    columns: dict[str, list[float]] = {"client": [], "psnr": [], "mse": [], "floor": []}
    for client in view.clients:
        encoder = as_encoder(models[client])
        uploads = {upload.round: upload for upload in view.client(client).uploads}
        own = [(round_, row) for owner, round_, row in chosen if owner == client]
        z = torch.stack([uploads[round_].representation[row] for round_, row in own])
        with torch.no_grad():
            scale = feature_scale(encoder(auxiliary[:256]), "squared")
        draw = generator(seed, "pixel start", client=client)
        start = start_images(setting.start, (len(own), *prepared.data.shape), draw)
        images, _ = optimise(encoder, z, start, steps=setting.steps, lr=setting.lr, tv=setting.tv, scale=scale)
        for image, (round_, row) in zip(images, own, strict=True):
            made = truth[client, round_]
            inside = (made.row == row) & (made.weight > 0)
            members = prepared.data.images[made.sample_ids[inside]].float() / 255.0
            found = score_row(image, members, made.weight[inside], mean, setting.target)
            for key, value in zip(("psnr", "mse", "floor"), found, strict=True):
                columns[key].append(value)
            columns["client"].append(client)
    return Scored(
        np.array(columns["client"], dtype=np.int64),
        *(np.array(columns[key], dtype=np.float64) for key in ("psnr", "mse", "floor")),
    )


def distance_to_published(means: dict[str, tuple[float, float]]) -> float:
    """How far all three figures are, in units of what counts as equal (0.5 dB, 10 % of the MSE): 1 or less is equal."""
    parts = []
    for form, (psnr, mse) in PUBLISHED.items():
        own_psnr, own_mse = means[form]
        parts += [abs(own_psnr - psnr) / 0.5, abs(own_mse - mse) / (0.1 * mse)]
    return float(max(parts))


def measure_setting(
    folders: dict[str, Path], prepared: Prepared, setting: Setting, per_client: int, seed: int
) -> dict[str, Any]:
    """Means of the three forms at one setting, their distance to the published figures, and the means by model."""
    scored = {
        form: attack_form(folders[form], prepared, form, setting, per_client=per_client, seed=seed)
        for form in FORMS_IN_ORDER
    }
    means = {form: (float(s.psnr.mean()), float(s.mse.mean())) for form, s in scored.items()}
    names = [model.name for model in load_clients(folders["raw"])]
    by_model = {
        name: {form: float(s.psnr[[names[client] == name for client in s.client]].mean()) for form, s in scored.items()}
        for name in sorted(set(names))
    }
    return {
        **asdict(setting),
        "psnr": {form: psnr for form, (psnr, _) in means.items()},
        "mse": {form: mse for form, (_, mse) in means.items()},
        "floor": float(np.mean([s.floor.mean() for s in scored.values()])),
        "distance": distance_to_published(means),
        "psnr_by_model": by_model,
    }

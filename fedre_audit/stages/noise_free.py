"""Bounds of an audit of noise-free uploads: no proof applies, and what a linear decoder achieves is said instead."""

from typing import Any

import torch
from torch import Tensor

from attacks.ridge import PENALTIES, choose_penalty, ridge
from fedre_audit.models import as_encoder, load_clients
from fedre_audit.runs import Run

ENCODERS = 3
SCALE = 255.0**2


def linear_error(images: Tensor, representations: Tensor) -> float:
    """Held-out mean squared error (0-255 scale) of the affine decoder fitted on the first half of the pairs."""
    flat, half = images.flatten(1), len(images) // 2
    penalty = choose_penalty(representations[:half], flat[:half], PENALTIES)
    found = ridge(representations[:half], flat[:half], penalty)(representations[half:])
    return float((found.clamp(0, 1) - flat[half:]).square().mean() * SCALE)


def achievable(run: Run, images: Tensor) -> tuple[float, int] | None:
    """Mean of the linear error over the first encoders, and how many these are; None with too few images to split."""
    if len(images) < 4:
        return None
    encoders = [as_encoder(model) for model in load_clients(run.path)[:ENCODERS]]
    with torch.no_grad():
        errors = [linear_error(images, torch.cat([e(part) for part in images.split(512)])) for e in encoders]
    return sum(errors) / len(errors), len(errors)


def noise_free_bounds(form: str, rows: list[dict[str, Any]], linear: tuple[float, int] | None) -> list[dict[str, Any]]:
    """Entries of the block `bounds`: value on the 0-255 scale, and what to hold it against. linear: see achievable."""
    found: list[dict[str, Any]] = [
        {
            "form": form,
            "kind": "proven lower bound on MSE",
            "value": None,
            "against": "none applies: uploads carry no noise, so nothing is proven about any attacker",
        }
    ]
    if linear is None:
        return found
    reached = [r["value"] for r in rows if (r["form"], r["metric"], r["slice"]) == ("raw", "mse", "all")
               and r["attack"] == "ridge" and r["target"] == "members"]  # fmt: skip
    found.append(
        {
            "form": "raw",
            "kind": f"linear decoder, MSE achievable on public images ({linear[1]} encoders)",
            "value": linear[0],
            "against": {"ridge on private images": reached[0] if reached else None},
        }
    )
    return found

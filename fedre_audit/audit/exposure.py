"""Who is most exposed: clients and classes by gain, and how the gains of single images spread."""

from typing import Any

import numpy as np

from fedre_audit.audit.metrics import sign_of
from fedre_audit.audit.rows import FormAttack
from fedre_audit.audit.scoring import ATTACK

SHOWN = 20
BINS = 24


def label_of(scored: FormAttack) -> str:
    """The attack, and the rounds it used where they are several."""
    return scored.attack if scored.stream == 1 else f"{scored.attack}, {scored.stream} rounds"


def best_floor(scored: FormAttack, metric: str) -> str:
    """The floor that leaks most on the mean of all pairs."""
    return max(scored.floors, key=lambda name: sign_of(metric) * float(np.nanmean(scored.table.values[name][metric])))


def exposure(scored: FormAttack, metric: str = "psnr") -> list[dict[str, Any]]:
    """Clients and classes by mean gain over the best floor, the most exposed first."""
    table, floor = scored.table, best_floor(scored, metric)
    own, base = table.values[ATTACK][metric], table.values[floor][metric]
    found = []
    for client, label in sorted(set(zip(table.client.tolist(), table.label.tolist(), strict=True))):
        pairs = (table.client == client) & (table.label == label) & np.isfinite(own)
        if pairs.any():
            found.append(
                {"client": client, "class": label if label >= 0 else None, "form": scored.form,
                 "attack": label_of(scored), "metric": metric, "value": float(own[pairs].mean()),
                 "floor": float(base[pairs].mean()), "n": int(pairs.sum())}
            )  # fmt: skip
    return sorted(found, key=lambda item: -sign_of(metric) * (item["value"] - item["floor"]))[:SHOWN]


def distribution(scored: FormAttack, metric: str = "psnr") -> dict[str, Any] | None:
    """Gains of single images over the best floor, in bins; None where no pair is finite."""
    gains = sign_of(metric) * (
        scored.table.values[ATTACK][metric] - scored.table.values[best_floor(scored, metric)][metric]
    )
    gains = gains[np.isfinite(gains)]
    if len(gains) == 0:
        return None
    low, high = float(np.floor(gains.min())), float(np.ceil(gains.max()))
    counts, edges = np.histogram(gains, bins=BINS, range=(low, max(high, low + 1)))
    return {"form": scored.form, "attack": label_of(scored), "metric": metric,
            "edges": [round(float(edge), 6) for edge in edges], "counts": counts.tolist()}  # fmt: skip

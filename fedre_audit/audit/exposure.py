"""Who is most exposed: clients, classes and single images by gain, and how the gains of single images spread."""

from typing import Any

import numpy as np

from fedre_audit.audit.metrics import sign_of
from fedre_audit.audit.rows import FormAttack
from fedre_audit.audit.scoring import ATTACK, PairScores

SHOWN = 20
SAMPLES = 10
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


def exposed_samples(scored: FormAttack, picks: PairScores | None, metric: str = "psnr") -> list[dict[str, Any]]:
    """The single images that gain most over the best floor, the most exposed first, each named once per client.

    picks: the retrieval table of the same answers; `picked` is its top-1 hit (a share where candidates tie), None
    where the image had too few candidates.
    """
    table, floor = scored.table, best_floor(scored, metric)
    own, base = table.values[ATTACK][metric], table.values[floor][metric]
    gain = sign_of(metric) * (own - base)
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for pair in np.argsort(np.where(np.isfinite(gain), -gain, np.inf), kind="stable"):
        who = int(table.client[pair]), int(table.sample[pair])
        if len(found) == SAMPLES or not np.isfinite(gain[pair]):
            break
        if who not in found:
            label = int(table.label[pair])
            found[who] = {
                "client": who[0], "class": label if label >= 0 else None, "sample": who[1], "form": scored.form,
                "attack": label_of(scored), "metric": metric, "value": float(own[pair]), "floor": float(base[pair]),
                "gain": float(gain[pair]), "picked": _picked(picks, *who),
            }  # fmt: skip
    return list(found.values())


def _picked(picks: PairScores | None, client: int, sample: int) -> float | None:
    """The best top-1 hit of one image over the rows it is in."""
    if picks is None:
        return None
    hits = picks.values[ATTACK]["retrieval_top1"][(picks.client == client) & (picks.sample == sample)]
    hits = hits[np.isfinite(hits)]
    return float(hits.max()) if len(hits) else None


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

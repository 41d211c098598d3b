"""Personalised accuracy of the systems that exist here, beside the published tables."""

from typing import Any

import numpy as np

from fedre_audit.audit.intervals import t_interval
from fedre_audit.figures.accuracy_fedre_local import accuracies
from fedre_audit.reproduce.base import REPRODUCTIONS, Outcome, Reproduction, Request, Row

PUBLISHED = {
    "practical": {"fedre": 82.60, "fedgh": 78.66, "local": 81.20, "fedallrep": None},
    "pathological": {"fedre": 86.20, "fedgh": 85.43, "local": 84.68, "fedallrep": None},
}
SETTINGS: dict[str, dict[str, Any]] = {
    "small": {"private_images": 1000, "family": "small", "rounds": 20, "seeds": 3, "many": 4000, "many_rounds": 20},
    "full": {
        "private_images": 60000,
        "family": "HtM-img-10",
        "rounds": 100,
        "seeds": 3,
        "many": 60000,
        "many_rounds": 100,
    },
}
RULE = "best weighted"


def row_of(what: str, setting: str, values: list[float], published: float | None, note: str) -> Row:
    """Mean over seeds with its interval."""
    return Row(what, setting, float(np.mean(values)), published, "% accuracy", t_interval(np.array(values)), note=note)


def run(request: Request) -> Outcome:
    """Ten clients by partition and system over seeds; a hundred clients at 10 % and 20 % participation, one seed."""
    chosen = SETTINGS[request.preset]
    size, family, rounds = int(chosen["private_images"]), str(chosen["family"]), int(chosen["rounds"])
    seeds = range(request.seed, request.seed + int(chosen["seeds"]))
    shared = {
        "family": family, "device": request.device,
        "data_root": str(request.data_root) if request.data_root else None,
    }  # fmt: skip
    note = f"{RULE} accuracy over rounds (chosen on test data, as published); {size} images, {rounds} rounds, {family}"
    rows, gains = [], {}
    for partition, systems in PUBLISHED.items():
        by = {
            system: [
                accuracies(system, seed, partition=partition, private_images=size, rounds=rounds, **shared)[RULE]
                for seed in seeds
            ]
            for system in systems
        }
        setting = f"CIFAR-10, {partition}, 10 clients, {len(seeds)} seeds"
        rows += [row_of(system, setting, values, systems[system], note) for system, values in by.items()]
        gains[partition] = np.array(by["fedre"]) - np.array(by["local"])
        rows.append(row_of("fedre minus local", setting, list(gains[partition]),
                           (systems["fedre"] or 0) - (systems["local"] or 0), "paired over seeds"))  # fmt: skip
    many, many_rounds = int(chosen["many"]), int(chosen["many_rounds"])
    for share in (0.1, 0.2):
        for system in ("fedre", "local"):
            value = accuracies(system, request.seed, clients=100, participation=share, private_images=many,
                               rounds=many_rounds, **shared)[RULE]  # fmt: skip
            setting = f"CIFAR-10, practical, 100 clients, {share:.0%} a round, one seed"
            rows.append(Row(system, setting, value, None, "% accuracy", note=f"{many} images, {many_rounds} rounds"))
    above = [name for name, gain in gains.items() if (t_interval(gain) or (0, 0))[0] > 0]
    below = [name for name, gain in gains.items() if (t_interval(gain) or (0, 0))[1] < 0]
    reading = (
        f"FedRE above purely local training with an interval above 0: {', '.join(above) or 'in neither partition'}; "
        f"below it: {', '.join(below) or 'in neither'}. The setting is not the published one (sizes and models in the "
        "notes), so the differences say how far they are apart, not which is wrong."
    )
    return Outcome(rows, reading)


REPRODUCTIONS.register("accuracy")(
    Reproduction(
        title="Personalised accuracy",
        protocol=(
            "Each client is tested on its own quarter of images, after the broadcast and before local training where "
            "the system broadcasts. `full` is the published size and is meant for CUDA."
        ),
        run=run,
    )
)

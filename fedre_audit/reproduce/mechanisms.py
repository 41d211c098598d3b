"""Mechanisms, mappings and weight laws: accuracy and leakage beside each other, one audit each."""

from typing import Any

from fedre_audit.config import AuditConfig
from fedre_audit.pipeline import audit
from fedre_audit.reproduce.base import REPRODUCTIONS, Outcome, Reproduction, Request, Row
from fedre_audit.result import AuditResult
from reports.scores import Scores

ARMS: dict[str, tuple[dict[str, Any], float | None]] = {
    "RAP, uniform, resampled (default)": ({}, 46.36),
    "RSR": ({"mechanism": "RSR"}, 40.41),
    "VAR": ({"mechanism": "VAR"}, 44.88),
    "RAR": ({"mechanism": "RAR"}, 43.19),
    "RSP": ({"mechanism": "RSP"}, 43.25),
    "VAP": ({"mechanism": "VAP"}, 46.12),
    "RAP, fixed weights": ({"weights": "fixed"}, 45.84),
    "RAP, Laplace": ({"weight_law": "laplace"}, None),
    "RAP, Gaussian": ({"weight_law": "gaussian"}, None),
    "RAP, max-pool mapping": ({"mapping": "MP"}, 45.97),
    "RAP, learned mapping": ({"mapping": "FC"}, 44.53),
}
SMALL: dict[str, Any] = {
    "dataset": "mnist5k", "preset": "quick", "rounds": 40, "private_images": 1000, "auxiliary_images": 1500,
    "attacks": ["ridge"], "curves": [],
}  # fmt: skip
FULL: dict[str, Any] = {
    "dataset": "cifar100", "preset": "quick", "family": "HtM-img-10", "rounds": 100, "private_images": 60000,
    "auxiliary_images": 10000, "attacks": ["ridge"],
}  # fmt: skip


def strongest(scores: Scores) -> list[dict[str, Any]]:
    """Rows of the audited form over all classes, PSNR against members: the single upload and the stream."""
    form = scores["federation"]["form"]
    found: list[dict[str, Any]] = [
        dict(row)
        for row in scores["rows"]
        if (row["form"], row["metric"], row["target"], row["slice"]) == (form, "psnr", "members", "all")
    ]
    streams = sorted({row["stream"] for row in found})
    return [max((r for r in found if r["stream"] == s), key=lambda r: r["value"] or float("-inf")) for s in streams]


def leakage_rows(name: str, setting: str, scores: Scores) -> list[Row]:
    """Gain over the best floor of the single upload and of the stream, with why a stream row is missing."""
    rows = []
    for row in strongest(scores):
        what = "one upload" if row["stream"] == 1 else f"stream of {row['stream']} rounds"
        gain = row["gain"]["best"]
        note = f"{row['attack']}, {row['level']}, status {row['status']}; verdict {scores['verdict']['level']}"
        interval = None if gain["ci95"] is None else (gain["ci95"][0], gain["ci95"][1])
        rows.append(
            Row(f"{name}: gain over the floor, {what}", setting, gain["value"], None, "dB", interval, 0.0, note)
        )
    return rows


def run(request: Request) -> Outcome:
    """One audit an arm, the same clients, images and seed; each trains its own federation, so accuracy is its own."""
    base = {**(SMALL if request.preset == "small" else FULL), "seed": request.seed, "device": request.device}
    base["data_root"] = str(request.data_root) if request.data_root else None
    rows: list[Row] = []
    gains: dict[str, float] = {}
    for name, (changes, published) in ARMS.items():
        config = AuditConfig(**{**base, **changes})
        folder = request.out / name.replace(", ", "-").replace(" ", "-").replace("(", "").replace(")", "")
        scores = AuditResult(audit(config, folder, quiet=True).path).scores
        federation = scores["federation"]
        setting = f"{base['dataset']}, {federation['clients']} clients, {federation['rounds']} rounds"
        accuracy = federation["accuracy"]["best"]["weighted"]
        note = "published: CIFAR-100 PRA, another data set and other models"
        rows.append(Row(f"{name}: accuracy", setting, None if accuracy is None else 100 * accuracy, published,
                        "% accuracy", note=note))  # fmt: skip
        leaked = leakage_rows(name, setting, scores)
        rows += leaked
        gains[name] = max((row.ours for row in leaked if row.ours is not None), default=float("nan"))
    worst = max(gains, key=lambda name: gains[name])
    least = min(gains, key=lambda name: gains[name])
    reading = (
        f"Largest gain over the floor: {worst} ({gains[worst]:.2f} dB); smallest: {least} ({gains[least]:.2f} dB). "
        "The published table ranks mechanisms by accuracy alone; a mechanism that uploads one sample's representation "
        "or one prototype is a raw or a prototype upload by another name."
    )
    return Outcome(rows, reading)


REPRODUCTIONS.register("mechanisms")(
    Reproduction(
        title="Mechanisms, mappings and weight laws",
        protocol=(
            "Six entangling mechanisms, three mappings, three weight laws, resampled and fixed weights. Each arm is an "
            "audit of its own with the same clients, images, seed and attackers."
        ),
        run=run,
    )
)

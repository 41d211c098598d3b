"""What bfloat16 changes: accuracy against its spread over seeds, and PSNR of the ridge attack, FedAvgCNN on mnist5k."""

import statistics
import tempfile
from pathlib import Path
from typing import Any

import torch

from fedre_audit.audit.metrics import score_images
from fedre_audit.config import AuditConfig, resolve
from fedre_audit.data.base import to_float
from fedre_audit.federation.history import read_history
from fedre_audit.figures import FIGURES, Figure
from fedre_audit.pipeline import set_up_torch
from fedre_audit.runs import open_run
from fedre_audit.stages import attack as attacking
from fedre_audit.stages import train as training
from fedre_audit.stages.prepare import prepare
from knowledge_forms.store import read_tensors

SEEDS = range(5)
SETTING: dict[str, Any] = {
    "family": "fedavg_cnn", "clients": 4, "rounds": 20, "private_images": 600, "auxiliary_images": 1000,
    "attacks": ["ridge"], "device": "cpu",
}  # fmt: skip
SOURCES = ("fedre_audit/federation/client.py", "fedre_audit/federation/local.py", "fedre_audit/figures/precision.py")


def one(seed: int, precision: Any) -> tuple[float, float]:
    """(last weighted accuracy, mean PSNR of ridge on the raw representations) of one run."""
    config = resolve(AuditConfig(seed=seed, precision=precision, **SETTING))
    set_up_torch(config)
    with tempfile.TemporaryDirectory() as name:
        prepared, run = prepare(config), open_run(Path(name) / "run", config)
        training.train(run, prepared, quiet=True)
        attacking.attack(run, prepared, quiet=True)
        psnr = []
        for client, own in enumerate(prepared.client_data()):
            answers, _ = read_tensors(attacking.client_file(run, "raw", "ridge", client))
            psnr.append(score_images(("psnr",), torch.from_numpy(answers["images"]), to_float(own.images))["psnr"])
        accuracy = read_history(run.path).accuracy()["last"]["weighted"]
    assert accuracy is not None
    return accuracy, float(torch.cat(psnr).mean())


def measure() -> dict[str, Any]:
    """Both precisions from the same seeds, paired."""
    found = {name: [one(seed, name) for seed in SEEDS] for name in ("fp32", "bf16")}
    accuracy = {name: [a for a, _ in pairs] for name, pairs in found.items()}
    psnr = {name: [p for _, p in pairs] for name, pairs in found.items()}
    moved = [b - a for a, b in zip(accuracy["fp32"], accuracy["bf16"], strict=True)]
    decibel = [b - a for a, b in zip(psnr["fp32"], psnr["bf16"], strict=True)]
    return {
        "setting": SETTING,
        "seeds": len(SEEDS),
        "accuracy": accuracy,
        "psnr_db": psnr,
        "accuracy_moved_mean": statistics.mean(moved),
        "accuracy_moved_mean_absolute": statistics.mean(map(abs, moved)),
        "accuracy_seed_deviation": statistics.stdev(accuracy["fp32"]),
        "psnr_moved_mean_db": statistics.mean(decibel),
        "psnr_moved_largest_db": max(map(abs, decibel)),
    }


FIGURES.register("precision")(Figure(measure, SOURCES))

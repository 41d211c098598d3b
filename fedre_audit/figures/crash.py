"""Killed by SIGKILL at ten random moments and started again each time: are the scores those of a quiet run?

Each kill is aimed at a stage (training, recording, attack, scoring) and falls a random while after the run folder
shows that the stage is under way; what the folder looked like at that moment is written down.
"""

import json
import multiprocessing
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fedre_audit.config import AuditConfig
from fedre_audit.figures import FIGURES, Figure
from fedre_audit.pipeline import audit

SETTING: dict[str, Any] = {
    "clients": 4, "rounds": 25, "private_images": 240, "auxiliary_images": 200, "device": "cpu",
}  # fmt: skip
TEN = (*["training", "recording"] * 3, *["attack"] * 2, *["scoring"] * 2)
STAGE_SECONDS = 120.0
POLL = 0.001


def start(config: AuditConfig, out: Path) -> Any:
    """An audit in a process of its own; the modules are loaded once, in the server that forks them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=audit, args=(config, out), kwargs={"quiet": True})
    process.start()
    return process


def finish(config: AuditConfig, out: Path) -> None:
    """Run an audit to its end; RuntimeError where it fails."""
    process = start(config, out)
    process.join()
    if process.exitcode:
        raise RuntimeError(f"the audit ended with exit code {process.exitcode}")


def rounds_done(out: Path) -> int:
    """Lines of the diary."""
    path = out / "history.jsonl"
    return path.read_text().count("\n") if path.is_file() else 0


def under_way(stage: str, out: Path, after: int) -> bool:
    """Whether the run folder shows a stage at work, training and recording not before round `after`."""
    if stage == "training":
        return rounds_done(out) > after
    if stage == "recording":
        return rounds_done(out) > after and any((out / "truth").rglob(".*.part"))
    if stage == "attack":
        return any((out / "attacks").rglob("client-*.safetensors"))
    return (out / "attacks" / "complete.json").exists()


def state(out: Path) -> dict[str, Any]:
    """What a killed run left behind."""
    return {
        "rounds": rounds_done(out),
        "half_written": sum(1 for _ in out.rglob(".*.part")),
        "trained": (out / "manifest.json").exists(),
        "attack_files": sum(1 for _ in (out / "attacks").rglob("client-*.safetensors")),
        "attacked": (out / "attacks" / "complete.json").exists(),
        "scored": (out / "scores.json").exists(),
    }


def kill_at(stage: str, config: AuditConfig, out: Path, draw: random.Random) -> dict[str, Any]:
    """Start, wait until the stage is under way and a random while longer, kill; returns what was left."""
    after = max(rounds_done(out), draw.randrange(config.rounds or 1)) if stage in ("training", "recording") else 0
    process = start(config, out)
    limit = time.monotonic() + STAGE_SECONDS
    while process.is_alive() and not under_way(stage, out, min(after, (config.rounds or 1) - 2)):
        if time.monotonic() > limit:
            raise RuntimeError(f"the audit did not reach {stage} within {STAGE_SECONDS:.0f} s")
        time.sleep(POLL)
    if stage != "recording":
        time.sleep(draw.uniform(0, 0.3))
    process.kill()
    process.join()
    return {"aimed_at": stage, "killed": process.exitcode == -9, **state(out)}


def results(out: Path) -> dict[str, Any]:
    """Scores without what may differ between equal runs, and the hash of every upload."""
    scores = json.loads((out / "scores.json").read_text())
    scores.pop("volatile")
    return {"scores": scores, "uploads": json.loads((out / "manifest.json").read_text())["uploads"]}


def survive(
    stages: Sequence[str], setting: dict[str, Any], seed: int = 0, on_kill: Callable[[dict[str, Any]], None] = print
) -> dict[str, Any]:
    """A quiet run against one killed in each of the stages in turn: same scores, same uploads?"""
    draw, config = random.Random(seed), AuditConfig(**setting)
    with tempfile.TemporaryDirectory() as folder:
        quiet, shaken = Path(folder) / "quiet", Path(folder) / "shaken"
        finish(config, quiet)
        kills = []
        for stage in stages:
            kills.append(kill_at(stage, config, shaken, draw))
            on_kill(kills[-1])
        finish(config, shaken)
        ours, theirs = results(shaken), results(quiet)
    return {
        "kills": kills,
        "same_scores": ours["scores"] == theirs["scores"],
        "same_uploads": ours["uploads"] == theirs["uploads"],
    }


FIGURES.register("crash")(
    Figure(
        lambda: {"setting": SETTING, **survive(TEN, SETTING)},
        (
            "fedre_audit/figures/crash.py",
            "fedre_audit/federation/checkpoint.py",
            "fedre_audit/federation/engine.py",
            "fedre_audit/federation/history.py",
            "knowledge_forms/store.py",
        ),
    )
)

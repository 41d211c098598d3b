"""Stage 3: truth meets reconstructions. Writes scores.json, scores.csv and the strips that the report shows."""

import csv
import io
import resource
import time
from pathlib import Path
from typing import Any

import torch

from attacks.floors import FLOORS
from fedre_audit.audit.disclosures import disclosures, flags
from fedre_audit.audit.scoring import (
    ATTACK,
    PERMUTED,
    FormAttack,
    PairScores,
    floor_images,
    join,
    private_images,
    score_client,
    summarise,
)
from fedre_audit.audit.truth import read_truth
from fedre_audit.audit.verdict import verdict
from fedre_audit.federation.history import read_history
from fedre_audit.federation.view import read_view
from fedre_audit.progress import progress
from fedre_audit.runs import Run
from fedre_audit.seeding import derive_seed
from fedre_audit.stages.attack import audited_forms, auxiliary
from fedre_audit.stages.prepare import Prepared
from fedre_audit.stages.strips import write_strips
from fedre_audit.stages.train import CEILING
from knowledge_forms.base import ServerView
from knowledge_forms.store import read_tensors, write_bytes
from reports.schema import dump_scores

DONE = "scores.json"
METRIC_NAMES = ("psnr", "mse", "ssim")
FLOOR_NAMES = tuple(floor.name for floor in FLOORS)
TARGETS = {"raw": ("members",), "prototype": ("members", "class_mean"), "entangled": ("members", "mixture")}


def score_form(run: Run, prepared: Prepared, form: str, quiet: bool) -> list[FormAttack]:
    """Tables of every attack and target of one form."""
    view, truth = read_view(run.path, form), read_truth(run.path, form)
    images, labels = auxiliary(prepared)
    parts: dict[tuple[str, str], list[PairScores]] = {}
    meta: dict[str, dict[str, Any]] = {}
    with progress(f"score {form}", len(view.clients), quiet=quiet) as tick:
        for client in view.clients:
            own = view.client(client)
            contribution = truth[client, own.latest.round]
            private = private_images(prepared.data.images, contribution)
            floors = floor_images(own, images, labels, derive_seed(run.config.seed, "floor", client=client))
            for name in run.config.attacks:
                tensors, meta[name] = read_tensors(
                    run.path / "attacks" / form / name / f"client-{client:03d}.safetensors"
                )
                predictions = {
                    ATTACK: torch.from_numpy(tensors["images"]),
                    PERMUTED: torch.from_numpy(tensors["permuted"]),
                    **floors,
                }
                for target in TARGETS[form]:
                    scored = score_client(target, contribution, private, predictions, METRIC_NAMES, client)
                    parts.setdefault((name, target), []).append(scored)
            tick()
    return [
        FormAttack(form, name, meta[name]["level"], meta[name]["round"], target, join(tables))
        for (name, target), tables in parts.items()
    ]


def make_rows(run: Run, tables: list[FormAttack]) -> list[dict[str, Any]]:
    """The rows of scores.json; the ceiling of each is the same attack on the raw representations."""
    rows: list[dict[str, Any]] = []
    for scored in tables:
        for metric in METRIC_NAMES:
            if metric not in scored.table.values[ATTACK]:
                continue
            rows.append(
                {
                    "form": scored.form,
                    "attack": scored.attack,
                    "level": scored.level,
                    "stream": 1,
                    "round": scored.round,
                    "target": scored.target,
                    "slice": "all",
                    **summarise(scored.table, metric, floors=FLOOR_NAMES),
                    "headline": (scored.form, scored.target, metric) == (run.config.form, "members", "psnr"),
                    "ceiling": None,
                    "chance": None,
                    "candidates": None,
                    "budget": {"auxiliary": run.config.auxiliary_images, "steps": None, "restarts": None},
                }
            )
    ceilings = {
        (row["attack"], row["metric"]): row["value"]
        for row in rows
        if row["form"] == CEILING and row["target"] == "members"
    }
    for row in rows:
        row["ceiling"] = ceilings.get((row["attack"], row["metric"]))
    return rows


def write_csv(path: Path, tables: list[FormAttack]) -> None:
    """A row per image and metric: what the means are made of."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    predictors = (ATTACK, PERMUTED, *FLOOR_NAMES)
    writer.writerow(["form", "attack", "target", "client", "row", "sample", "members", "metric", *predictors])
    for scored in tables:
        table = scored.table
        for metric in table.values[ATTACK]:
            columns = [table.values[name][metric] for name in predictors]
            for i in range(len(table.client)):
                writer.writerow(
                    [scored.form, scored.attack, scored.target, table.client[i], table.row[i], table.sample[i],
                     table.members[i], metric, *(f"{column[i]:.6g}" for column in columns)]
                )  # fmt: skip
    write_bytes(path, text.getvalue().encode())


def federation_block(run: Run, view: ServerView) -> dict[str, Any]:
    """What was trained, how well, and what it sent."""
    history = read_history(run.path)
    return {
        "system": run.config.system,
        "form": run.config.form,
        "mechanism": view.mechanism,
        "clients": run.config.clients,
        "rounds": run.config.rounds,
        "broadcast": bool(view.classifiers),
        "accuracy": history.accuracy(),
        "traffic": history.rows[-1]["traffic"],
    }


def score(run: Run, prepared: Prepared, *, seconds: dict[str, float], quiet: bool = False) -> None:
    """Score every form and write the results; scores.json, written last, marks the stage complete."""
    started = time.perf_counter()
    config, manifest = run.config, run.read_json("manifest.json")
    tables = [t for form in audited_forms(run) for t in score_form(run, prepared, form, quiet)]
    rows = make_rows(run, tables)
    write_csv(run.path / "scores.csv", tables)
    write_strips(run, prepared, tables)
    view = read_view(run.path, config.form)
    competence: dict[str, Any] = {"passed": False, "checks": []}
    scores = {
        "schema_version": 1,
        "run": {
            "seed": config.seed,
            "seeds": [config.seed],
            "versions": manifest["versions"],
            "config_sha256": run.sha256,
            "device": manifest["device"],
            "precision": "fp32",
            "threads": config.threads,
        },
        "volatile": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "seconds": {
                **{key: round(value, 2) for key, value in seconds.items()},
                "score": round(time.perf_counter() - started, 2),
            },
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        },
        "dataset": {
            "name": prepared.data.name,
            "shape": list(prepared.data.images.shape[1:]),
            "classes": len(prepared.data.classes),
            "private": len(prepared.split.private),
            "auxiliary": len(prepared.split.auxiliary),
            "disjoint": True,
            "duplicates_dropped": prepared.split.duplicates_dropped,
        },
        "federation": federation_block(run, view),
        "rows": rows,
        "unmixing": [],
        "disclosures": disclosures(view),
        "bounds": [],
        "flags": flags(read_truth(run.path, config.form)),
        "competence": competence,
        "verdict": verdict(rows, competence),
    }
    write_bytes(run.path / DONE, dump_scores(scores).encode())

"""A realistic scores.json and run folder for tests of the page; every part can be replaced."""

import json
import random
import struct
import zlib
from pathlib import Path
from typing import Any

from reports.schema import dump_scores
from reports.scores import Level, Scores


def row(
    form: str,
    attack: str,
    value: float | None,
    half: float = 0.4,
    *,
    metric: str = "psnr",
    floor: float = 12.73,
    **changes: Any,
) -> dict[str, Any]:
    """One row of scores: value with a symmetric interval, gains against fixed floors."""

    def gain(base: float) -> dict[str, Any] | None:
        if value is None:
            return None
        return {"value": value - base, "ci95": [value - base - half, value - base + half]}

    floors = {"mean_image": floor, "class_mean": floor * 1.02, "best": floor * 1.03, "permuted": floor * 0.99}
    made = {
        "form": form, "attack": attack, "level": "Q3", "stream": 1, "round": 60, "target": "members",
        "slice": "all", "metric": metric, "unit": "dB" if metric == "psnr" else "", "value": value,
        "ci95": None if value is None else [value - half, value + half],
        "n": 150, "n_invalid": 0, "n_clusters": 10, "interval_unit": "client", "more_leakage": "higher",
        "headline": False, "floor": floors, "gain": {key: gain(base) for key, base in floors.items()},
        "ceiling": 18.62, "chance": None, "candidates": None,
        "budget": {"auxiliary": 2500, "steps": None, "restarts": None}, "status": "ok", "reason": None,
    }  # fmt: skip
    return {**made, **changes}


def rows() -> list[dict[str, Any]]:
    """Three forms, two attacks, retrieval, a class slice, streams and auxiliary budgets."""
    made = [
        row("entangled", "ridge", 13.642918, headline=True),
        row("entangled", "unmix_ridge", 15.2731, 0.9, headline=True, level="Q0", stream=60, slice="n1"),
        row("entangled", "decoder", None, n_invalid=150, status="failed", reason="every image was NaN",
            floor=12.73),
        row("entangled", "ridge", 3021.55, 80.0, metric="mse", floor=3472.0,
            more_leakage="lower", ceiling=893.1),
        row("entangled", "retrieval", 0.1324, 0.05, metric="retrieval_top1", floor=0.0067, chance=0.00667,
            candidates=150, ceiling=0.953, headline=True),
        row("prototype", "ridge", 14.1, 0.35),
        row("raw", "ridge", 18.62, 0.2),
    ]  # fmt: skip
    for stream, value in ((10, 13.1), (20, 13.9), (40, 14.8), (60, 15.4)):
        made.append(row("entangled", "unmix_ridge", value, 0.5, stream=stream, level="Q0"))
    for auxiliary, value in ((100, 13.0), (1000, 13.5)):
        budget = {"auxiliary": auxiliary, "steps": None, "restarts": None}
        made.append(row("entangled", "ridge", value, budget=budget))
    return made


def grounds(level: Level) -> dict[str, Any]:
    """What decided a verdict of this level, or what was missing."""
    one = {"attack": "unmix_ridge", "level": "Q3", "stream": 60, "slice": "n1", "target": "members", "n": 9,
           "more_leakage": "higher"}  # fmt: skip
    image = {**one, "metric": "psnr", "unit": "dB", "value": 15.27, "against": "mean_image", "floor": 13.11,
             "gain": 2.16, "ci95": [1.3, 3.02]}  # fmt: skip
    picked = {**one, "metric": "retrieval_top1", "unit": "", "value": 0.783, "against": "best", "floor": 0.016,
              "gain": 0.767, "ci95": [0.6, 0.9]}  # fmt: skip
    rows = {"CLASS_LEVEL": [image], "SAMPLE_LEVEL": [picked, image | {"against": "best"}]}
    why = {"what": "unmixing is not validated for 2 of 4 clients", "section": "unmixing",
           "change": "more rounds, for instance --rounds 120"}  # fmt: skip
    return {"decided": rows.get(level, []), "missing": [why] if level == "NOT_ASSESSED" else []}


def scores(level: Level = "CLASS_LEVEL", **changes: Any) -> Scores:
    """A whole scores.json; keyword arguments replace top-level parts."""
    made: dict[str, Any] = {
        "schema_version": 1,
        "run": {
            "seed": 0, "seeds": [0],
            "versions": {"python": "3.11.2", "torch": "2.9.1", "fedre-audit": "0.1.0"},
            "config_sha256": "9f2c" * 16, "device": "cpu", "precision": "float32", "threads": 1,
            "command": "audit --form entangled --dataset mnist5k --seed 0",
        },
        "volatile": {"created": "2026-01-05T10:00:00Z", "seconds": {"federation": 21.4, "attacks": 9.8},
                     "peak_memory_mb": 812.5, "host": "2 cores"},
        "dataset": {"name": "mnist5k", "shape": [1, 28, 28], "classes": 10, "private": 1500,
                    "auxiliary": 2500,
                    "disjoint": True, "duplicates_dropped": 3},
        "federation": {
            "system": "fedre", "form": "entangled", "mechanism": "RAP uniform, resampled", "clients": 10,
            "rounds": 60, "broadcast": True,
            "accuracy": {"last": {"weighted": 0.9312, "unweighted": 0.9247},
                         "best": {"weighted": 0.9365, "unweighted": 0.9301}},
            "traffic": {"upload_scalars": 5220, "upload_scalars_published_count": 5120,
                        "broadcast_scalars": 51300, "bytes": 226080},
        },
        "rows": rows(),
        "unmixing": [
            {"client": 0, "rounds": 60, "classes": 4, "rank": 4, "condition": 8.31, "predicted_error": 0.21,
             "null_gap": 1.32, "validated": True, "reason": None},
            {"client": 1, "rounds": 60, "classes": 9, "rank": 9, "condition": 19.7, "predicted_error": None,
             "null_gap": 0.04, "validated": False, "reason": "permuted weights explain the stream as well"},
        ],
        "disclosures": [{"client": 0, "kind": "class_set", "value": [0, 3, 7, 8]},
                        {"client": 0, "kind": "class counts", "value": {"0": 61, "3": 1, "7": 40}},
                        {"client": 1, "kind": "label weights", "value": "soft vector of 10, every round"}],
        "bounds": [{"form": "entangled", "kind": "linear-Gaussian MSE", "value": 611.2, "against": "ridge"}],
        "flags": [{"client": 0, "class": 3, "kind": "one_image_class"}],
        "exposure": [
            {"client": 0, "class": 3, "form": "entangled", "attack": "unmix_ridge", "metric": "psnr",
             "value": 17.9, "floor": 13.0, "n": 1},
            {"client": 4, "class": 1, "form": "entangled", "attack": "unmix_ridge", "metric": "psnr",
             "value": 14.2, "floor": 13.3, "n": 12},
        ],
        "exposed_samples": [
            {"client": 4, "class": 1, "sample": 4711, "form": "entangled", "attack": "ridge", "metric": "psnr",
             "value": 19.21, "floor": 12.9, "gain": 6.31, "picked": 1.0},
            {"client": 0, "class": None, "sample": 12, "form": "entangled", "attack": "ridge", "metric": "psnr",
             "value": 15.3, "floor": 12.84, "gain": 2.46, "picked": 0.5},
            {"client": 2, "class": 9, "sample": 0, "form": "entangled", "attack": "ridge", "metric": "psnr",
             "value": 15.0, "floor": 12.9, "gain": 2.1, "picked": None},
        ],
        "distributions": [{"form": "entangled", "attack": "ridge", "metric": "psnr",
                           "edges": [-2.0, -1.0, 0.0, 1.0, 2.0, 3.0], "counts": [4, 31, 72, 35, 8]}],
        "competence": {"passed": level != "NOT_ASSESSED", "checks": [
            {"name": "linear-Gaussian MMSE", "attack": "ridge", "value": 0.0348, "expected": 0.0346,
             "tolerance": 0.000346, "passed": level != "NOT_ASSESSED"}]},
        "verdict": {
            "level": level,
            "sentence": "Entangled uploads show what the classes look like; no single image was identified."
            if level != "NOT_ASSESSED" else "No statement can be made: attacker competence is not checked.",
            "rule": "gain over the mean image with the lower bound above 0, sample rule not met",
            "thresholds": {"alpha": 0.05, "gain_db": 0.0}, "worst": {"attack": "unmix_ridge", "slice": "n1"},
            "numbers": {"floor": 13.1119, "form": 13.642918, "ceiling": 18.62,
                        "unit": "dB", "metric": "psnr"},
        },
        "grounds": grounds(level),
    }  # fmt: skip
    made.update(changes)
    return made  # type: ignore[return-value]


def png(shape: tuple[int, int, int], seed: int) -> bytes:
    """A small PNG [c,h,w], one or three channels: a soft blob whose place depends on the seed."""
    channels, height, width = shape
    draw = random.Random(seed)
    x0, y0 = draw.uniform(0.3, 0.7) * width, draw.uniform(0.3, 0.7) * height
    tint = [draw.uniform(0.4, 1) for _ in range(channels)]
    lines = b""
    for y in range(height):
        values = []
        for x in range(width):
            light = 255 / (1 + ((x - x0) / width * 5) ** 2 + ((y - y0) / height * 5) ** 2)
            values += [int(light * share) for share in tint]
        lines += b"\0" + bytes(values)

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def write_strips(run_dir: Path, count: int = 2, shape: tuple[int, int, int] = (1, 28, 28)) -> None:
    """strips/strips.json and its PNG files: best, median and worst for each of `count` strips."""
    folder = run_dir / "strips"
    folder.mkdir(parents=True, exist_ok=True)
    strips = []
    for strip in range(count):
        images = []
        for i, rank in enumerate(("best", "median", "worst")):
            for j, role in enumerate(("target", "reconstruction", "floor")):
                name = f"strips/{strip}-{rank}-{role}.png"
                (run_dir / name).write_bytes(png(shape, 100 * strip + 10 * i + j))
                value = None if role != "reconstruction" or (strip, rank) == (1, "worst") else 17.31 - 2 * i
                images.append({"role": role, "png": name, "rank": rank, "psnr": value})
        strips.append({"form": "entangled", "attack": "ridge", "client": strip, "images": images,
                       "title": f"ridge decoder, client {strip}, members"})  # fmt: skip
    (folder / "strips.json").write_text(json.dumps(strips))


def make_run(run_dir: Path, made: Scores | None = None, strips: int = 2, **options: Any) -> Path:
    """A run folder with scores.json and, where `strips` is above 0, strips; returns the folder."""
    run_dir.mkdir(parents=True, exist_ok=True)
    (run_dir / "scores.json").write_text(dump_scores(made or scores()), encoding="utf-8")
    if strips:
        write_strips(run_dir, strips, **options)
    return run_dir

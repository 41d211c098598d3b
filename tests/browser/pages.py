"""Run folders with every kind of page, made without training."""

from pathlib import Path
from typing import Any

from reports.comparisons import dump_comparison, write_comparison
from reports.index import write_index
from reports.render import write_report
from tests.reports.make_scores import make_run, scores

NAMES = ("raw", "prototype", "entangled:RAP", "entangled:RAP:fixed", "entangled:RSR", "entangled:VAP")


def comparison(names: tuple[str, ...] = NAMES) -> Any:
    """A whole compare.json."""
    made = scores()
    arms, differences = [], []
    for k, name in enumerate(names):
        row = dict(made["rows"][0], value=13.0 + k, ci95=[12.5 + k, 13.5 + k])
        arms.append({
            "name": name, "form": name.split(":")[0], "mechanism": "", "system": "fedre", "path": f"arms/{k}",
            "accuracy": made["federation"]["accuracy"],
            "traffic": {**made["federation"]["traffic"], "bytes": 226080 * (1 + 20 * (k == 0))},
            "verdict": made["verdict"], "grounds": made["grounds"], "rows": [row],
        })  # fmt: skip
        for reference in {"raw", "prototype"} - {name}:
            differences.append({
                "arm": name, "reference": reference, "attack": "ridge", "target": "members", "metric": "psnr",
                "unit": "dB", "more_leakage": "higher", "value": -0.71 * k, "ci95": [-1.0 - k, 1.0 - 0.5 * k],
                "n_clusters": 10, "interval_unit": "client",
            })  # fmt: skip
    lowering = [
        {"change": f"Send {name}", "metric": "psnr", "unit": "dB", "before": 15.1, "value": 13.0 + k,
         "difference": k - 2.1, "ci95": [k - 3.0, k - 1.2], "more_leakage": "higher", "note": "ridge; 10 clients"}
        for k, name in enumerate(names)
    ]  # fmt: skip
    return {
        "schema_version": 1, "run": made["run"], "volatile": made["volatile"], "dataset": made["dataset"],
        "clients": 10, "rounds": 60, "shared_training": True, "arms": arms, "differences": differences,
        "lowering": lowering, "reference_arm": names[0],
    }  # fmt: skip


def make_pages(root: Path) -> dict[str, Path]:
    """Name -> path of a report at every verdict and shape, a comparison and an index."""
    found: dict[str, Path] = {}
    shapes = {"CLASS_LEVEL": (1, 28, 28), "SAMPLE_LEVEL": (3, 64, 64), "NOT_ASSESSED": (3, 24, 40)}
    for level, shape in shapes.items():
        made = scores(level)  # type: ignore[arg-type]
        made["unmixing"][0]["true_error"] = 0.27
        found[level] = write_report(make_run(root / level.lower(), made, shape=shape))
    (root / "compared").mkdir()
    (root / "compared" / "compare.json").write_text(dump_comparison(comparison()), encoding="utf-8")
    found["compare"] = write_comparison(root / "compared")
    found["index"] = write_index(root)[0]
    return found

"""However many processes share the work, an audit's files are the same, byte for byte."""

import json

from fedre_audit.config import AuditConfig
from fedre_audit.pipeline import audit

SMALL = {"clients": 3, "rounds": 6, "private_images": 120, "auxiliary_images": 160, "classes": 4, "device": "cpu"}


def files(run):
    """Everything but what may differ between equal runs; the configuration names the workers."""
    found = {
        str(path.relative_to(run)): path.read_bytes()
        for path in sorted(run.rglob("*"))
        if path.is_file() and path.name not in ("config.yaml", "scores.json", "report.html")
    }
    scores = json.loads((run / "scores.json").read_text())
    assert scores.pop("volatile")["peak_memory_mb"] > 50
    return {**found, "scores.json": json.dumps(scores)}


def test_serial_and_pooled_audits_are_the_same(tmp_path):
    runs = [tmp_path / "serial" / "run", tmp_path / "pooled" / "run"]
    for workers, run in zip((1, 3), runs, strict=True):
        audit(AuditConfig(workers=workers, attacks=["ridge"], **SMALL), run, quiet=True)
    serial, pooled = (files(run) for run in runs)
    assert serial.keys() == pooled.keys()
    assert [name for name in serial if serial[name] != pooled[name]] == []
    assert sum(name.startswith("attacks/") for name in serial) > 6

"""Spoiled files are refused or read; the 10,000 of results/fuzz_uploads.json are 1,000 here."""

import json

from fedre_audit.figures import RESULTS
from fedre_audit.figures.fuzz_uploads import fuzz


def promised(found: dict) -> bool:
    return found["slowest_cpu_seconds"] < 1 and found["most_memory_mb"] < 200 and found["bombs_went_off"] == 0


def test_a_thousand_spoiled_files():
    found = fuzz(1000, seed=1)
    assert found["files"] >= 1000
    assert found["refused"] > 700
    assert found["read"] > 0
    assert promised(found), found


def test_the_stored_figure_keeps_the_promise():
    stored = json.loads((RESULTS / "fuzz_uploads.json").read_text())["values"]
    assert stored["files"] >= 10_000
    assert promised(stored), stored

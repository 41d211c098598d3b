"""The default audit from the command line: seconds by stage, memory, and what starts without torch."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def default_audit(*options: str) -> dict[str, Any]:
    """A fresh process runs `audit --form entangled`: wall seconds, seconds by stage, peak memory."""
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "run"
        command = [sys.executable, "-m", "fedre_audit", "--form", "entangled", "--out", str(out), *options]
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
        wall = time.perf_counter() - started
        report = [sys.executable, "-m", "fedre_audit", "report", str(out)]
        started = time.perf_counter()
        subprocess.run(report, check=True, stdout=subprocess.DEVNULL)
        again = time.perf_counter() - started
        volatile = json.loads((out / "scores.json").read_text())["volatile"]
    return {
        "seconds": wall,
        "stages": volatile["seconds"],
        "report_command": again,
        "peak_mb": volatile["peak_memory_mb"],
    }


def start_seconds() -> float:
    """Seconds of `--help`, which imports no torch."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "fedre_audit", "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started

"""How long a `small` audit takes on a published heterogeneous family: HtFE-img-4 on CIFAR-10, CPU.

At the default learning rate of such families, 0.01, that of HtFLlib; `htfe4_rates` says how often training diverges at
this rate and at others. The audit then says so and stops.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fedre_audit.figures import FIGURES, Figure

OPTIONS = ("--preset", "small", "--family", "HtFE-img-4", "--dataset", "cifar10", "--device", "cpu")


def measure() -> dict[str, Any]:
    """Wall-clock seconds of the whole command, and of its stages; how busy the machine was meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "run")
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "fedre_audit", *OPTIONS, "--out", str(out)], check=True)
        seconds = time.perf_counter() - started
        scores = json.loads((out / "scores.json").read_text())
    return {
        "command": "audit " + " ".join(OPTIONS),
        "seconds": round(seconds, 1),
        "stages": scores["volatile"]["seconds"],
        "peak_memory_mb": scores["volatile"]["peak_memory_mb"],
        "verdict": scores["verdict"]["level"],
        "cores": os.cpu_count(),
        "load_at_the_end": round(os.getloadavg()[1], 1),
    }


SOURCES = ("fedre_audit/figures/htfe4_small.py", "fedre_audit/models/torchvision_models.py", "attacks/decoder.py")
FIGURES.register("htfe4_small")(Figure(measure, SOURCES))

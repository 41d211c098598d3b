"""Two processes record side by side, one is killed at a random moment: what was acknowledged must all be there."""

import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fedre_audit.figures import FIGURES, Figure
from knowledge_forms.check import check
from knowledge_forms.store import read_folder

WRITER = """
import sys
import numpy as np
from fedre_audit.record import Recorder
recorder = Recorder(sys.argv[1], system="test", form="entangled", mechanism="RAP", classes=4)
for round_ in range(int(sys.argv[3])):
    recorder.upload(int(sys.argv[2]), round_, representation=np.full(512, round_), label_encoding={0: 0.5, 1: 0.5})
    print(round_, flush=True)
"""


def kill_one(folder: Path, rounds: int, rng: random.Random) -> dict[str, int]:
    """Counts of one try: acknowledged by the killed writer, of those lost, lost by the other, torn or bad files."""
    command = [sys.executable, "-c", WRITER, str(folder)]
    killed, other = (
        subprocess.Popen([*command, str(client), str(rounds)], stdout=subprocess.PIPE, text=True) for client in (0, 1)
    )
    assert killed.stdout is not None
    lines = [killed.stdout.readline() for _ in range(rng.randint(1, rounds - 1))]
    time.sleep(rng.random() * 0.005)
    killed.kill()
    lines += killed.communicate()[0].splitlines()
    other.communicate()
    found = {key: arrays for _, entries, _ in read_folder(folder) for key, arrays in entries.items()}
    acknowledged = {(0, int(line)) for line in lines if line.strip()}
    return {
        "acknowledged": len(acknowledged),
        "lost": len(acknowledged - set(found)),
        "lost_by_the_other": len({(1, round_) for round_ in range(rounds)} - set(found)),
        "torn": sum(not (arrays["representation"] == key[1]).all() for key, arrays in found.items()),
        "problems": len(check([folder]).problems),
    }


def milliseconds_per_upload(folder: Path, count: int = 200) -> float:
    """Median time of one upload of 512 numbers, on the disk when it returns."""
    from fedre_audit.record import Recorder

    recorder = Recorder(folder, system="test", form="entangled", classes=4)
    taken = []
    for round_ in range(count):
        started = time.perf_counter()
        recorder.upload(0, round_, representation=[0.0] * 512, label_encoding={0: 1.0})
        taken.append(1000 * (time.perf_counter() - started))
    return round(statistics.median(taken), 2)


def measure() -> dict[str, Any]:
    """Five tries of 1,000 rounds."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        tries = [kill_one(Path(name) / str(i), 1000, rng) for i in range(5)]
        cost = milliseconds_per_upload(Path(name) / "cost")
    return {"tries": tries, "median_ms_per_upload": cost}


FIGURES.register("record_killed")(
    Figure(measure, ("fedre_audit/record.py", "knowledge_forms/store.py", "fedre_audit/figures/record_killed.py"))
)

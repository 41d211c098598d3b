"""Raw uploads of 100,000 images of 3x32x32 by one client: written, attacked and scored in bounded memory.

The images are random and a layer of random weights makes their representations: neither memory nor time depends on
what the pixels show. Every step runs in a process of its own; `beyond` is the most memory it has held, less what it
held before it had any image or upload, less the private images (uint8) and the upload, each once.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from attacks.base import ATTACKS
from attacks.knowledge import Q3
from fedre_audit.audit.evaluator import train_evaluator
from fedre_audit.audit.truth import read_truth
from fedre_audit.config import AuditConfig
from fedre_audit.data.base import ImageData, to_float
from fedre_audit.data.splits import Split
from fedre_audit.federation.recorder import LocalState, Recorder
from fedre_audit.federation.view import read_view
from fedre_audit.figures import FIGURES, Figure
from fedre_audit.runs import Run
from fedre_audit.seeding import generator
from fedre_audit.stages.answers import write_answers
from fedre_audit.stages.attack import client_file
from fedre_audit.stages.prepare import Prepared
from fedre_audit.stages.tables import Tables, cases
from knowledge_forms.base import FORMS

SIZES = (10_000, 100_000)
AUXILIARY, EVALUATION, CLASSES, WIDTH, SHAPE = 2_000, 500, 100, 512, (3, 32, 32)
STEPS = ("write", "attack", "score")
PIXELS = 3 * 32 * 32


def encoder() -> nn.Module:
    """Images [N,3,32,32] -> [N,512] by a rectified layer of random weights."""
    layer = nn.Linear(PIXELS, WIDTH)
    draw = generator(0, "raw_100k encoder")
    layer.weight.data = torch.randn(layer.weight.shape, generator=draw) / PIXELS**0.5
    layer.bias.data.zero_()
    return nn.Sequential(nn.Flatten(), layer, nn.ReLU()).eval()


def drawn(count: int, purpose: str) -> ImageData:
    """Images of random 4x4 squares, whole-block copies of 8x8 drawings; classes in turn."""
    draw = generator(0, f"raw_100k {purpose}")
    images = torch.empty(count, *SHAPE, dtype=torch.uint8)
    for rows in torch.arange(count).split(4096):
        coarse = torch.randint(256, (len(rows), 3, 8, 8), dtype=torch.uint8, generator=draw)
        images[rows] = coarse.repeat_interleave(4, 2).repeat_interleave(4, 3)
    names = tuple(map(str, range(CLASSES)))
    return ImageData("drawn", images, torch.arange(count) % CLASSES, names, torch.zeros(count, dtype=torch.int8))


def write(folder: Path, private: int) -> None:
    """The client's upload and its truth, as a federation records them."""
    data, encode = drawn(private, "private"), encoder()
    representations = torch.empty(private, WIDTH)
    with torch.no_grad():
        for rows in torch.arange(private).split(1024):
            representations[rows] = encode(to_float(data.images[rows]))
    recorder = Recorder(
        run_dir=folder, system="fedallrep", form=FORMS["raw"](), num_classes=CLASSES, feature_width=WIDTH, seed=0
    )
    recorder.record(0, [LocalState(0, 0, torch.arange(private), data.labels, representations)], None)


def attack(folder: Path, private: int) -> None:
    """Ridge, on the upload and on its permuted null."""
    public, encode = drawn(AUXILIARY, "public"), encoder()
    knowledge = Q3(images=to_float(public.images), labels=public.labels, num_classes=CLASSES, seed=0,
                   architecture=encoder, encoder=encode, module=encode)  # fmt: skip
    path = client_file(Run(folder, AuditConfig()), "raw", "ridge", 0)
    view = read_view(folder, "raw").client(0)
    write_answers(path, ATTACKS["ridge"]().fit(knowledge), view, knowledge, None, 1)


def score(folder: Path, private: int) -> dict[str, float]:
    """Image metrics and the class recognised, of the attack, its null and every floor; and retrieval."""
    data, others, public = drawn(private, "private"), drawn(EVALUATION, "evaluation"), drawn(AUXILIARY, "public")
    whole = ImageData("drawn", torch.cat([data.images, others.images]), torch.cat([data.labels, others.labels]),
                      data.classes, torch.cat([data.official_split, others.official_split]))  # fmt: skip
    del data
    ids = torch.arange(private)
    split = Split(ids, ids[:0], torch.arange(private, private + EVALUATION), 0)
    prepared = Prepared(whole, split, [(ids.numpy(), ids[:0].numpy())], elsewhere=public)
    evaluator = train_evaluator(to_float(public.images), public.labels, CLASSES, 0)
    tables = Tables(["ridge"], evaluator)
    for case in cases(Run(folder, AuditConfig()), prepared, read_view(folder, "raw"), read_truth(folder, "raw"), 0):
        tables.add(case)
    found: dict[str, float] = {}
    for scored in tables.joined("raw"):
        for metric, column in scored.table.values["attack"].items():
            assert len(column) == private
            found[metric] = round(float(column.mean()), 4)
    return found


def held_mb(which: str) -> float:
    """Memory of this process now (VmRSS) or at most so far (VmHWM), in MB of 10^6 bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(which))
    return int(line.split()[1]) * 1024 / 1e6


def one_step(step: str, folder: str, private: int) -> dict[str, Any]:
    """Seconds and memory of one step in this process."""
    torch.set_num_threads(1)
    at_first, started = held_mb("VmRSS"), time.perf_counter()
    found = {"write": write, "attack": attack, "score": score}[step](Path(folder), private)
    seconds, peak = time.perf_counter() - started, held_mb("VmHWM")
    images, upload = private * PIXELS / 1e6, private * WIDTH * 4 / 1e6
    data = upload if step == "attack" else images + upload
    values: dict[str, Any] = {"seconds": round(seconds, 1), "at_first_mb": round(at_first), "peak_mb": round(peak),
                              "beyond_mb": round(peak - at_first - data)}  # fmt: skip
    return values | ({"means": found} if found else {})


def measure() -> dict[str, Any]:
    """Every step at a tenth of the images and at all of them."""
    values: dict[str, Any] = {"classes": CLASSES, "public_images": AUXILIARY}
    for private in SIZES:
        images, upload = private * PIXELS / 1e6, private * WIDTH * 4 / 1e6
        values[str(private)] = {"images_uint8_mb": images, "images_float32_mb": 4 * images, "upload_mb": upload}
        with tempfile.TemporaryDirectory() as folder:
            for step in STEPS:
                call = f"one_step({step!r}, {folder!r}, {private})"
                program = f"import json; from {__name__} import one_step; print(json.dumps({call}))"
                done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)
                values[str(private)][step] = json.loads(done.stdout.splitlines()[-1])
    return values


SOURCES = (
    "fedre_audit/figures/raw_100k.py",
    "fedre_audit/pictures.py",
    "fedre_audit/stages/answers.py",
    "fedre_audit/stages/tables.py",
    "fedre_audit/audit/retrieval.py",
    "fedre_audit/federation/recorder.py",
    "fedre_audit/federation/view.py",
)
FIGURES.register("raw_100k")(Figure(measure, SOURCES))

"""What a CUDA device does with the same engine: `python -m fedre_audit.bench.cuda [--json FILE]`.

Ready for a lent GPU: eager against captured steps, many small clients with and without overlapping streams, equal
bytes of two equal runs, decoder training, peak memory. Without a CUDA device it says so and ends with exit code 2.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from fedre_audit.bench.attacks import decoder_step
from fedre_audit.bench.federation import CIFAR, CLASSES, federate, random_client
from fedre_audit.bench.measure import Step, machine
from fedre_audit.config import AuditConfig, resolve
from fedre_audit.federation.client import SGDStep
from fedre_audit.federation.local import CapturedStep, LocalClient, settle
from fedre_audit.models import build_clients, build_model
from knowledge_forms.errors import AuditError
from knowledge_forms.store import write_bytes

DEVICE = torch.device("cuda")


def device_rate(step: Step, units: float, seconds: float = 1.0) -> float:
    """Units per second, the device waited for; ten calls to warm up (captured steps are captured in them)."""
    for _ in range(10):
        step()
    settle(DEVICE)
    started, calls = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        for _ in range(10):
            step()
        settle(DEVICE)
        calls += 10
    return units * calls / (time.perf_counter() - started)


def gemm_rate(dtype: torch.dtype, side: int = 8192) -> float:
    """FLOP/s of a large square matrix product."""
    a, b = (torch.randn(side, side, device=DEVICE, dtype=dtype) for _ in range(2))
    return device_rate(lambda: a @ b, 2.0 * side**3)


def training_rates(name: str, batch_size: int) -> dict[str, float]:
    """images/s of one model's training, step by step and as a replayed graph."""
    own = random_client(4 * batch_size, 0, CIFAR, 0).to(DEVICE)
    index = torch.arange(batch_size, device=DEVICE)
    found = {}
    for kind in ("eager", "captured"):
        model = build_model(name, CIFAR, CLASSES, 512, seed=0).train().to(DEVICE).to(memory_format=torch.channels_last)
        step = SGDStep(model, own.images, own.labels, lr=0.01, bf16=True)
        run = CapturedStep(step) if kind == "captured" else step
        found[kind] = device_rate(lambda run=run: run(index), batch_size)  # type: ignore[misc]
    return found


def many_clients(clients: int = 100, images: int = 256, rounds: int = 5) -> dict[str, float]:
    """Seconds of a round of many small clients, each in its own stream, and with a wait after every client."""
    kind_of_device: Any = DEVICE.type
    config = resolve(AuditConfig(clients=clients, rounds=rounds, device=kind_of_device))
    found = {}
    for kind in ("overlapped", "one_by_one"):
        models = build_clients("small", clients, (1, 28, 28), CLASSES, 512, 0)
        own = [random_client(images, images // 3, (1, 28, 28), k).to(DEVICE) for k in range(clients)]
        fleet = [
            LocalClient(k, model.to(DEVICE).to(memory_format=torch.channels_last), own[k], config)
            for k, model in enumerate(models)
        ]
        for round_ in range(rounds):
            settle(DEVICE)
            started = time.perf_counter()
            for client in fleet:
                client.round(round_, present=True)
                if kind == "one_by_one":
                    settle(DEVICE)
            settle(DEVICE)
            found[kind] = time.perf_counter() - started  # the last round counts: graphs are captured before
    return found


def same_twice(family: str = "HtFE-img-2", images: int = 96) -> dict[str, bool]:
    """Whether two equal federations on the device give equal bytes."""
    runs = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as name:
            federate(Path(name), 4, images, 4, family=family, shape=CIFAR, device=DEVICE.type)
            uploads = sorted((Path(name) / "uploads").rglob("*.safetensors"))
            runs.append([path.read_bytes() for path in uploads])
    return {"equal_bytes": runs[0] == runs[1]}


def measure() -> dict[str, Any]:
    """Everything, with the hardware it belongs to; AuditError without a CUDA device."""
    if not torch.cuda.is_available():
        raise AuditError("this machine offers no CUDA device; run `python -m fedre_audit.bench` for the processor")
    torch.backends.cudnn.deterministic = True
    torch.cuda.reset_peak_memory_stats()
    step, flops = decoder_step(device=DEVICE)()
    return {
        "gemm_flops_per_second": {"fp32": gemm_rate(torch.float32), "bf16": gemm_rate(torch.bfloat16)},
        "resnet18_b32_images_per_second": training_rates("resnet18", 32),
        "resnet18_b128_images_per_second": training_rates("resnet18", 128),
        "fedavg_cnn_b32_images_per_second": training_rates("fedavg_cnn", 32),
        "many_clients_round_seconds": many_clients(),
        "two_equal_runs": same_twice(),
        "decoder_flops_per_second": device_rate(step, flops),
        "peak_memory_mb": torch.cuda.max_memory_allocated() / 2**20,
        "machine": machine(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m fedre_audit.bench.cuda", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures here, for instance results/cuda.json")
    options = parser.parse_args(arguments)
    try:
        found = measure()
    except AuditError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    text = json.dumps(found, indent=1) + "\n"
    print(text, end="")
    if options.json:
        write_bytes(options.json, text.encode())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

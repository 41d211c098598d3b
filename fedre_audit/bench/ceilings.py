"""What this machine can do at most: matrix product, convolution, copy."""

import torch

from fedre_audit.bench.measure import Make, Step, machine_rate

SIDE = 1024


def gemm(dtype: torch.dtype) -> Make:
    """A square matrix product; its rate is FLOP/s."""

    def make() -> tuple[Step, float]:
        a, b = (torch.randn(SIDE, SIDE).to(dtype) for _ in range(2))
        return lambda: a @ b, 2.0 * SIDE**3

    return make


def convolution(dtype: torch.dtype) -> Make:
    """A 3x3 convolution of 128 channels on 64 maps of 16x16, channels_last; FLOP/s, forward only."""

    def make() -> tuple[Step, float]:
        x = torch.randn(64, 128, 16, 16).to(dtype).contiguous(memory_format=torch.channels_last)
        weight = torch.randn(128, 128, 3, 3).to(dtype).contiguous(memory_format=torch.channels_last)
        return lambda: torch.nn.functional.conv2d(x, weight, padding=1), 2.0 * 64 * 256 * 128 * 128 * 9

    return make


def copy() -> tuple[Step, float]:
    """A copy of 64 MB; bytes read and written per second."""
    source = torch.randn(16_000_000)
    target = torch.empty_like(source)
    return lambda: target.copy_(source), 2.0 * 64e6


def ceilings() -> dict[str, float]:
    """All of them, all cores at once; FLOP/s, and bytes/s for the copy."""
    kinds = {"fp32": torch.float32, "bf16": torch.bfloat16}
    found = {f"gemm_{name}": machine_rate(gemm(dtype)) for name, dtype in kinds.items()}
    found |= {f"convolution_{name}": machine_rate(convolution(dtype)) for name, dtype in kinds.items()}
    return {**found, "copy": machine_rate(copy)}

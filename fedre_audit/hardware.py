"""What this machine offers, and the rules that follow: no measurement, so a machine always decides alike; no torch."""

import os
from pathlib import Path
from typing import Literal

CPU_INFO = Path("/proc/cpuinfo")
NVIDIA = Path("/proc/driver/nvidia/version")
BF16_FLAGS = ("avx512_bf16", "amx_bf16")


def cores() -> int:
    """Processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_has_bf16() -> bool:
    """Whether the processor multiplies bfloat16 natively (AVX512-BF16 or AMX)."""
    return CPU_INFO.is_file() and any(flag in CPU_INFO.read_text() for flag in BF16_FLAGS)


def has_nvidia() -> bool:
    """Whether an NVIDIA driver is loaded."""
    return NVIDIA.is_file()


def choose_precision(device: str) -> Literal["bf16", "fp32"]:
    """bf16 where the device multiplies it natively, else fp32; stored, for results depend on it."""
    on_gpu = device != "cpu" and has_nvidia()
    return "bf16" if on_gpu or cpu_has_bf16() else "fp32"


def choose_workers(clients: int, threads: int) -> int:
    """Processes that share the clients: one a core. Results do not depend on it, so it is not part of a run's identity.

    One with several threads each, with CUDA (neither survives a fork), and with one client.
    """
    if threads > 1 or has_nvidia() or not hasattr(os, "fork"):
        return 1
    return max(1, min(cores(), clients))

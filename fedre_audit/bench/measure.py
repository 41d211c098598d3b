"""How the bench measures: rates of all cores at once, medians of interleaved repeats, peak memory of a child.

A ceiling and what is compared with it are measured the same way, one right after the other: single-thread processes,
one a core, as the engine works.
"""

import multiprocessing as mp
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

import torch

from fedre_audit.hardware import cores, cpu_has_bf16
from fedre_audit.memory import give_back
from fedre_audit.workers import Workers, forkable

Step = Callable[[], object]
Make = Callable[[], tuple[Step, float]]
Paced = Callable[[Callable[[], None]], object]
"""Work that is given `pause`, and calls it wherever another may take its turn."""


def rate(step: Step, units: float, seconds: float) -> float:
    """Units per second of a step worth `units`, after two calls to warm up, over at least `seconds`."""
    step()
    step()
    started, calls = time.perf_counter(), 0
    while (passed := time.perf_counter() - started) < seconds or calls == 0:
        step()
        calls += 1
    return units * calls / passed


def machine_rate(make: Make, seconds: float = 0.5) -> float:
    """Units per second of the whole machine: `make() -> (step, units)` in each of one process a core, summed."""
    processes = forkable(cores(), 1)
    with Workers(lambda item, request: rate(*make(), seconds), [1.0] * processes, processes) as pool:
        return sum(found for _, found in pool.map(None))


def share(make: Make, ceiling: Make, *, repeats: int, seconds: float = 0.5) -> dict[str, float]:
    """Median rates of `make` and of the ceiling, and the median of their ratios, pair by pair."""
    pairs = [(machine_rate(ceiling, seconds), machine_rate(make, seconds)) for _ in range(repeats)]
    ratios = spread([own / top for top, own in pairs])
    return {
        "flops_per_second": median(own for _, own in pairs),
        "ceiling_flops_per_second": median(top for top, _ in pairs),
        "share": ratios.pop("median"),
        **ratios,
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, lowest and highest of several readings."""
    return {"median": median(values), "lowest": min(values), "highest": max(values)}


def timed(function: Step) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def in_turns(works: Sequence[Paced]) -> list[float]:
    """Seconds of each of several works that take turns, each in a process of its own: one works, the others wait.

    A machine's speed wanders by a tenth within seconds. Works that alternate from moment to moment meet the same
    machine, so the ratio of their times says what they cost. Raises RuntimeError where one ends early.
    """
    context = mp.get_context("fork")
    ours: list[Connection] = []
    processes = []
    for work in works:
        near, far = context.Pipe()
        ours.append(near)
        processes.append(context.Process(target=_paced, args=(work, far, list(ours))))
        processes[-1].start()
        far.close()
    seconds = [0.0] * len(works)
    left = list(range(len(works)))
    try:
        while left:
            for turn in list(left):
                ours[turn].send(None)
                passed, done = ours[turn].recv()
                seconds[turn] += passed
                if done:
                    left.remove(turn)
    except (EOFError, OSError) as error:
        raise RuntimeError(f"work {turn} of {len(works)} ended early") from error
    finally:
        for near in ours:
            near.close()  # whoever still waits for a turn ends
        for process in processes:
            process.join()
    return seconds


def _paced(work: Paced, pipe: Connection, inherited: list[Connection]) -> None:
    """One of those that take turns: tell the seconds of every turn."""
    for end in inherited:
        end.close()
    pipe.recv()
    started = time.perf_counter()

    def pause() -> None:
        nonlocal started
        pipe.send((time.perf_counter() - started, False))
        pipe.recv()
        started = time.perf_counter()

    try:
        work(pause)
        pipe.send((time.perf_counter() - started, True))
    except (EOFError, BrokenPipeError):
        return


def peak_growth_mb(function: Step) -> float:
    """By how many MiB `function` raises the peak memory of a fresh fork of this process."""

    def grown(item: int, request: None) -> float:
        before = resident_mb()
        function()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before

    give_back()
    with Workers(grown, [1.0, 0.0], 2) as pool:  # two, for one would run in this process
        return dict(pool.map(None, [0]))[0]


def resident_mb() -> float:
    """Memory this process holds now, MiB; its peak so far where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def machine() -> dict[str, Any]:
    """The hardware and the versions that a speed belongs to."""
    return {
        "processor": _processor(),
        "cores": cores(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "bf16": cpu_has_bf16(),
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": platform.platform(),
        "python": sys.version.split()[0],
        "torch": version("torch"),
        "torchvision": version("torchvision"),
        "load_average": round(os.getloadavg()[0], 2),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            return next(line.split(":", 1)[1].strip() for line in stream if line.startswith("model name"))
    except (FileNotFoundError, StopIteration):
        return platform.processor() or platform.machine()

"""Kept memory costs no fresh pages; returned memory leaves the process."""

import ctypes
import resource
import subprocess
import sys

import pytest
import torch

from fedre_audit import memory
from fedre_audit.bench.measure import peak_growth_mb
from fedre_audit.workers import Workers

if not hasattr(ctypes.CDLL(None), "mallopt"):
    pytest.skip("this C library has no mallopt", allow_module_level=True)

PAGES = 8 * 2**20 // resource.getpagesize()


WARM, ROUNDS = 60, 20


def faults() -> int:
    """Fresh pages in 20 rounds of making and freeing arrays of 2, 4 and 2 MiB, once the heap has found its shape."""
    before = 0
    for round_ in range(WARM + ROUNDS):
        if round_ == WARM:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        arrays = [torch.empty(size * 2**18).fill_(1.0) for size in (2, 4, 2)]
        del arrays
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def in_a_worker(function):
    """What `function` says in a process of its own, forked by `Workers`."""
    with Workers(lambda item, request: function(), [1.0, 0.0], 2) as pool:
        return dict(pool.map(None, [0]))[0]


def test_a_worker_keeps_what_it_frees():
    assert in_a_worker(faults) < PAGES  # fewer than a single round writes to


def alone(code: str) -> float:
    """What `code` leaves in `found`, in a fresh process: free memory from earlier tests would serve it first."""
    head = "import resource\nfrom fedre_audit import memory\nmemory.return_memory()\n"
    done = subprocess.run([sys.executable, "-c", f"{head}{code}\nprint(found)"], capture_output=True, check=True)
    return float(done.stdout)


def test_returned_memory_leaves_the_process_even_with_something_behind_it():
    found = alone(
        "def resident():\n"
        "    return int(open('/proc/self/statm').read().split()[1]) * resource.getpagesize() / 2**20\n"
        "before, held = resident(), []\n"
        "for number in range(20):\n"
        "    block = b'x' * (8 * 2**20)\n"
        "    held.append(b'y' * (number + 4096))\n"
        "    del block\n"
        "found = resident() - before"
    )
    assert found < 8


def test_growth_is_measured_from_a_process_that_keeps_nothing():
    """Else 64 MiB would go where 128 MiB were freed, and seem to need no memory."""
    memory.keep_memory()
    held = [torch.ones(2**19) for _ in range(64)]
    del held
    assert peak_growth_mb(lambda: [torch.ones(2**19) for _ in range(32)]) > 60


def test_a_library_without_mallopt_is_left_alone(monkeypatch):
    """An object without the functions stands in for it: any call would be an AttributeError."""
    asked = []
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: asked.append(name) or object())
    for function in (memory.keep_memory, memory.return_memory, memory.give_back):
        function()
    assert asked == [None] * 4  # two settings, one, and the giving back

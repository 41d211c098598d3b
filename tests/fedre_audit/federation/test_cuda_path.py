"""What the CUDA engine relies on, on any machine: nothing waits, nothing is left behind, a replayed step trains.

The meta device stands in for the GPU: it refuses tensors of two devices, and has no values that could be read. A tape
of operations stands in for the graph: replayed, it writes into the tensors it was recorded with.
"""

import copy
from contextlib import contextmanager

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fedre_audit.bench.federation import random_client
from fedre_audit.config import AuditConfig, resolve
from fedre_audit.federation import client as client_module
from fedre_audit.federation.client import SGDStep
from fedre_audit.federation.local import WARM_UP, CapturedStep, LocalClient
from fedre_audit.models import MODELS, build_model

META = torch.device("meta")
LARGE = ("resnet50", "resnet101", "resnet152", "vit_b_16", "vit_b_32", "resnet34")


@pytest.mark.parametrize("name", [name for name in MODELS if name not in LARGE])
def test_a_round_reads_no_value_and_leaves_nothing_behind(name, monkeypatch):
    monkeypatch.setattr(client_module, "autocast", lambda device, bf16: torch.autocast("cpu", enabled=False))
    shape = (1, 28, 28) if name.startswith("small_") else (3, 32, 32)
    model = build_model(name, shape, 10, 64, seed=0).to(META).to(memory_format=torch.channels_last)
    local = LocalClient(0, model, random_client(33, 8, shape, 0).to(META), resolve(AuditConfig(device="cpu")))
    outcome = local.round(0, present=True)
    assert outcome.representations.shape == (33, 64)
    assert {value.device for value in vars(outcome).values()} == {META}
    with pytest.raises(RuntimeError, match="meta"):
        int(outcome.correct)  # so any value read in the round would have raised


class Tape(TorchDispatchMode):
    """A CUDA graph of the processor: records operations without effect, and repeats them on the same tensors."""

    def __init__(self):
        super().__init__()
        self.played = 0
        self._operations = []
        self._before = {}

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        for value in tree_leaves(arguments):  # all: batch norm does not declare what it writes
            if isinstance(value, torch.Tensor):
                memory = value.untyped_storage()
                self._before.setdefault(memory.data_ptr(), (memory, memory.clone()))
        result = function(*arguments, **(options or {}))
        self._operations.append((function, arguments, options or {}, result))
        return result

    def undo(self):
        """Recording a graph computes nothing."""
        for memory, before in self._before.values():
            memory.copy_(before)

    def replay(self):
        self.played += 1
        with torch.no_grad():
            for function, arguments, options, result in self._operations:
                again = function(*arguments, **options)
                for old, new in zip(tree_leaves(result), tree_leaves(again), strict=True):
                    if isinstance(old, torch.Tensor) and old is not new:
                        old.copy_(new)


@pytest.fixture
def tapes(monkeypatch):
    made = []

    @contextmanager
    def record(tape, stream):
        tape.stream = stream
        made.append(tape)
        with tape:
            yield
        tape.undo()

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Tape)
    monkeypatch.setattr(torch.cuda, "graph", record)
    return made


@pytest.mark.parametrize("name", ["fedavg_cnn", "resnet4"])
def test_a_replayed_step_trains_like_the_step_itself(name, tapes):
    own = random_client(40, 0, (3, 16, 16), 0)
    model = build_model(name, (3, 16, 16), 10, 32, seed=0).train()
    twin = copy.deepcopy(model)
    eager = SGDStep(model, own.images, own.labels, lr=0.05)
    captured = CapturedStep(SGDStep(twin, own.images, own.labels, lr=0.05), "own")
    draw = torch.Generator().manual_seed(0)
    losses = []
    for size in (16, 7) * (3 * WARM_UP):  # a whole batch and the last, smaller one: a graph each
        index = torch.randperm(40, generator=draw)[:size]
        losses.append((captured(index), eager(index)))
    assert [tape.played for tape in tapes] == [2 * WARM_UP, 2 * WARM_UP]
    assert {tape.stream for tape in tapes} == {"own"}
    for ours, theirs in losses:
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    assert len({float(ours) for ours, _ in losses}) == len(losses)  # each call's own loss, not the last one's
    for ours, theirs in zip(twin.state_dict().values(), model.state_dict().values(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)

"""One client's share of a round, the same code in the parent, in a worker process and on a GPU.

On CUDA each client has a stream of its own and replays its training step as a captured graph, so that many small
clients overlap; nothing waits for the device before `settle`.
"""

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fedre_audit.config import AuditConfig
from fedre_audit.federation.client import (
    HEAVY,
    ClientData,
    SGDStep,
    count_correct,
    forward_flops,
    represent_all,
    run_epochs,
)
from fedre_audit.models.base import ClientModel
from fedre_audit.seeding import derive_seed, generator

WARM_UP = 3  # eager steps of each batch size before it is captured, as CUDA graphs ask for


@dataclass
class Outcome:
    """What one client's round gives: correct test images []; where it took part, loss [] and representations [N,d]."""

    correct: Tensor
    loss: Tensor | None = None
    representations: Tensor | None = None

    def __getstate__(self) -> dict[str, Any]:
        # NumPy through the pipe: a pickled tensor would go through /dev/shm, which containers keep small.
        return {name: value.numpy() for name, value in vars(self).items() if value is not None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, torch.from_numpy(value))


class CapturedStep:
    """An `SGDStep` replayed as a CUDA graph, one a batch size; the first steps run as they are and train like any.

    Captured on the stream it is replayed on: matrix products keep their workspace by stream, and graphs captured on
    torch's one default stream would share it, and overwrite each other's sums where clients overlap.
    """

    def __init__(self, step: SGDStep, stream: torch.cuda.Stream | None = None) -> None:
        self._step, self._stream = step, stream
        self._seen: Counter[int] = Counter()
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, Tensor, Tensor]] = {}

    def __call__(self, index: Tensor) -> Tensor:
        """index [b] -> the batch loss []."""
        size = len(index)
        if size not in self._graphs:
            self._seen[size] += 1
            if self._seen[size] <= WARM_UP:
                return self._step(index)
            held, graph = index.clone(), torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self._stream):
                loss = self._step(held)
            self._graphs[size] = (graph, held, loss)
        graph, held, loss = self._graphs[size]
        held.copy_(index)
        graph.replay()
        return loss.clone()


def has_depthwise(model: nn.Module) -> bool:
    """Whether a convolution treats each channel apart: bfloat16 doubles such a network's time on a CPU."""
    return any(isinstance(module, nn.Conv2d) and module.groups > 1 for module in model.modules())


class LocalClient:
    """A client between rounds: its model (changed in place) and data on one device, and how it computes.

    bf16: only models that gain from it: heavy (`HEAVY`), no depthwise convolution. cost: FLOPs of a
    round, for sharing clients out.
    """

    def __init__(self, number: int, model: ClientModel, data: ClientData, config: AuditConfig) -> None:
        self.number, self.model, self.data, self.config = number, model, data, config
        assert config.lr is not None, "a resolved configuration has a learning rate"
        flops = forward_flops(model)
        self.bf16 = config.precision == "bf16" and flops >= HEAVY and not has_depthwise(model)
        self.cost = flops * (len(data.images) * (3 * config.local_epochs + 1) + len(data.test_images))
        step = SGDStep(model, data.images, data.labels, lr=config.lr, bf16=self.bf16)
        on_gpu = data.images.is_cuda
        self._stream = torch.cuda.Stream() if on_gpu else None
        self._step = CapturedStep(step, self._stream) if on_gpu else step

    def round(self, round_: int, *, present: bool) -> Outcome:
        """Evaluate; where `present`, then train and represent."""
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream())  # the server's classifier has to be here
        with torch.cuda.stream(self._stream) if self._stream is not None else nullcontext():
            return self._round(round_, present)

    def _round(self, round_: int, present: bool) -> Outcome:
        own, config = self.data, self.config
        correct = count_correct(self.model, own.test_images, own.test_labels, bf16=self.bf16)
        if not present:
            return Outcome(correct)
        # Dropout draws from torch's own generators alone: seeded here, and left as they were found.
        with torch.random.fork_rng(devices=[own.images.device] if own.images.is_cuda else []):
            torch.manual_seed(derive_seed(config.seed, "dropout", round=round_, client=self.number))
            loss = run_epochs(
                self._step,
                self.model,
                len(own.images),
                epochs=config.local_epochs,
                batch_size=config.batch_size,
                shuffle=config.shuffle,
                generator=generator(config.seed, "loader", round=round_, client=self.number),
            )
        return Outcome(correct, loss, represent_all(self.model, own.images, bf16=self.bf16))


def settle(device: torch.device) -> None:
    """Wait until everything launched on `device` is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)

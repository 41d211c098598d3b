"""The naive reference: a federation as the public code of FedRE and HtFLlib runs it, for comparison only.

Samples are a Python list of float tensors behind a DataLoader, unshuffled and without the last, smaller batch, for
training and for prototypes; prototypes grow sample by sample in lists by class; every method of a client first reads
its model from disk and writes it back; NCHW, float32, one client after the other, one thread. Safetensors stand in
for pickled modules, which makes the reference a little faster.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from fedre_audit.federation.client import ClientData
from fedre_audit.models.base import ClientModel
from fedre_audit.models.single_position import as_convolutions

Samples = list[tuple[Tensor, int]]


def _loader(samples: Samples, batch_size: int, drop_last: bool = False) -> "DataLoader[Any]":
    return DataLoader(cast("Dataset[Any]", samples), batch_size, drop_last=drop_last)


class NaiveClient:
    """A client whose model lives on disk between calls."""

    def __init__(
        self, number: int, model: ClientModel, own: ClientData, folder: Path, batch_size: int, lr: float
    ) -> None:
        self.path, self._empty = folder / f"naive-{number}.safetensors", model
        self.batch_size, self.lr = batch_size, lr
        self.train_data = [(x.float() / 255, int(y)) for x, y in zip(own.images, own.labels, strict=True)]
        self.test_data = [(x.float() / 255, int(y)) for x, y in zip(own.test_images, own.test_labels, strict=True)]
        self._save(model)

    def _load(self) -> ClientModel:
        self._empty.load_state_dict(load_file(self.path))
        return self._empty

    def _save(self, model: ClientModel) -> None:
        save_file(model.state_dict(), self.path)

    def set_classifier(self, head: nn.Linear) -> None:
        """The server's classifier overwrites the client's."""
        model = self._load()
        model.classifier.load_state_dict(head.state_dict())
        self._save(model)

    def evaluate(self) -> int:
        """Correct test images, batch by batch, counted on the CPU."""
        model, correct = self._load().eval(), 0
        with torch.no_grad():
            for x, y in _loader(self.test_data, self.batch_size):
                correct += (torch.argmax(model(x), 1) == y).sum().item()
        return int(correct)

    def train(self) -> None:
        """One epoch of SGD."""
        model = self._load().train()
        optimiser = torch.optim.SGD(model.parameters(), lr=self.lr)
        for x, y in _loader(self.train_data, self.batch_size, drop_last=True):
            loss = F.cross_entropy(model(x), y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        self._save(model)

    def entangle(self) -> tuple[Tensor, dict[int, float]]:
        """Prototypes from lists of representations by class, then their randomly weighted mean."""
        model = self._load().eval()
        gathered: dict[int, list[Tensor]] = defaultdict(list)
        with torch.no_grad():
            for x, y in _loader(self.train_data, self.batch_size, drop_last=True):
                representations = model.represent(x)
                for i, label in enumerate(y):
                    gathered[label.item()].append(representations[i, :].detach().data)
        prototypes = {}
        for label, rows in gathered.items():
            total = 0 * rows[0].data
            for row in rows:
                total = total + row.data
            prototypes[label] = total / len(rows)
        drawn = {label: torch.rand(1).item() for label in prototypes}
        weights = {label: value / sum(drawn.values()) for label, value in drawn.items()}
        mixed = 0 * next(iter(prototypes.values()))
        for label, prototype in prototypes.items():
            mixed = mixed + weights[label] * prototype
        return mixed, weights


class NaiveFederation:
    """FedRE's round over naive clients, one after the other."""

    def __init__(
        self, models: Sequence[ClientModel], data: Sequence[ClientData], folder: Path, batch_size: int, lr: float
    ) -> None:
        for model in models:
            as_convolutions(model)
        pairs = enumerate(zip(models, data, strict=True))
        self.clients = [NaiveClient(k, model, own, folder, batch_size, lr) for k, (model, own) in pairs]
        first = models[0].classifier
        self.head = nn.Linear(first.in_features, first.out_features)
        self.head.load_state_dict(first.state_dict())

    def round(self) -> int:
        """Send, evaluate, train, entangle, server step; returns correct test images."""
        for client in self.clients:
            client.set_classifier(self.head)
        correct = sum(client.evaluate() for client in self.clients)
        for client in self.clients:
            client.train()
        uploads = [client.entangle() for client in self.clients]
        optimiser = torch.optim.SGD(self.head.parameters(), lr=0.01)
        losses = [
            weight * F.cross_entropy(self.head(mixed[None]), torch.tensor([label]))
            for mixed, weights in uploads
            for label, weight in weights.items()
        ]
        optimiser.zero_grad()
        sum(losses, torch.zeros(())).backward()
        optimiser.step()
        return correct

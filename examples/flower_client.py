"""A Flower client that uploads entangled prototypes (FedRE), and the server side that records them.

    pip install flwr
    python examples/flower_client.py my-uploads        # three simulated fits, without a network

The recorder stands at the server, where uploads arrive: `record_fit` is called from a strategy's `aggregate_fit`.
"""

import sys
from collections.abc import Sequence

import flwr
import numpy as np
from flwr.common import NDArrays, Scalar

from fedre_audit.record import Recorder

CLASSES, WIDTH = 4, 16


class PrototypeClient(flwr.client.NumPyClient):
    """Sends [vector of width d, label encoding of length C] where other clients send model weights."""

    def __init__(self, images: np.ndarray, labels: np.ndarray, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.images, self.labels = images.reshape(len(images), -1), labels
        self.weight = self.rng.standard_normal((self.images.shape[1], WIDTH)) / 10

    def fit(self, parameters: NDArrays, config: dict[str, Scalar]) -> tuple[NDArrays, int, dict[str, Scalar]]:
        features = np.maximum(self.images @ self.weight, 0)  # train here, then represent
        held = np.unique(self.labels)
        weights = self.rng.dirichlet(np.ones(len(held)))
        vector = sum(w * features[self.labels == c].mean(0) for w, c in zip(weights, held, strict=True))
        encoding = np.zeros(CLASSES)
        encoding[held] = weights
        return [vector, encoding], len(self.labels), {}


def record_fit(recorder: Recorder, server_round: int, results: Sequence[tuple[int, NDArrays]]) -> None:
    """Record what arrived in one round: (client id, arrays)."""
    for client, (vector, encoding) in results:
        recorder.upload(client, server_round, representation=vector, label_encoding=encoding)


def main(path: str) -> None:
    rng = np.random.default_rng(0)
    clients = [PrototypeClient(rng.random((40, 1, 8, 8)), rng.integers(0, CLASSES, 40), seed) for seed in range(3)]
    recorder = Recorder(path, system="flower-fedre", form="entangled", mechanism="RAP", classes=CLASSES)
    for server_round in range(1, 4):
        record_fit(recorder, server_round, [(i, client.fit([], {})[0]) for i, client in enumerate(clients)])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "my-uploads")

"""FedRE (arXiv 2511.22265) in a plain PyTorch loop, recorded by three lines marked `# recorded`.

python examples/plain_loop.py my-uploads && audit --uploads my-uploads
"""

import sys
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fedre_audit.record import Recorder, Truth


class Net(nn.Module):
    """Any network with an encoder and a last linear layer."""

    def __init__(self, width: int = 64, classes: int = 10) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.LazyLinear(width), nn.ReLU())
        self.classifier = nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.classifier(self.encoder(images))


def train(model: nn.Module, images: Tensor, labels: Tensor, lr: float, batch: int) -> None:
    model.train()
    optimiser = torch.optim.SGD(model.parameters(), lr=lr)
    for x, y in zip(images.split(batch), labels.split(batch), strict=True):
        optimiser.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimiser.step()


@torch.no_grad()
def entangle(model: nn.Module, images: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    model.eval()
    held, which, counts = labels.unique(return_inverse=True, return_counts=True)
    share = (weights / counts)[which]  # the mean of each class, weighted
    vector = (share.double() @ model.encoder(images).double()).float()
    encoding = torch.zeros(model.classifier.out_features)
    encoding[held] = weights
    return vector, encoding


def federate(
    models: Sequence[nn.Module], data: Sequence[tuple[Tensor, Tensor]], rounds: int, recorder: Recorder,
    draw: Callable[[int, int, int], Tensor], lr: float = 0.06, batch: int = 32, server_lr: float = 0.01,
) -> None:  # fmt: skip
    """draw(client, round, number of classes) -> mixing weights that sum to 1."""
    server = nn.Linear(models[0].classifier.in_features, models[0].classifier.out_features)
    server.load_state_dict(models[0].classifier.state_dict())
    for round_ in range(rounds):
        recorder.broadcast(round_, classifier=server)  # recorded
        vectors, labels = [], []
        for client, (model, (x, y)) in enumerate(zip(models, data, strict=True)):
            model.classifier.load_state_dict(server.state_dict())
            train(model, x, y, lr, batch)
            vector, encoding = entangle(model, x, y, draw(client, round_, len(y.unique())))
            recorder.upload(client, round_, representation=vector, label_encoding=encoding)  # recorded
            vectors.append(vector)
            labels.append(encoding)
        loss = F.cross_entropy(server(torch.stack(vectors)), torch.stack(labels), reduction="sum")
        gradients = torch.autograd.grad(loss, list(server.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(server.parameters(), gradients, strict=True):
                parameter -= server_lr * gradient


def main(path: str) -> None:
    torch.manual_seed(0)
    data = [(torch.rand(80, 1, 12, 12), torch.randint(0, 10, (80,))) for _ in range(3)]
    models = [Net() for _ in data]
    for model, (images, _) in zip(models, data, strict=True):
        model(images)
    recorder = Recorder(path, system="fedre", form="entangled", mechanism="RAP", classes=10)  # recorded
    federate(models, data, 15, recorder, lambda client, round_, n: torch.rand(n).softmax(0))
    for client, (images, labels) in enumerate(data):  # for the auditor alone, apart from the uploads
        Truth(f"{path}-truth").images(client, images, labels)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "my-uploads")

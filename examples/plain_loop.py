"""FedRE (arXiv 2511.22265) in a plain PyTorch loop on digits, recorded by three lines marked `# recorded`.

    python examples/plain_loop.py my-uploads && audit --uploads my-uploads

With the clients' weights, public images and the truth, the audit ends in a verdict:

    PYTHONPATH=examples audit --uploads my-uploads --auxiliary mnist5k --encoder plain_loop:encoder \\
        --weights "my-uploads-weights/client-{client}.safetensors" --truth my-uploads-truth
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from fedre_audit.data import load_dataset, to_float
from fedre_audit.record import Recorder, Truth

CLIENTS = 6


class Net(nn.Module):
    """Any network with an encoder and a last linear layer."""

    def __init__(self, width: int = 64, classes: int = 10) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.LazyLinear(width), nn.ReLU())
        self.classifier = nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.classifier(self.encoder(images))


def encoder() -> nn.Module:
    """What `--encoder plain_loop:encoder` calls: images [N,1,28,28] in [0,1] to what a client uploads."""
    model = Net()
    model(torch.zeros(1, 1, 28, 28))  # gives the lazy layer its size
    return model.encoder


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
    digits = load_dataset("mnist5k")  # images the clients hold are never given to the attacker
    order = torch.randperm(len(digits))[: CLIENTS * 150].split(150)
    data = [(to_float(digits.images[ids]), digits.labels[ids]) for ids in order]
    models = [Net() for _ in data]
    for model, (images, _) in zip(models, data, strict=True):
        model(images)
    recorder = Recorder(path, system="fedre", form="entangled", mechanism="RAP", classes=10)  # recorded
    federate(models, data, 40, recorder, lambda client, round_, n: torch.rand(n).softmax(0))
    Path(f"{path}-weights").mkdir(exist_ok=True)
    for client, (images, labels) in enumerate(data):  # for the auditor alone, apart from the uploads
        Truth(f"{path}-truth").images(client, images, labels)
        save_file(models[client].encoder.state_dict(), f"{path}-weights/client-{client}.safetensors")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "my-uploads")

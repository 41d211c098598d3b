"""Recorded FedRE streams with their truth, in memory: what the unmixing figures measure on.

Class counts, widths and rounds follow the pilots' set-ups (FedRE: CVPR 2026, arXiv 2511.22265).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fedre_audit.data.base import ImageData
from fedre_audit.federation.client import represent_all, train_local
from fedre_audit.federation.server import server_step
from fedre_audit.models.base import MODELS, ClientModel
from fedre_audit.seeding import derive_seed, generator
from knowledge_forms.base import FORMS, Classifier, ServerView, Upload
from knowledge_forms.class_means import class_means

WIDTH = 512
Counts = Mapping[int, int]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """counts: images by class, a client each. models: a name of MODELS, or `plain-WIDTH` (FedAvgCNN, that wide).

    drop_last: the images of an incomplete last batch are never trained on (in the released loader, unshuffled).
    """

    counts: Sequence[Counts]
    models: Sequence[str]
    rounds: int
    broadcast: bool
    seed: int
    shuffle: bool = False
    drop_last: bool = False
    lr: float = 0.06


@dataclass(frozen=True)
class Recorded:
    """One client after its last round: what the server saw, and apart from it the true prototypes [T,h,d]."""

    view: ServerView
    truth: Tensor
    model: ClientModel
    images: Tensor
    labels: Tensor


def plain(width: int, image_shape: tuple[int, int, int]) -> nn.Module:
    """FedAvgCNN with `width` and twice as many channels."""
    side = ((image_shape[1] - 4) // 2 - 4) // 2
    return nn.Sequential(
        nn.Conv2d(image_shape[0], width, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(2 * width * side * side, WIDTH), nn.ReLU(),
    )  # fmt: skip


def build(name: str, image_shape: tuple[int, int, int], classes: int, seed: int) -> ClientModel:
    """A client model of width 512."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        kind, _, width = name.partition("-")
        extractor = plain(int(width), image_shape) if kind == "plain" else MODELS[name](image_shape)
        model = ClientModel(
            name=name, extractor=extractor, image_shape=image_shape, num_classes=classes, feature_width=WIDTH
        )
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def draw_clients(data: ImageData, counts: Sequence[Counts], seed: int) -> list[Tensor]:
    """Ids of each client's images in random order, disjoint, from the published training part."""
    order = torch.randperm(len(data.labels), generator=generator(seed, "stream images"))
    order = order[data.official_split[order] == 0]
    pools = {label: order[data.labels[order] == label] for wanted in counts for label in wanted}
    taken = dict.fromkeys(pools, 0)
    clients = []
    for client, wanted in enumerate(counts):
        own = []
        for label, count in wanted.items():
            own.append(pools[label][taken[label] : taken[label] + count])
            taken[label] += count
        ids = torch.cat(own)
        clients.append(ids[torch.randperm(len(ids), generator=generator(seed, "stream order", client=client))])
    return clients


def record(data: ImageData, setup: Setup) -> list[Recorded]:
    """Train the federation and return each client's stream; nothing is written."""
    classes, form = len(data.classes), FORMS["entangled"]()
    ids = draw_clients(data, setup.counts, setup.seed)
    models = [
        build(name, data.shape, classes, derive_seed(setup.seed, "model", client=k))
        for k, name in enumerate(setup.models)
    ]
    head = models[0].classifier
    server = Classifier(head.weight.detach().clone(), head.bias.detach().clone())
    uploads: list[Upload] = []
    truth: list[list[Tensor]] = [[] for _ in models]
    sent: dict[int, Classifier] = {}
    for round_ in range(setup.rounds):
        if setup.broadcast:
            sent[round_] = server
            for model in models:
                model.classifier.weight.data.copy_(server.weight)
                model.classifier.bias.data.copy_(server.bias)
        now = []
        for k, (model, own) in enumerate(zip(models, ids, strict=True)):
            images, labels = data.images[own], data.labels[own]
            trained = len(own) // 32 * 32 if setup.drop_last else len(own)
            train_local(
                model, images[:trained], labels[:trained], epochs=1, lr=setup.lr, batch_size=32,
                shuffle=setup.shuffle, generator=generator(setup.seed, "loader", round=round_, client=k),
            )  # fmt: skip
            z = represent_all(model, images)
            result = form(z, labels, classes, generator(setup.seed, "form", round=round_, client=k))
            now.append(Upload(k, round_, "entangled", result.representation, result.label_encoding))
            means, held = class_means(z, labels, classes)
            truth[k].append(means[held > 0])
        uploads += now
        if setup.broadcast:
            r, y = torch.cat([u.representation for u in now]), torch.cat([u.label_encoding for u in now])
            server, _ = server_step(server, r, y, lr=0.01)
    view = ServerView("fedre", "entangled", "RAP", WIDTH, classes, tuple(uploads), sent)
    return [
        Recorded(view.client(k), torch.stack(truth[k]), models[k], data.images[ids[k]], data.labels[ids[k]])
        for k in range(len(models))
    ]

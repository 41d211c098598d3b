"""Every attacker on raw representations of one CIFAR-10 client, beside the floors, with the time it takes.

FedAvgCNN, 1,500 private images, SGD lr 0.06, batch 32, 20 epochs; the head after each epoch stands in for what the
server broadcast. 2,500 auxiliary images, for retrieval also 15,000. PSNR is the mean over the first 300 private
images; `null` is the same attacker fed the rows of someone else.
"""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attacks.base import ATTACKS, Attack
from attacks.floors import FLOORS, permuted_view
from attacks.knowledge import Q3
from attacks.matching import correlation_scores, embedding_scores, pixel_scores
from attacks.membership import MEMBERSHIP
from attacks.optimisation import Optimisation
from attacks.ridge import Ridge
from fedre_audit.audit.metrics import psnr
from fedre_audit.data import load_dataset, to_float
from fedre_audit.data.splits import make_split
from fedre_audit.figures import FIGURES, Figure
from fedre_audit.models import ClientModel, as_encoder, build_model
from fedre_audit.seeding import generator
from knowledge_forms.base import Classifier, ServerView, Upload

CLASSES, TARGETS, PRIVATE, AUXILIARY, MANY = 10, 300, 1500, 2500, 15_000
ATTACKERS = ("ridge", "random_features_ridge", "nearest_auxiliary_embedding", "corrector", "optimisation", "shadow")
SOURCES = (
    *(f"attacks/{name}.py" for name in ("floors", "ridge", "features_ridge", "retrieval", "corrector", "optimisation")),
    *(f"attacks/{name}.py" for name in ("shadow", "matching", "membership")),
    "fedre_audit/models/fedavg_cnn.py",
    "fedre_audit/figures/attackers_raw.py",
)


def train(model: ClientModel, images: Tensor, labels: Tensor, epochs: int = 20) -> dict[int, Classifier]:
    """Train in place; returns the head after each epoch."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.06)
    draw, heads = generator(0, "figure"), {}
    for epoch in range(epochs):
        for index in torch.randperm(len(images), generator=draw).split(32):
            logits = model(images[index].contiguous(memory_format=torch.channels_last))
            optimiser.zero_grad()
            F.cross_entropy(logits, labels[index]).backward()
            optimiser.step()
        head = model.classifier
        heads[epoch] = Classifier(head.weight.detach().clone(), head.bias.detach().clone())
    return heads


def view(rows: Tensor, labels: Tensor) -> ServerView:
    """One raw upload."""
    upload = Upload(0, 0, "raw", rows, F.one_hot(labels, CLASSES).float())
    return ServerView("fedallrep", "raw", "", rows.shape[1], CLASSES, (upload,))


def mean_psnr(attack: Attack, seen: ServerView, images: Tensor) -> float:
    """Mean over images of what a fitted attack makes of `seen`."""
    return round(float(psnr(attack.reconstruct(seen).images, images).mean()), 3)


def measured(build: Callable[[], Attack], knowledge: Q3, own: ServerView, images: Tensor) -> dict[str, float]:
    """PSNR, that of the permuted null, and seconds to fit and to reconstruct."""
    begun = time.perf_counter()
    attack = build().fit(knowledge)
    fitted = time.perf_counter()
    value = mean_psnr(attack, own, images)
    done = time.perf_counter()
    null = mean_psnr(attack, permuted_view(own, knowledge), images)
    return {
        "psnr": value, "null": null, "fit_seconds": round(fitted - begun, 1), "seconds": round(done - fitted, 1)
    }  # fmt: skip


def top1(scores: Tensor) -> float:
    """Share of rows whose own candidate, the one at the same place, scores highest."""
    return round(float((scores.argmax(1) == torch.arange(len(scores))).float().mean()), 4)


def retrieval(knowledge: Q3, own: ServerView, images: Tensor) -> dict[str, float]:
    """Top-1 among all private images by the reconstructions of ridge: plain pixel distance, and correlation."""
    decoded = Ridge().fit(knowledge).reconstruct(own).images
    return {"distance": top1(pixel_scores(decoded, images)), "correlation": top1(correlation_scores(decoded, images))}


def membership(knowledge: Q3, z: Tensor, images: Tensor, labels: Tensor, others: tuple[Tensor, Tensor]) -> Any:
    """AUC by attacker and images per class prototype; members against evaluation images of all classes."""
    found: dict[str, dict[str, float]] = {}
    for name, attack in MEMBERSHIP.items():
        fitted = attack().fit(knowledge)
        for n in (1, 5, 20):
            held = torch.cat([(labels == c).nonzero().flatten()[:n] for c in range(CLASSES)])
            prototypes = view(z[held].reshape(CLASSES, n, -1).mean(1), torch.arange(CLASSES))
            members = fitted.score(prototypes, images[held], labels[held])
            rest = fitted.score(prototypes, *others)
            found.setdefault(name, {})[str(n)] = round(float((members[:, None] > rest[None]).float().mean()), 3)
    return found


def identity_encoder(images: Tensor, labels: Tensor) -> dict[str, float]:
    """PSNR behind an encoder that only flattens 8x8 thumbnails: attackers must give the image back."""
    small = F.avg_pool2d(images, 4)
    known = Q3(small[TARGETS:], labels[TARGETS:], CLASSES, 0, nn.Flatten, nn.Flatten(), nn.Flatten())
    own = view(small[:50].flatten(1), labels[:50])
    return {name: mean_psnr(ATTACKS[name]().fit(known), own, small[:50]) for name in ("ridge", "corrector")} | {
        "optimisation": mean_psnr(Optimisation(start="noise", tv=0.0).fit(known), own, small[:50])
    }


def measure() -> dict[str, Any]:
    """See the top of the file."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    data = load_dataset("cifar10")
    split = make_split(data, private=PRIVATE, auxiliary=MANY, evaluation=500, seed=0)
    images, labels = to_float(data.images[split.private]), data.labels[split.private]
    model = build_model("fedavg_cnn", data.shape, CLASSES, 512, 0)
    heads = train(model, images, labels)
    encoder = as_encoder(model)
    public, public_labels = to_float(data.images[split.auxiliary]), data.labels[split.auxiliary]

    def enlarged(count: int) -> Q3:
        """What an attacker with the first `count` public images knows."""
        held = public[:count], public_labels[:count]
        return Q3(*held, CLASSES, 0, model.rebuild, encoder, encoder, classifiers=heads)

    known = enlarged(AUXILIARY)
    with torch.no_grad():
        z = encoder(images)
    own, targets = view(z[:TARGETS], labels[:TARGETS]), images[:TARGETS]
    floors = {floor.name: mean_psnr(floor().fit(known), own, targets) for floor in FLOORS}
    attackers = {name: measured(ATTACKS[name], known, own, targets) for name in ATTACKERS}
    others = to_float(data.images[split.evaluation]), data.labels[split.evaluation]
    values = {
        "targets": TARGETS,
        "floors": floors,
        "best_floor": max(floors.values()),
        "attackers": attackers,
        "retrieval_top1": {
            "candidates": PRIVATE,
            "chance": round(1 / PRIVATE, 5),
            "embedding": top1(embedding_scores(z, z.clone())),
            "ridge": {str(n): retrieval(enlarged(n), view(z, labels), images) for n in (AUXILIARY, MANY)},
        },
        "membership_auc": membership(known, z, images, labels, others),
        "identity_encoder": identity_encoder(images, labels),
    }
    torch.set_num_threads(threads)
    return values


FIGURES.register("attackers_raw")(Figure(measure, SOURCES))

"""Of how many images must a prototype be made before no single one is given away? CIFAR-10, FedAvgCNN, ridge.

One trained client of 1,500 images, prototypes of n of its images of one class (disjoint draws, 30 at most per class),
10,000 public images. The rows and the test are those of the audit: sample level means retrieval among images of the
same class above chance *and* gain over the best floor, both also above permuted uploads, at level .05 for each n.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import torch

from attacks.floors import permuted_view
from attacks.knowledge import Q3
from attacks.ridge import Ridge
from fedre_audit.audit.intervals import Floats
from fedre_audit.audit.power import ALPHA
from fedre_audit.audit.retrieval import retrieve
from fedre_audit.audit.rows import FormAttack, make_row
from fedre_audit.audit.scoring import ATTACK, CHANCE, FLOOR_NAMES, PERMUTED, floor_images, index_pairs
from fedre_audit.audit.truth import Contribution, make_targets
from fedre_audit.audit.units import PRIMARY, RETRIEVAL, sample_p
from fedre_audit.data.base import ImageData, load_dataset, to_float
from fedre_audit.federation.client import represent_all, train_local
from fedre_audit.figures import FIGURES, Figure
from fedre_audit.models.base import ClientModel, as_encoder, build_clients
from fedre_audit.seeding import generator
from fedre_audit.stages.tables import image_values
from knowledge_forms.base import ServerView, Upload

SIZES = (1, 2, 5, 20, 50)
SEED, EPOCHS, PRIVATE, AUXILIARY, OTHERS, DRAWS = 0, 10, 1500, 10_000, 2_000, 30


def trained(private: ImageData) -> ClientModel:
    """The client's model after training on its images alone."""
    (model,) = build_clients("fedavg_cnn", 1, private.shape, 10, 512, SEED)
    for epoch in range(EPOCHS):
        train_local(model, private.images, private.labels, epochs=1, lr=0.06, batch_size=32, shuffle=True,
                    generator=generator(SEED, "loader", round=epoch, client=0))  # fmt: skip
    return model.eval()


def groups(labels: torch.Tensor, size: int) -> torch.Tensor:
    """Upload row of every image, -1 for those left over: up to DRAWS disjoint groups of `size` images per class."""
    row, made = torch.full((len(labels),), -1), 0
    for label in range(10):
        mine = (labels == label).nonzero().flatten()
        for group in mine.split(size)[: min(DRAWS, len(mine) // size)]:
            row[group] = made
            made += 1
    return row


def one_size(size: int, private: ImageData, rows: torch.Tensor, ridge: Ridge, known: Q3, other: ImageData) -> Any:
    """What the audit says about prototypes of `size` images; rows: the private images' representations [N,d]."""
    row = groups(private.labels, size)
    kept = (row >= 0).nonzero().flatten()
    count = int(row.max()) + 1
    encoding = torch.zeros(count, 10)
    encoding[row[kept], private.labels[kept]] = 1.0
    truth = Contribution(kept, row[kept], torch.full((len(kept),), 1 / size), torch.bincount(private.labels[kept]),
                         torch.arange(10), torch.zeros(10, 1))  # fmt: skip
    upload = Upload(0, 0, "prototype", truth.mixing.apply(rows[kept]), encoding)
    view = ServerView("", "prototype", "", 512, 10, (upload,))
    images = {
        ATTACK: ridge.reconstruct(view).images,
        PERMUTED: ridge.reconstruct(permuted_view(view, known)).images,
        **floor_images(view, known.images, known.labels, SEED),
    }
    targets = make_targets("members", truth, to_float(private.images[kept]))
    index = index_pairs(targets, 0, private.labels[kept], truth.class_counts)
    index.client[:] = index.label  # a class is a cluster
    table = index.with_values(image_values(images, targets))
    picks, sizes = retrieve(index, images, targets.images, to_float(other.images), other.labels)

    def made(values: Any, metric: str, floors: tuple[str, ...], pool: Floats | None = None) -> dict[str, Any]:
        scored = FormAttack("prototype", "ridge", "Q2", 0, "members", values, floors=floors,
                            candidates=None if pool is None else float(np.median(pool)))  # fmt: skip
        return make_row(scored, "all", values, metric, len(known.images))

    image, pick = made(table, "psnr", FLOOR_NAMES), made(picks, "retrieval_top1", (CHANCE,), sizes)
    p = sample_p({PRIMARY: image, RETRIEVAL: pick})
    shown = {"value": image["value"], "best floor": image["floor"]["best"], "gain": image["gain"]["best"],
             "permuted gain over best floor": image["floor"]["permuted"] - image["floor"]["best"]}  # fmt: skip
    top1 = {"value": pick["value"], "chance": pick["chance"], "over chance": pick["gain"]["best"],
            "permuted": pick["floor"]["permuted"]}  # fmt: skip
    return {"n": size, "prototypes": count, "psnr": shown, "retrieval_top1": top1, "candidates": pick["candidates"],
            "p": p, "sample_level": p is not None and p <= ALPHA}  # fmt: skip


def measure() -> dict[str, Any]:
    """One entry per number of images in a prototype."""
    torch.set_num_threads(1)
    data = load_dataset("cifar10")
    order = torch.from_numpy(np.random.default_rng(SEED).permutation(len(data)))
    bounds = np.cumsum([0, PRIVATE, AUXILIARY, OTHERS])
    private, auxiliary, other = (data.subset(order[a:b]) for a, b in pairwise(bounds))
    model = trained(private)
    encoder = as_encoder(model)
    known = Q3(to_float(auxiliary.images), auxiliary.labels, 10, SEED, model.rebuild, encoder, encoder)
    ridge = Ridge().fit(known)
    rows = represent_all(model, private.images)
    return {f"n={size}": one_size(size, private, rows, ridge, known, other) for size in SIZES}


SOURCES = (
    "fedre_audit/figures/prototype_leakage.py", "fedre_audit/audit/units.py", "fedre_audit/audit/rows.py",
    "fedre_audit/audit/retrieval.py", "fedre_audit/audit/scoring.py", "fedre_audit/audit/intervals.py",
    "attacks/ridge.py", "attacks/floors.py", "fedre_audit/models/fedavg_cnn.py",
)  # fmt: skip
FIGURES.register("prototype_leakage")(Figure(measure, SOURCES))

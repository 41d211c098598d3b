"""From stream to images: classes of one image, unmixed and decoded, beside the single vector and the raw form."""

from statistics import mean
from typing import Any

import torch
from torch import Tensor

from attacks.ridge import ridge
from attacks.unmixing import unmix
from fedre_audit.data.base import ImageData, load_dataset
from fedre_audit.federation.client import represent_all
from fedre_audit.figures import FIGURES, Figure
from fedre_audit.figures.client_streams import Recorded, Setup, draw_clients, record
from fedre_audit.figures.unmixing_synthetic import SOURCES
from fedre_audit.seeding import generator
from knowledge_forms.class_means import class_means

PENALTY = 0.02
AUXILIARY = 10000
SIZES = (1, 1, 2, 5, 20, 100, 100, 100, 100, 100)
METHODS = ("adaptive_norm_smoothed", "learned_drift")


def setup_of(seed: int, broadcast: bool) -> Setup:
    """One client of ten classes, in random class order; with broadcast two of them, to give the server a mean."""
    order = [torch.randperm(10, generator=generator(seed, "class order", client=k)).tolist() for k in range(2)]
    counts = [dict(zip(classes, SIZES, strict=True)) for classes in order[: 2 if broadcast else 1]]
    return Setup(counts=counts, models=("plain-16",) * len(counts), rounds=60, broadcast=broadcast, seed=seed)


def psnr(images: Tensor, targets: Tensor) -> Tensor:
    """[n,...] in [0,1] -> [n] dB."""
    return -10 * (images.clamp(0, 1) - targets).square().flatten(1).mean(1).log10()


def measure_client(data: ImageData, recorded: Recorded, auxiliary: Tensor) -> dict[str, list[float]]:
    """PSNR by class size 1, for every way to guess the one image of each such class."""
    images = data.images[auxiliary].float().flatten(1) / 255
    decoder = ridge(represent_all(recorded.model, data.images[auxiliary]), images, PENALTY)
    targets, counts = class_means(recorded.images.float() / 255, recorded.labels, 10)
    single = (counts == 1).nonzero().flatten()
    truth = targets[single].flatten(1)
    means, _ = class_means(images, data.labels[auxiliary], 10)
    upload = recorded.view.latest.representation
    guesses = {
        "class_mean": means[single],
        "single vector": decoder(upload).expand(len(single), -1),
        "raw": decoder(recorded.truth[-1])[single],  # the prototype of one image is its representation
    }
    for method in METHODS:
        guesses[method] = decoder(unmix(recorded.view, method, nulls=0).prototypes)[single]
    return {name: psnr(guess, truth).tolist() for name, guess in guesses.items()}


def regime(data: ImageData, seeds: range, broadcast: bool) -> dict[str, Any]:
    """Mean PSNR and gain over the class mean, all classes of one image of all clients and seeds."""
    found: dict[str, list[float]] = {}
    for seed in seeds:
        setup = setup_of(seed, broadcast)
        private = torch.cat(draw_clients(data, setup.counts, seed))
        order = torch.randperm(len(data.labels), generator=generator(seed, "auxiliary"))
        auxiliary = order[~torch.isin(order, private)][:AUXILIARY]
        for recorded in record(data, setup):
            for name, values in measure_client(data, recorded, auxiliary).items():
                found.setdefault(name, []).extend(values)
    floor = mean(found["class_mean"])
    return {
        "images": len(found["raw"]),
        "psnr": {name: round(mean(values), 2) for name, values in found.items()},
        "gain over the class mean": {name: round(mean(values) - floor, 2) for name, values in found.items()},
    }


def measure() -> dict[str, Any]:
    """Broadcast off (three seeds, one client) and on (two seeds, two clients), on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    data = load_dataset("cifar10", root=None)
    values = {
        "broadcast off": regime(data, range(3), False),
        "broadcast on": regime(data, range(2), True),
    }
    torch.set_num_threads(threads)
    return values


HERE = ("fedre_audit/figures/unmixing_end_to_end.py", "fedre_audit/figures/client_streams.py", "attacks/ridge.py")
FIGURES.register("unmixing_end_to_end")(Figure(measure, (*SOURCES, *HERE)))

"""Convolutional decoder against ridge: raw CIFAR-10 representations of three trained encoders, equal public images."""

import time
from typing import Any

import numpy as np
import torch

from attacks.base import Attack
from attacks.decoder import DecoderAttack
from attacks.floors import MeanImage
from attacks.knowledge import Q3
from attacks.ridge import Ridge
from fedre_audit.audit.intervals import t_interval
from fedre_audit.audit.metrics import score_images
from fedre_audit.data.base import load_dataset, to_float
from fedre_audit.federation.client import represent_all, train_local
from fedre_audit.figures import FIGURES, Figure
from fedre_audit.models.base import as_encoder, build_clients
from fedre_audit.seeding import generator
from knowledge_forms.base import ServerView, Upload

SEEDS, EPOCHS, PRIVATE, AUXILIARY, STEPS = (0, 1, 2), 10, 1500, 15_000, 1800


def one_encoder(seed: int) -> dict[str, Any]:
    """Mean PSNR (dB) of each attacker on the client's own images, and the paired gain per image over ridge."""
    data = load_dataset("cifar10")
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(data)))
    private, auxiliary = data.subset(order[:PRIVATE]), data.subset(order[PRIVATE : PRIVATE + AUXILIARY])
    (model,) = build_clients("fedavg_cnn", 1, data.shape, 10, 512, seed)
    for epoch in range(EPOCHS):
        train_local(model, private.images, private.labels, epochs=1, lr=0.06, batch_size=32, shuffle=True,
                    generator=generator(seed, "loader", round=epoch, client=0))  # fmt: skip
    encoder = as_encoder(model)
    known = Q3(images=to_float(auxiliary.images), labels=auxiliary.labels, num_classes=10, seed=seed,
               architecture=model.rebuild, encoder=encoder, module=encoder)  # fmt: skip
    upload = Upload(0, 0, "raw", represent_all(model, private.images), torch.eye(10)[private.labels])
    view = ServerView("", "raw", "", 512, 10, (upload,))
    targets = to_float(private.images)

    def psnr(attack: Attack) -> np.ndarray:
        return np.asarray(score_images(("psnr",), attack.fit(known).reconstruct(view).images, targets)["psnr"])

    floor, ridge = psnr(MeanImage()), psnr(Ridge())
    attack = DecoderAttack(steps=STEPS)
    started = time.perf_counter()
    decoder = psnr(attack)
    return {
        "seed": seed, "mean_image": float(floor.mean()), "ridge": float(ridge.mean()),
        "decoder": float(decoder.mean()), "gain": float((decoder - ridge).mean()), "steps": attack.steps_,
        "rows_decoded_by_ridge": attack.choice_.count("ridge"), "bf16": attack.bf16_,
        "fit_seconds": time.perf_counter() - started,
    }  # fmt: skip


def measure() -> dict[str, Any]:
    """Three encoders; the interval is over encoders, paired by encoder."""
    torch.set_num_threads(1)
    encoders = [one_encoder(seed) for seed in SEEDS]
    gains = np.array([row["gain"] for row in encoders])
    interval = t_interval(gains)
    return {"encoders": encoders, "mean_gain_db": float(gains.mean()), "ci95": interval,
            "private": PRIVATE, "auxiliary": AUXILIARY, "steps": STEPS}  # fmt: skip


SOURCES = (
    "attacks/decoder.py",
    "attacks/ridge.py",
    "fedre_audit/models/fedavg_cnn.py",
    "fedre_audit/figures/decoder_vs_ridge.py",
)
FIGURES.register("decoder_vs_ridge")(Figure(measure, SOURCES))

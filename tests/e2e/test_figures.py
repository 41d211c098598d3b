"""Figures of the specification on real images: floors and the ridge decoder. Need the archives in FEDRE_AUDIT_DATA."""

import os
import time

import numpy as np
import pytest
import torch

from attacks.floors import ClassMean, Grey, MeanImage
from attacks.knowledge import Q0, Q3
from attacks.ridge import Ridge
from fedre_audit.audit.metrics import score_images
from fedre_audit.data.base import load_dataset
from fedre_audit.federation.client import train_local
from fedre_audit.models.base import as_encoder, build_clients
from fedre_audit.seeding import generator
from knowledge_forms.base import ServerView, Upload

pytestmark = pytest.mark.skipif(
    not os.environ.get("FEDRE_AUDIT_DATA"), reason="needs the image archives: set FEDRE_AUDIT_DATA to their folder"
)


def floats(data, ids):
    return data.images[ids].float() / 255.0


@pytest.mark.parametrize(
    ("name", "expected", "tolerance"),
    [("cifar10", (12.73, 13.11, 12.55), 0.1), ("tinyimagenet", (11.68, 11.93, 11.39), 0.25)],
)
def test_no_information_floors(name, expected, tolerance):
    data = load_dataset(name, root=None)
    train = (data.official_split == 0).nonzero().flatten()
    test = (data.official_split == 1).nonzero().flatten()
    stride = len(train) // 15000 + 1
    known = Q0(floats(data, train[::stride]), data.labels[train[::stride]], len(data.classes), 0)
    test = test[:: max(1, len(test) // 5000)]
    encoding = torch.eye(len(data.classes))[data.labels[test]]
    upload = Upload(0, 0, "raw", torch.zeros(len(test), 1), encoding)
    view = ServerView("", "raw", "", 1, len(data.classes), (upload,))
    for floor, value in zip((MeanImage, ClassMean, Grey), expected, strict=True):
        images = floor().fit(known).reconstruct(view).images
        psnr = score_images(("psnr",), images, floats(data, test))["psnr"].mean()
        assert abs(float(psnr) - value) < tolerance, (floor.name, float(psnr))


def test_ridge_beats_the_mean_image_by_4_5_db_on_a_trained_encoder():
    data = load_dataset("cifar10", root=None)
    order = np.random.default_rng(0).permutation(len(data.labels))
    private, auxiliary = torch.from_numpy(order[:1500]), torch.from_numpy(order[1500:2500])
    (model,) = build_clients("fedavg_cnn", 1, (3, 32, 32), 10, 512, 0)
    for round_ in range(8):
        train_local(
            model, data.images[private], data.labels[private], epochs=1, lr=0.06, batch_size=32, shuffle=True,
            generator=generator(0, "train", round=round_, client=0),
        )  # fmt: skip
    encoder = as_encoder(model)
    known = Q3(
        images=floats(data, auxiliary), labels=data.labels[auxiliary], num_classes=10, seed=0,
        architecture=model.rebuild, encoder=encoder, module=encoder,
    )  # fmt: skip
    with torch.no_grad():
        representations = encoder(floats(data, private))
    encoding = torch.eye(10)[data.labels[private]]
    view = ServerView("", "raw", "", 512, 10, (Upload(0, 0, "raw", representations, encoding),))
    started = time.perf_counter()
    images = Ridge().fit(known).reconstruct(view).images
    seconds = time.perf_counter() - started
    mean = MeanImage().fit(known).reconstruct(view).images
    targets = floats(data, private)
    psnr = [score_images(("psnr",), found, targets)["psnr"].mean() for found in (images, mean)]
    assert psnr[0] - psnr[1] >= 4.5
    assert seconds < 15

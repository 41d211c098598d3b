"""Local training, representing and evaluating: every sample counts, nothing else moves."""

import copy

import pytest
import torch
from torch.nn import functional as F

from fedre_audit.federation.client import ClientData, accuracy, batches, count_correct, represent_all, train_local
from fedre_audit.models import build_model
from fedre_audit.seeding import generator


def model_of(name="small_cnn", classes=3):
    return build_model(name, (1, 12, 12), classes, 32, seed=0)


def data_of(n, seed=0):
    draw = generator(seed, "images")
    return torch.randint(0, 256, (n, 1, 12, 12), generator=draw, dtype=torch.uint8), torch.arange(n) % 3


def train(model, images, labels, **changes):
    options = {"epochs": 1, "lr": 0.05, "batch_size": 4, "shuffle": True, "generator": generator(0, "loader")}
    return train_local(model, images, labels, **{**options, **changes})


def test_equals_a_naive_loop():
    images, labels = data_of(10)
    model = model_of()
    naive = copy.deepcopy(model)
    loss = train(model, images, labels, epochs=2)
    draw, losses = generator(0, "loader"), []
    for _ in range(2):
        order = torch.randperm(10, generator=draw).tolist()
        for start in (0, 4, 8):
            index = order[start : start + 4]
            step = F.cross_entropy(naive(images[index] / 255), labels[index])
            naive.zero_grad()
            step.backward()
            with torch.no_grad():
                for parameter in naive.parameters():
                    parameter -= 0.05 * parameter.grad
            losses.append(step.item())
    assert loss == pytest.approx(sum(losses) / 6, rel=1e-5)
    for ours, theirs in zip(model.parameters(), naive.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_every_sample_trains():
    order = torch.arange(9)
    for merge in (False, True):
        assert torch.equal(torch.cat(batches(order, 4, merge_single=merge)), order)
    assert [len(part) for part in batches(order, 4, merge_single=True)] == [4, 5]


def test_the_released_loader_never_shows_the_tail():
    images, labels = data_of(9)
    own = ClientData(images, labels, torch.arange(9), images[:0], labels[:0])
    kept = own.whole_batches(4)
    assert kept.ids.tolist() == list(range(8))
    assert torch.equal(kept.images, images[:8])
    assert torch.equal(kept.labels, labels[:8])
    assert len(own.whole_batches(10).images) == 0


@pytest.mark.parametrize(("n", "batch_size"), [(5, 4), (1, 4), (3, 1)])
def test_batch_norm_survives_batches_of_one(n, batch_size):
    model = model_of("small_resnet")
    # A 1x1 map leaves batch norm one value per channel: the case that PyTorch refuses.
    model.encoder.extractor = torch.nn.Sequential(
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Conv2d(1, 8, 1), torch.nn.BatchNorm2d(8), torch.nn.Flatten()
    )
    before = copy.deepcopy(model.state_dict())
    loss = train(model, *data_of(n), batch_size=batch_size)
    assert torch.isfinite(torch.tensor(loss))
    assert not torch.equal(before["classifier.weight"], model.classifier.weight)


def test_unshuffled_order_ignores_the_generator():
    images, labels = data_of(10)
    results = []
    for seed in (0, 1):
        model = model_of()
        train(model, images, labels, shuffle=False, generator=generator(seed, "loader"))
        results.append(model.classifier.weight.detach())
    assert torch.equal(*results)


@pytest.mark.parametrize("name", ["small_cnn", "small_resnet"])
def test_representing_and_evaluating_change_no_buffer_and_no_mode(name):
    images, labels = data_of(11)
    model = model_of(name).train()
    model.classifier.eval()  # a mixed state must come back as it was
    modes = [module.training for module in model.modules()]
    state = {key: value.numpy().tobytes() for key, value in model.state_dict().items()}
    whole = represent_all(model, images)
    accuracy(model, images, labels)
    assert [module.training for module in model.modules()] == modes
    assert {key: value.numpy().tobytes() for key, value in model.state_dict().items()} == state
    assert whole.dtype == torch.float32
    torch.testing.assert_close(represent_all(model, images, batch_size=3), whole)


def test_accuracy_counts_and_is_none_without_images():
    images, _ = data_of(6)
    model = model_of().eval()
    predicted = model(images / 255).argmax(1)
    wrong = (predicted + 1) % 3
    labels = torch.where(torch.arange(6) < 2, wrong, predicted)
    assert count_correct(model, images, labels, batch_size=4) == 4
    assert accuracy(model, images, labels) == pytest.approx(4 / 6)
    assert accuracy(model, images[:0], labels[:0]) is None

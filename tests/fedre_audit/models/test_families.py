"""The families of the literature: members, sizes, every image size, and one real step of each kind."""

import pytest
import torch

from fedre_audit.commands.list import table
from fedre_audit.config import AuditConfig, resolve
from fedre_audit.federation.client import ClientData
from fedre_audit.federation.local import LocalClient
from fedre_audit.models import FAMILIES, MODELS, build_clients, build_model
from fedre_audit.models.cost import measure

KINDS = ["resnet4", "resnet10", "resnet18", "resnet50", "googlenet", "mobilenet_v2", "vit_b_16", "vit_b_32"]
SHAPES = [(1, 28, 28), (3, 32, 32), (3, 24, 40), (3, 64, 64)]


@pytest.mark.parametrize(
    ("family", "size"),
    [("HtFE-img-2", 2), ("HtFE-img-3", 3), ("HtFE-img-4", 4), ("HtFE-img-5", 5), ("HtFE-img-8", 8),
     ("HtFE-img-9", 9), ("HtM-img-10", 10)],
)  # fmt: skip
def test_families_have_their_published_size_and_known_members(family, size):
    assert len(FAMILIES[family]) == size
    assert all(name in MODELS for name in FAMILIES[family])


def test_members_in_client_order():
    models = build_clients("HtFE-img-4", 5, (3, 32, 32), 10, 512, seed=0)
    assert [m.name for m in models] == ["fedavg_cnn", "googlenet", "mobilenet_v2", "resnet18", "fedavg_cnn"]
    heads = {tuple(m.classifier.weight.shape) for m in models}
    assert heads == {(10, 512)}


# Parameters without head, published: torchvision's documented totals less their heads of 1,000 classes.
@pytest.mark.parametrize(
    ("name", "total", "width"),
    [("resnet18", 11_689_512, 512), ("resnet34", 21_797_672, 512), ("resnet50", 25_557_032, 2048),
     ("resnet101", 44_549_160, 2048), ("resnet152", 60_192_808, 2048), ("mobilenet_v2", 3_504_872, 1280),
     ("googlenet", 6_624_904, 1024)],
)  # fmt: skip
def test_published_sizes(name, total, width):
    parameters, flops, native = measure(MODELS[name])
    assert (parameters, native) == (total - 1001 * 1000 - (width - 1000) * 1000, width)
    assert flops > 0


def test_shallow_residual_networks_double_in_width():
    assert [measure(MODELS[f"resnet{depth}"])[2] for depth in (4, 6, 8, 10)] == [64, 128, 256, 512]


def test_flops_of_a_known_network():
    # Multiplications and additions of FedAvgCNN by hand: 28^2 32 75 + 10^2 64 800 + 1600 512.
    assert measure(MODELS["fedavg_cnn"])[1] == 2 * (28**2 * 32 * 75 + 10**2 * 64 * 800 + 1600 * 512)


@pytest.mark.parametrize("name", KINDS)
def test_every_image_size_passes_in_training(name):
    for shape in SHAPES:
        with torch.device("meta"):
            model = build_model(name, shape, 7, 512, seed=1).train()
            assert model(torch.rand(2, *shape)).shape == (2, 7)


@pytest.mark.parametrize("name", ["resnet8", "googlenet", "mobilenet_v2", "vit_b_32"])
def test_one_real_step_reaches_every_parameter(name):
    model = build_model(name, (1, 28, 28), 4, 512, seed=1)
    model(torch.rand(2, 1, 28, 28)).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    with torch.no_grad():
        representations = model.eval().represent(torch.rand(2, 1, 28, 28))
    assert representations.shape == (2, 512)
    assert not torch.equal(representations[0], representations[1])


def test_padding_is_grey_and_does_not_touch_the_image():
    extractor = MODELS["vit_b_32"]((1, 28, 28))
    seen = []
    extractor.network.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    image = torch.rand(1, 1, 28, 28) * 2 - 1
    extractor(image)
    assert seen[0].shape == (1, 1, 32, 32)
    assert torch.equal(seen[0][..., :28, :28], image)
    assert seen[0][..., 28:, :].abs().sum() + seen[0][..., 28:].abs().sum() == 0


def test_dropout_follows_the_seed_and_not_torchs_generator():
    def states(disturb: int):
        torch.manual_seed(disturb)
        config = resolve(AuditConfig(batch_size=4, device="cpu"))
        images = torch.randint(0, 256, (8, 1, 28, 28), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
        data = ClientData(images, torch.arange(8) % 2, torch.arange(8), images[:0], torch.arange(0))
        model = build_model("mobilenet_v2", (1, 28, 28), 2, 512, seed=0)
        before = torch.get_rng_state()
        LocalClient(0, model, data, config).round(0, present=True)
        assert torch.equal(before, torch.get_rng_state())
        return model.classifier.weight.detach().clone()

    assert torch.equal(states(1), states(2))


def test_models_are_listed_with_what_they_cost():
    lines = table("models").splitlines()
    assert lines[0].split()[:3] == ["model", "parameters", "FLOPs"]
    (resnet,) = [line for line in lines if line.startswith("resnet18 ")]
    assert "11,176,512" in resnet
    assert "512" in resnet
    assert len(lines) == 1 + len(MODELS)

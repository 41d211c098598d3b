"""Every model on every kind of image; the split, the widths, the seeds, and what an attacker is handed."""

import pytest
import torch

from fedre_audit.models import (
    FAMILIES,
    MODELS,
    as_encoder,
    build_clients,
    build_model,
    check_width,
    load_clients,
    save_clients,
)
from knowledge_forms.errors import AuditError

SHAPES = [(1, 28, 28), (3, 32, 32), (3, 24, 40), (3, 64, 64)]
LIGHT = [name for name in MODELS if name.startswith(("small", "fedavg"))]


def state_bytes(model):
    return {name: value.numpy().tobytes() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", LIGHT)
def test_every_light_model_takes_every_image_and_trains(name, shape):
    model = build_model(name, shape, 7, 512, seed=1)
    images = torch.rand(3, *shape)
    representations = model.represent(images)
    assert representations.shape == (3, 512)
    assert torch.equal(model(images), model.classifier(model.represent(images)))
    model(images).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("name", LIGHT)
def test_images_are_normalised_once_inside(name):
    model = build_model(name, (1, 28, 28), 4, 300, seed=1).eval()
    images = torch.rand(2, 1, 28, 28)
    features = model.encoder.extractor(images * 2 - 1)
    expected = torch.nn.functional.adaptive_avg_pool1d(features, 300)
    torch.testing.assert_close(model.represent(images), expected)


def test_fedavg_cnn_has_the_published_size():
    sizes = [
        sum(p.numel() for p in build_model("fedavg_cnn", shape, 10, 512, seed=0).encoder.parameters())
        for shape in [(3, 32, 32), (3, 64, 64)]
    ]
    assert sizes == [873_408, 5_592_000]


def test_fedavg_cnn_refuses_images_it_cannot_take():
    with pytest.raises(AuditError, match="at least 16x16, got 15x40"):
        build_model("fedavg_cnn", (1, 15, 40), 10, 512, seed=0)


@pytest.mark.parametrize("shape", [(3, 14, 40), (1, 40, 14), (3, 1, 1)])
def test_googlenet_refuses_images_its_pooling_leaves_nothing_of(shape):
    with pytest.raises(AuditError, match=f"'googlenet' needs images of at least 15x15, got {shape[1]}x{shape[2]};"):
        build_clients("HtFE-img-5", 1, shape, 10, 512, seed=0)
    assert build_model("googlenet", (1, 15, 15), 10, 512, seed=0).eval()(torch.zeros(1, 1, 15, 15)).shape == (1, 10)


def test_small_family_is_five_kinds_dealt_round_robin():
    models = build_clients("small", 7, (1, 28, 28), 10, 64, seed=0)
    assert len(set(FAMILIES["small"])) >= 5
    assert [model.name for model in models] == [FAMILIES["small"][k % 5] for k in range(7)]


def test_seed_decides_the_weights_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    first, again, other = (build_clients("fedavg_cnn", 2, (1, 28, 28), 10, 512, seed=s) for s in (0, 0, 1))
    assert torch.equal(before, torch.get_rng_state())
    assert state_bytes(first[0]) == state_bytes(again[0])
    assert state_bytes(first[0]) != state_bytes(first[1])
    assert state_bytes(first[0]) != state_bytes(other[0])


def test_width_mismatch_names_client_model_and_both_sizes():
    models = build_clients("small", 3, (1, 28, 28), 10, 512, seed=0)
    check_width(models, 512)
    models[1] = build_model("small_vit", (1, 28, 28), 10, 300, seed=0)
    with pytest.raises(AuditError, match=r"client 1 \(small_vit\) sends width 300 .* expects 512"):
        check_width(models, 512)
    models[1].encoder.mapping = torch.nn.Identity()
    with pytest.raises(AuditError, match=r"client 1 \(small_vit\) sends width 768 through a head of width 300"):
        check_width(models, 300)


def test_check_width_changes_nothing():
    model = build_model("small_resnet", (1, 28, 28), 10, 512, seed=0).train()
    before = state_bytes(model)
    check_width([model], 512)
    assert state_bytes(model) == before
    assert all(module.training for module in model.modules())


def test_encoder_is_a_frozen_copy_that_passes_gradients_to_images():
    model = build_model("small_resnet", (1, 28, 28), 10, 512, seed=0).train()
    before = state_bytes(model)
    encoder = as_encoder(model)
    images = torch.rand(4, 1, 28, 28, requires_grad=True)
    encoder(images).sum().backward()
    assert images.grad.abs().sum() > 0
    assert not any(parameter.requires_grad for parameter in encoder.parameters())
    assert state_bytes(model) == before
    assert model.training
    torch.testing.assert_close(encoder(images), model.eval().represent(images))  # another memory layout


def test_rebuilding_gives_the_architecture_without_the_weights():
    model = build_model("small_cnn", (3, 24, 40), 10, 512, seed=3)
    rebuilt = model.rebuild()
    images = torch.rand(2, 3, 24, 40)
    assert rebuilt(images).shape == (2, 512)
    assert not torch.equal(rebuilt(images), model.represent(images))


def test_saved_clients_come_back_bit_for_bit(tmp_path):
    models = build_clients("small", 5, (3, 24, 40), 4, 96, seed=0)
    save_clients(tmp_path, models)
    loaded = load_clients(tmp_path)
    assert [m.name for m in loaded] == [m.name for m in models]
    assert [state_bytes(m) for m in loaded] == [state_bytes(m) for m in models]
    assert not any(m.training for m in loaded)


def test_clients_that_do_not_fit_are_named(tmp_path):
    with pytest.raises(AuditError, match=r"models\.json does not exist"):
        load_clients(tmp_path)
    save_clients(tmp_path, build_clients("small", 2, (1, 28, 28), 4, 96, seed=0))
    source = tmp_path / "clients" / "client-000.safetensors"
    source.write_bytes((tmp_path / "clients" / "client-001.safetensors").read_bytes())
    with pytest.raises(AuditError, match=r"client-000\.safetensors does not fit its model"):
        load_clients(tmp_path)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda whole: whole[:30],
        lambda whole: b"\xff\xfe\x00" + whole,
        lambda whole: b"[1]",
        lambda whole: whole.replace(b'"mapping"', b'"other"'),
        lambda whole: whole.replace(b'"small_cnn"', b"3"),
        lambda whole: whole.replace(b"28", b"0"),
        lambda whole: whole.replace(b"28,", b""),
    ],
)
def test_a_damaged_description_of_the_clients_is_named(tmp_path, spoil):
    save_clients(tmp_path, build_clients("small", 1, (1, 28, 28), 4, 96, seed=0))
    path = tmp_path / "clients" / "models.json"
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(AuditError, match=r"models\.json is (not valid JSON|damaged) .*; record the run again"):
        load_clients(tmp_path)

"""Every registered form runs through one contract."""

import pytest
import torch
from torch.nn import functional as F

from knowledge_forms.base import FORMS
from knowledge_forms.errors import AuditError

LABELS = torch.tensor([0, 3, 3, 1, 1, 1, 4, 3])
CLASSES = 6


def upload(name: str, seed: int = 0, labels: torch.Tensor = LABELS):
    z = torch.randn(len(labels), 7, generator=torch.Generator().manual_seed(1))
    return z, FORMS[name]()(z, labels, CLASSES, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", FORMS)
def test_upload_is_its_mixing_of_the_representations(name):
    z, made = upload(name)
    naive = torch.zeros(made.mixing.n, 7)
    encoding = torch.zeros(made.mixing.n, CLASSES)
    for i, (row, weight) in enumerate(zip(made.mixing.row.tolist(), made.mixing.weight.tolist(), strict=True)):
        naive[row] += weight * z[i]
        encoding[row, LABELS[i]] += weight
    torch.testing.assert_close(made.representation, naive, atol=1e-5, rtol=0)
    torch.testing.assert_close(made.label_encoding, encoding, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", FORMS)
def test_weights_are_a_distribution_in_every_row(name):
    _, made = upload(name)
    sums = torch.zeros(made.mixing.n).index_add_(0, made.mixing.row, made.mixing.weight)
    torch.testing.assert_close(sums, torch.ones(made.mixing.n), atol=1e-6, rtol=0)
    assert (made.mixing.weight >= 0).all()
    torch.testing.assert_close(made.label_encoding.sum(1), torch.ones(made.mixing.n), atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", FORMS)
def test_same_seed_same_upload(name):
    assert torch.equal(upload(name, seed=4)[1].representation, upload(name, seed=4)[1].representation)


@pytest.mark.parametrize("name", FORMS)
def test_states_what_it_discloses(name):
    assert FORMS[name]().discloses
    assert FORMS[name].name == name


@pytest.mark.parametrize("name", FORMS)
def test_bad_shapes_are_refused(name):
    with pytest.raises(AuditError, match="needs representations"):
        FORMS[name]()(torch.zeros(3, 4, 1), torch.zeros(3, dtype=torch.long), 2, torch.Generator())
    with pytest.raises(AuditError, match="N > 0"):
        FORMS[name]()(torch.zeros(0, 4), torch.zeros(0, dtype=torch.long), 2, torch.Generator())


def test_every_sample_of_a_class_counts_the_same_in_an_entangled_upload():
    _, made = upload("entangled")
    for label in LABELS.unique():
        assert made.mixing.weight[label == LABELS].unique().numel() == 1
    assert torch.equal(made.label_encoding[0] > 0, F.one_hot(LABELS, CLASSES).sum(0) > 0)


def test_one_class_client_uploads_its_prototype_and_one_image_class_its_representation():
    labels = torch.tensor([2, 2, 2])
    z, entangled = upload("entangled", labels=labels)
    _, prototype = upload("prototype", labels=labels)
    torch.testing.assert_close(entangled.representation, prototype.representation, atol=1e-6, rtol=0)
    z, made = upload("prototype")
    torch.testing.assert_close(made.representation[0], z[0], atol=1e-6, rtol=0)  # class 0 has one image


def test_entangled_weights_are_drawn_afresh():
    assert not torch.equal(upload("entangled", seed=0)[1].label_encoding, upload("entangled", seed=1)[1].label_encoding)

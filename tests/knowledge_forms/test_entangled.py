"""The six mechanisms: what they mix, with which weights, and what their label encoding tells."""

import pytest
import torch

from knowledge_forms.class_means import class_means
from knowledge_forms.entangled import LAWS, MECHANISMS, EntangledRepresentation, normalise
from knowledge_forms.errors import AuditError
from knowledge_forms.prototype import Prototype

LABELS = torch.tensor([0, 3, 3, 1, 1, 1, 4, 3, 1, 0])
CLASSES = 6
Z = torch.randn(len(LABELS), 8, generator=torch.Generator().manual_seed(3))
HISTOGRAM = torch.bincount(LABELS, minlength=CLASSES) / len(LABELS)


def send(mechanism, seed=0, labels=LABELS, law="uniform", weights="per_round"):
    form = EntangledRepresentation(mechanism=mechanism, law=law, weights=weights)
    return form(Z[: len(labels)], labels, CLASSES, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_weights_are_a_distribution_and_give_the_upload(mechanism, law):
    made = send(mechanism, law=law)
    weight = made.mixing.weight
    assert weight.sum() == pytest.approx(1, abs=1e-6)
    assert (weight >= 0).all()
    torch.testing.assert_close(made.representation[0], weight @ Z, atol=1e-5, rtol=0)
    assert made.label_encoding.shape == (1, CLASSES)
    assert made.label_encoding.sum() == pytest.approx(1, abs=1e-6)


def test_definitions():
    means, counts = class_means(Z, LABELS, CLASSES)
    torch.testing.assert_close(send("VAR").representation[0], Z.mean(0), atol=1e-6, rtol=0)
    torch.testing.assert_close(send("VAP").representation[0], means[counts > 0].mean(0), atol=1e-6, rtol=0)
    rap = send("RAP")
    torch.testing.assert_close(rap.representation[0], rap.label_encoding[0] @ means, atol=1e-5, rtol=0)
    for mechanism, rows in (("RSR", Z), ("RSP", means[counts > 0])):
        gaps = (rows - send(mechanism).representation).abs().amax(1)
        assert (gaps < 1e-6).sum() == 1


# --- what each label encoding discloses, as `discloses` claims ---


def test_rsr_tells_the_label_of_one_image_and_sends_its_representation():
    made = send("RSR")
    (chosen,) = made.mixing.weight.nonzero().flatten().tolist()
    assert torch.equal(made.representation[0], Z[chosen])
    assert made.label_encoding[0].argmax() == LABELS[chosen]
    assert made.label_encoding.max() == 1


def test_var_tells_the_exact_histogram():
    torch.testing.assert_close(send("VAR").label_encoding[0], HISTOGRAM, atol=1e-6, rtol=0)


def test_rar_tells_the_class_set_and_a_histogram_that_averages_out():
    encodings = torch.cat([send("RAR", seed).label_encoding for seed in range(400)])
    assert ((encodings > 0) == (HISTOGRAM > 0)).all()
    assert (encodings[0] - HISTOGRAM).abs().max() > 0.02  # one round is noisy
    assert (encodings.mean(0) - HISTOGRAM).abs().max() < 0.02  # many are not


def test_fixed_rar_never_averages_out():
    fixed = EntangledRepresentation(mechanism="RAR", weights="fixed")
    assert "averages out" not in fixed.discloses
    assert "averages out" in EntangledRepresentation(mechanism="RAR").discloses
    rounds = [fixed(Z, LABELS, CLASSES, torch.Generator().manual_seed(0)).label_encoding for _ in range(3)]
    assert all(torch.equal(rounds[0], other) for other in rounds)


def test_rsp_tells_one_held_class_and_every_one_comes_up():
    encodings = torch.cat([send("RSP", seed).label_encoding for seed in range(200)])
    assert (encodings.max(1).values == 1).all()
    shares = encodings.mean(0)
    assert ((shares > 0) == (HISTOGRAM > 0)).all()
    assert shares[HISTOGRAM > 0].min() > 0.15  # uniform over classes (0.25 each), not over images


def test_vap_tells_the_class_set_alone():
    expected = (HISTOGRAM > 0) / (HISTOGRAM > 0).sum()
    torch.testing.assert_close(send("VAP").label_encoding[0], expected.float(), atol=1e-6, rtol=0)
    fewer = torch.tensor([0, 1, 3, 4])  # other counts, same classes: the same encoding
    assert torch.equal(send("VAP", labels=fewer).label_encoding, send("VAP").label_encoding)


def test_no_encoding_tells_how_many_images_a_class_has():
    """To the last bit: n times 1/n in float32 would."""
    for images in range(1, 301):
        labels = torch.arange(images + 2).clamp(max=2)  # one image of 0 and of 1, `images` of 2
        z = torch.zeros(len(labels), 1)
        draw = torch.Generator().manual_seed(0)
        encoding = EntangledRepresentation(mechanism="VAP")(z, labels, 3, draw).label_encoding[0]
        assert encoding.tolist() == torch.full((3,), 1 / 3).tolist(), images
        single = EntangledRepresentation()(z[2:], labels[2:], 3, draw).label_encoding[0]
        assert single.tolist() == [0.0, 0.0, 1.0], images
        prototypes = Prototype()(z, labels, 3, draw)
        assert prototypes.label_encoding.tolist() == torch.eye(3).tolist(), images
        assert prototypes.mixing.weight.dtype == torch.float32


def test_rap_tells_the_class_set_and_the_weights():
    made = send("RAP")
    assert torch.equal(made.label_encoding[0] > 0, HISTOGRAM > 0)
    own = torch.zeros(CLASSES).index_add_(0, LABELS, made.mixing.weight)
    torch.testing.assert_close(made.label_encoding[0], own, atol=1e-6, rtol=0)


# --- weights ---


@pytest.mark.parametrize(("law", "square"), [("uniform", 1 / 3), ("gaussian", 1.0), ("laplace", 2.0)])
def test_laws_have_their_moments(law, square):
    draws = LAWS[law](200_000, torch.Generator().manual_seed(0))
    assert draws.square().mean() == pytest.approx(square, rel=0.02)
    kurtosis = {"uniform": 9 / 5, "gaussian": 3.0, "laplace": 6.0}[law]
    assert draws.pow(4).mean() / square**2 == pytest.approx(kurtosis, rel=0.05)


def test_never_a_zero_sum():
    assert torch.equal(normalise(torch.zeros(4)), torch.full((4,), 0.25, dtype=torch.float64))
    assert normalise(torch.tensor([-2.0, 2.0])).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("law", LAWS)
def test_a_class_keeps_its_fixed_draw_while_the_set_around_it_changes(law):
    before = send("RAP", law=law, weights="fixed").label_encoding[0]
    after = send("RAP", law=law, weights="fixed", labels=torch.tensor([5, 1, 3, 3])).label_encoding[0]
    assert torch.equal(after > 0, torch.tensor([False, True, False, True, False, True]))
    assert after[1] / after[3] == pytest.approx(float(before[1] / before[3]), rel=1e-5)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("labels", [[2], [2, 2, 2]])
def test_one_image_and_one_class_clients(mechanism, labels):
    made = send(mechanism, labels=torch.tensor(labels))
    assert made.label_encoding[0].tolist() == [0, 0, 1, 0, 0, 0]
    assert torch.isfinite(made.representation).all()


def test_unknown_names_list_the_choices():
    with pytest.raises(AuditError, match="unknown mechanism 'RAX'; choose one of: RAP, RAR"):
        send("RAX")
    with pytest.raises(AuditError, match="unknown weight law 'cauchy'"):
        send("RAP", law="cauchy")

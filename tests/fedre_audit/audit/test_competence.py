"""Able attackers pass, broken ones do not."""

import pytest
import torch

from attacks.base import ATTACKS, Attack
from attacks.ridge import Ridge
from fedre_audit.audit import competence as subject


def passed(name: str) -> dict[str, bool]:
    return {item["name"].split(":")[0].split(",")[0]: item["passed"] for item in subject.attack_checks(name)}


def test_ridge_unmixing_and_membership_are_able():
    block = subject.competence(["ridge", "membership_distance", "membership_projection"], unmixing=True)
    assert block["passed"], [item for item in block["checks"] if not item["passed"]]
    assert {item["attack"] for item in block["checks"]} == {
        "ridge", "unmixing", "membership_distance", "membership_projection",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["optimisation", "corrector", "nearest_auxiliary_embedding"])
def test_other_attackers_are_able(name):
    assert all(passed(name).values())


class Constant(Attack):
    """Answers with the mean image whatever it is sent."""

    name = "ridge"
    level = "Q2"

    def _fit(self, knowledge):
        self.mean_ = knowledge.images.mean(0)

    def _reconstruct(self, upload):
        return self.mean_.expand(len(upload.representation), *self.image_shape_)


class Broken(Constant):
    """Answers with no number at all."""

    def _reconstruct(self, upload):
        return super()._reconstruct(upload) * float("nan")


class Peeking(Ridge):
    """Gains where nothing is to be gained: its test images are what it holds."""

    def _reconstruct(self, upload):
        return subject.gaussian_images(len(upload.representation), seed=9)[0]


@pytest.mark.parametrize(
    ("attack", "failing"),
    [
        (Constant, {"linear-Gaussian optimum", "identity encoder inverted"}),
        (Broken, {"linear-Gaussian optimum", "identity encoder inverted"}),
        (Peeking, {"collapsed encoder", "permuted pairs"}),
    ],
)
def test_broken_attackers_are_caught(attack, failing, monkeypatch):
    monkeypatch.setitem(ATTACKS._all(), "ridge", attack)
    assert {name for name, ok in passed("ridge").items() if not ok} == failing
    assert not subject.competence(["ridge"], unmixing=False)["passed"]


def test_an_unmixer_that_returns_the_newest_vector_is_caught(monkeypatch):
    real = subject.unmix

    def lazy(view, **options):
        found = real(view, **options)
        vector = view.latest.representation
        object.__setattr__(found, "prototypes", vector.expand(len(found.prototypes), -1))
        return found

    monkeypatch.setattr(subject, "unmix", lazy)
    failed = [item["name"] for item in subject.unmixing_checks() if not item["passed"]]
    assert failed == ["planted static prototypes, relative error", "planted drifting prototypes, relative error"]


def test_nothing_checked_is_nothing_passed():
    assert subject.competence([], unmixing=False) == {"passed": False, "checks": []}


def test_planted_images_have_the_covariance_they_claim():
    images, covariance = subject.gaussian_images(20000)
    centred = images.flatten(1).double() - 0.5
    assert torch.allclose(centred.T @ centred / len(centred), covariance, atol=5e-5)
    assert images.min() > 0
    assert images.max() < 1

"""Budget curves: each axis changes what it says it changes, and saturation is a rule on the last doubling."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from attacks.base import Attack
from attacks.budget import budget_curve, newest_rounds, saturated
from attacks.optimisation import Optimisation
from attacks.ridge import Ridge
from knowledge_forms.errors import AuditError
from tests.attacks.tiny import knowledge, upload_of


def private(count=10):
    return torch.rand(count, 1, 6, 6, generator=torch.Generator().manual_seed(8))


def errors(curve):
    return [float((point.reconstructions[0].images - private()).square().mean()) for point in curve]


def test_more_auxiliary_images_and_more_steps_lower_the_error():
    view = upload_of(private().flatten(1))
    curve = budget_curve(Ridge, knowledge(count=160), [view], axis="auxiliary", points=[160, 20, 80])
    assert [point.budget for point in curve] == [20, 80, 160]
    assert errors(curve) == sorted(errors(curve), reverse=True)
    curve = budget_curve(
        partial(Optimisation, start="noise", tv=0.0), knowledge(), [view], axis="steps", points=[1, 10, 100]
    )
    assert errors(curve) == sorted(errors(curve), reverse=True)


def test_rounds_are_the_newest_ones():
    class Counts(Attack):
        """Answers with the number of rounds it was shown."""

        name = "counts"

        def _reconstruct(self, upload):
            return torch.full((len(upload.representation), *self.image_shape_), upload.round / 10)

    latest = upload_of(torch.zeros(2, 36)).latest
    stream = replace(upload_of(torch.zeros(2, 36)), uploads=tuple(replace(latest, round=r) for r in (2, 0, 1, 3)))
    assert [upload.round for upload in newest_rounds(stream, 2).uploads] == [2, 3]
    curve = budget_curve(Counts, knowledge(), [stream, stream], axis="rounds", points=[1, 4])
    assert [len(point.reconstructions) for point in curve] == [2, 2]
    assert all(answer.round == 3 for point in curve for answer in point.reconstructions)


def test_impossible_budgets_are_refused():
    view = upload_of(private().flatten(1))
    with pytest.raises(AuditError, match="at least 1"):
        budget_curve(Ridge, knowledge(), [view], axis="auxiliary", points=[0, 10])
    with pytest.raises(AuditError, match="there are 80"):
        budget_curve(Ridge, knowledge(), [view], axis="auxiliary", points=[100])


@pytest.mark.parametrize(
    ("budgets", "leakage", "expected"),
    [
        ([1, 2, 4], [1.0, 2.0, 2.0], True),
        ([1, 2, 4], [1.0, 1.0, 2.0], False),
        ([10, 40], [0.0, 1.0], False),  # half of 40 lies half way up in the logarithm
        ([10, 40], [0.0, 0.19], True),
        ([30, 40], [1.0, 1.0], False),  # no doubling was seen
        ([40], [1.0], False),
        ([10, 20], [1.0, float("nan")], False),
        ([10, 20], [2.0, 1.0], True),
    ],
)
def test_saturation(budgets, leakage, expected):
    assert saturated(budgets, leakage, tolerance=0.1) is expected

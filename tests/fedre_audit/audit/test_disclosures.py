"""What leaks without any attack."""

import pytest
import torch

from fedre_audit.audit.disclosures import disclosures
from knowledge_forms.base import FORMS, ServerView, Upload
from knowledge_forms.entangled import EntangledRepresentation

LABELS = torch.tensor([0] * 6 + [2] * 3 + [3])


def stream(form, rounds: int) -> ServerView:
    uploads = []
    for round_ in range(rounds):
        made = form(torch.zeros(len(LABELS), 2), LABELS, 4, torch.Generator().manual_seed(round_))
        uploads.append(Upload(0, round_, form.name, made.representation, made.label_encoding))
    return ServerView("fedre", form.name, form.mechanism, 2, 4, tuple(uploads))


def by_kind(view: ServerView) -> dict:
    return {item["kind"]: item["value"] for item in disclosures(view)}


@pytest.mark.parametrize("form", FORMS)
def test_the_class_set_is_always_told(form):
    assert by_kind(stream(FORMS[form](), 1))["class_set"] == [0, 2, 3]


def test_exact_shares_from_raw_and_var():
    expected = {"0": 0.6, "2": 0.3, "3": 0.1}
    assert by_kind(stream(FORMS["raw"](), 1))["label_histogram_exact"] == pytest.approx(expected)
    var = by_kind(stream(EntangledRepresentation(mechanism="VAR"), 3))
    assert var["label_histogram_exact"] == pytest.approx(expected)
    assert var["mixing_weights_rounds"] == 3


@pytest.mark.parametrize("mechanism", ["RSR", "RAR"])
def test_shares_average_out_over_rounds(mechanism):
    told = by_kind(stream(EntangledRepresentation(mechanism=mechanism), 600))["label_histogram_estimated"]
    assert told == pytest.approx({"0": 0.6, "2": 0.3, "3": 0.1}, abs=0.06)


@pytest.mark.parametrize("mechanism", ["RSR", "RAR", "RSP", "VAR", "VAP", "RAP"])
def test_exact_weights_are_said_only_where_no_image_weighs_more_than_another_of_its_class(mechanism):
    told = by_kind(stream(EntangledRepresentation(mechanism=mechanism), 2))
    assert [told.get(kind) for kind in ("mixing_weights_rounds", "class_weights_rounds")] == (
        [None, 2] if mechanism in ("RSR", "RAR") else [2, None]
    )


def test_prototypes_tell_no_counts():
    assert set(by_kind(stream(FORMS["prototype"](), 2))) == {"class_set"}

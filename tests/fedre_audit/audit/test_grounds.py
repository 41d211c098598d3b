"""The grounds of a verdict: what decided it, or what was missing and the way out of it."""

import copy

import numpy as np
import pytest

from fedre_audit.audit.grounds import grounds
from fedre_audit.audit.verdict import verdict
from fedre_audit.figures.verdict_synthetic import synthetic_audit


def explained(scores, **options):
    judged = scores | {"verdict": verdict(scores)}
    return judged["verdict"], grounds(judged, **options)


@pytest.fixture(scope="module")
def leaking():
    return synthetic_audit(np.random.default_rng(3), "n1")


@pytest.fixture(scope="module")
def silent():
    scores = synthetic_audit(np.random.default_rng(4))
    scores["federation"] |= {"rounds": 20, "clients": 10}
    return scores


def test_what_decided_is_the_rows_of_the_worst_unit_with_the_numbers_of_the_sentence(leaking):
    judged, found = explained(leaking)
    picked, image = found["decided"]
    assert (picked["metric"], image["metric"]) == ("retrieval_top1", "psnr")
    assert (image["attack"], image["stream"], image["slice"]) == tuple(judged["worst"].values())[:3]
    assert image["gain"] == judged["worst"]["gain"]
    assert f"chance {100 * picked['floor']:.1f} %" in judged["sentence"]
    assert found["missing"] == []


def test_no_leakage_found_has_neither(silent):
    assert explained(silent)[1] == {"decided": [], "missing": []}


def test_streams_that_were_not_unmixed_are_sent_to_more_rounds(silent):
    entries = [{"client": k, "rounds": 60, "recovered": True, "validated": k < 2} for k in range(4)]
    judged, found = explained(silent | {"unmixing": entries})
    (one,) = found["missing"]
    assert one["what"] in judged["sentence"]
    assert (one["what"], one["section"]) == ("unmixing is not validated for 2 of 4 clients", "unmixing")
    assert "--rounds 100" in one["change"]
    (one,) = explained(silent | {"unmixing": entries}, recorded=True)[1]["missing"]
    assert "record more rounds than these 20" in one["change"]


def test_a_failed_check_is_named_and_shown_where_it_stands(silent):
    check = {"name": "known optimum", "attack": "ridge", "passed": False}
    (one,) = explained(silent | {"competence": {"passed": False, "checks": [check]}})[1]["missing"]
    assert one["what"] == "ridge failed the competence check 'known optimum'"
    assert one["section"] == "competence"
    (one,) = explained(silent | {"competence": {"passed": False, "checks": []}})[1]["missing"]
    assert one["section"] == "competence"


def broken(scores, **changes):
    found = copy.deepcopy(scores)
    for row in found["rows"]:
        if row["headline"] and row["slice"] == "all":
            row |= copy.deepcopy(changes)
    return found


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"status": "not_validated", "reason": "shadow has no check with a known answer"}, "for instance ridge"),
        ({"status": "not_validated", "reason": "unmixing validated for no client; see there"}, "--rounds 100"),
        ({"status": "failed", "reason": "3 of 9 answers are not finite"}, "not numbers"),
        ({"n_clusters": 2}, "--clients"),
        ({"headline": False}, "--attacks, for instance ridge"),
    ],
)
def test_every_reason_has_a_way_out(silent, changes, words):
    judged, found = explained(broken(silent, **changes))
    assert judged["level"] == "NOT_ASSESSED"
    assert found["missing"]
    for one in found["missing"]:
        assert one["what"] in judged["sentence"]
        assert one["change"] != "see there"
    assert any(words in one["change"] for one in found["missing"])

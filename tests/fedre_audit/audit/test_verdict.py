"""The verdict's rule, on synthetic audits that pass through the real row-making."""

import copy

import numpy as np
import pytest

from fedre_audit.audit.competence import apply_competence
from fedre_audit.audit.declare import declared_attacks
from fedre_audit.audit.units import holm, weights_of
from fedre_audit.audit.verdict import gain_of, verdict
from fedre_audit.figures.verdict_synthetic import levels, synthetic_audit


@pytest.fixture(scope="module")
def leaking():
    return synthetic_audit(np.random.default_rng(3), "n1")


@pytest.fixture(scope="module")
def silent():
    return synthetic_audit(np.random.default_rng(4))


def test_holm_equals_the_textbook():
    p = {"a": 0.001, "b": 0.013, "c": 0.03, "d": 0.04}
    assert holm(p) == {"a", "b"}
    assert holm(p, {"a": 1, "b": 1, "c": 50, "d": 1}) == {"a", "b", "c", "d"}
    assert holm({}) == set()


def test_small_classes_and_the_whole_get_most_of_the_level():
    units = [("ridge", 60, part) for part in ("all", "n1", "n20+", "client 0", "client 1")] + [("ridge", 1, "all")]
    assert list(weights_of(units).values()) == [4.0, 4.0, 1.0, 0.5, 0.5, 1.0]


def test_a_leak_in_the_tiny_classes_decides_and_is_named(leaking):
    found = verdict(leaking)
    assert found["level"] == "SAMPLE_LEVEL"
    assert (found["worst"]["stream"], found["worst"]["slice"]) == (60, "n1")
    assert "slice n1" in found["sentence"]
    assert found["numbers"]["form"] > found["numbers"]["floor"] + 3


def test_silence_says_how_small_a_gain_would_have_been_seen(silent):
    found = verdict(silent)
    assert found["level"] == "NO_IMAGE_LEAKAGE_FOUND"
    assert 0 < found["thresholds"]["detectable_gain_db"] < 3
    assert f"{found['thresholds']['detectable_gain_db']:.2f} dB" in found["sentence"]


def test_false_alarms_are_rare_and_planted_leaks_are_found():
    quiet = levels(30, 11)
    assert quiet["CLASS_LEVEL"] + quiet["SAMPLE_LEVEL"] <= 4  # 30 at 5 %: more than 4 has probability .016
    found = levels(12, 12, "n2-5")
    assert found["SAMPLE_LEVEL"] + found["CLASS_LEVEL"] == 12


def test_a_failed_competence_check_allows_no_statement(leaking, silent):
    for scores in (leaking, silent):
        broken = copy.deepcopy(scores)
        broken["competence"] = {"passed": False, "checks": [{"name": "inverts", "attack": "ridge", "passed": False}]}
        found = verdict(broken)
        assert found["level"] == "NOT_ASSESSED"
        assert "inverts" in found["sentence"]
    assert verdict(copy.deepcopy(silent) | {"competence": {"passed": False, "checks": []}})["level"] == "NOT_ASSESSED"


@pytest.mark.parametrize("status", ["failed", "not_validated"])
def test_a_broken_attack_never_reads_as_no_leakage(silent, status):
    broken = copy.deepcopy(silent)
    for row in broken["rows"]:
        if row["stream"] == 60 and row["slice"] == "all":
            row |= {"status": status, "reason": "planted"}
    found = verdict(broken)
    assert found["level"] == "NOT_ASSESSED"
    assert "planted" in found["sentence"]


def test_too_little_data_is_no_proof_of_silence(silent):
    short = copy.deepcopy(silent)
    for row in short["rows"]:
        for gain in row["gain"].values():
            gain |= {"ci95": None, "p": None}
    assert verdict(short)["level"] == "NOT_ASSESSED"
    wide = copy.deepcopy(silent)
    for row in wide["rows"]:
        if row["metric"] == "psnr":
            row["gain"]["permuted"]["ci95"] = [-20.0, 20.0]
    assert "would miss a gain" in verdict(wide)["sentence"]


def test_equal_to_the_floor_everywhere_is_no_proof_of_silence(silent):
    same = copy.deepcopy(silent)
    for row in same["rows"]:
        row["gain"]["mean_image"] |= {"value": 0.0, "ci95": [0.0, 0.0]}
    assert verdict(same)["level"] == "NOT_ASSESSED"


def test_two_clients_are_no_proof_of_silence(silent):
    few = copy.deepcopy(silent)
    for row in few["rows"]:
        row |= {"n_clusters": 2, "n_rows": 2, "interval_unit": "image"}
    assert "too little data" in verdict(few)["sentence"]


def test_a_skipped_client_is_no_proof_of_silence(silent):
    skipped = copy.deepcopy(silent)
    for row in skipped["rows"]:
        if row["stream"] == 1 and row["slice"] == "all" and row["headline"]:
            row["n_clusters"] -= 1
    skipped["rows"].append(copy.deepcopy(silent["rows"][0]) | {"headline": False})
    found = verdict(skipped)
    assert found["level"] == "NOT_ASSESSED"
    assert "answers for 9 of 10 clients" in found["sentence"]


def test_one_validated_client_does_not_speak_for_the_others(silent, leaking):
    entries = [{"recovered": True, "rounds": 60, "validated": client == 0} for client in range(10)]
    refused = {"recovered": False, "rounds": 60, "validated": False}
    found = verdict(silent | {"unmixing": [*entries, refused]})
    assert found["level"] == "NOT_ASSESSED"
    assert "unmixing is not validated for 9 of 10 clients" in found["sentence"]
    assert verdict(silent | {"unmixing": [entries[0], refused]})["level"] == "NO_IMAGE_LEAKAGE_FOUND"
    assert verdict(leaking | {"unmixing": entries})["level"] == "SAMPLE_LEVEL"


@pytest.mark.parametrize(("gain", "level"), [(-2.0, "NOT_ASSESSED"), (None, "NOT_ASSESSED"),
                                             (2.0, "NO_IMAGE_LEAKAGE_FOUND")])  # fmt: skip
def test_an_attack_that_fails_on_raw_representations_too_proves_no_silence(silent, gain, level):
    row = next(r for r in silent["rows"] if r["headline"] and r["stream"] == 1 and r["metric"] == "psnr")
    raw = copy.deepcopy(row) | {"form": "raw", "headline": False}
    raw["gain"]["mean_image"] |= {"value": gain, "ci95": None if gain is None else [gain - 1, gain + 1]}
    found = verdict(silent | {"rows": [*silent["rows"], raw]})
    assert found["level"] == level
    assert ("even on raw" in found["sentence"]) == (level == "NOT_ASSESSED")


def on_stream(silent, part, target, gains, best=None):
    """The silent audit with planted gains of one row on the stream; best: of its gain over the best floor."""
    found = copy.deepcopy(silent)
    row = next(r for r in found["rows"] if (r["stream"], r["slice"], r["metric"], r["target"])
               == (60, part, "psnr", target))  # fmt: skip
    for floor, gain in row["gain"].items():
        gain |= {"value": best, "p": 0.9} if best is not None and floor == "best" else {"value": gains, "p": 1e-9}
        row["floor"][floor] = row["value"] - gain["value"]
    return found, row


def test_the_class_level_sentence_and_numbers_rest_on_the_row_that_met_the_rule(silent):
    found, row = on_stream(silent, "all", "class_mean", 1.5)
    members = next(r for r in found["rows"] if (r["stream"], r["slice"], r["metric"], r["target"])
                   == (60, "all", "psnr", "members"))  # fmt: skip
    members["gain"] |= {name: {"value": -2.5, "ci95": [-3.0, -2.0], "p": 0.9} for name in members["gain"]}
    made = verdict(found)
    assert made["level"] == "CLASS_LEVEL"
    assert "+1.50 dB over the best floor on class means" in made["sentence"]
    assert made["worst"]["gain"] == 1.5
    assert (made["numbers"]["form"], made["numbers"]["target"]) == (row["value"], "class_mean")
    assert made["numbers"]["form"] - made["numbers"]["floor"] == pytest.approx(1.5)


def test_a_gain_over_the_mean_image_stands_beside_the_mean_image(silent):
    found, row = on_stream(silent, "all", "members", 1.0, best=-2.0)
    made = verdict(found)
    assert "+1.00 dB over the mean image" in made["sentence"]
    assert made["numbers"] | {"against": "mean_image", "floor": row["floor"]["mean_image"]} == made["numbers"]
    assert made["worst"]["gain"] == 1.0


def test_the_worst_unit_is_the_one_that_gains_most_over_the_floor_of_the_rule(silent):
    found, _ = on_stream(silent, "all", "members", 1.0, best=0.9)
    found, _ = on_stream(found, "n1", "members", 3.0, best=-0.5)
    made = verdict(found)
    assert (made["worst"]["slice"], made["worst"]["gain"]) == ("n1", 3.0)


def test_a_gain_of_zero_is_more_than_no_gain_and_less_than_a_positive_one():
    row = {"gain": {"best": {"value": 0.0}, "mean_image": {"value": None}}}
    assert gain_of(row, "best") == 0.0
    assert gain_of(row, "mean_image") == -np.inf


def test_undeclared_rows_never_decide(leaking):
    hidden = copy.deepcopy(leaking)
    for row in hidden["rows"]:
        row["headline"] = row["headline"] and row["slice"] == "n20+"
    assert verdict(hidden)["level"] == "NOT_ASSESSED"  # n20+ leaks nothing, and it is not the whole
    for row in hidden["rows"]:
        row["headline"] = False
    assert "nothing was declared" in verdict(hidden)["sentence"]


def test_rows_of_an_unchecked_or_failed_attack_are_not_validated(silent):
    rows = copy.deepcopy(silent["rows"])
    block = {"passed": False, "checks": [{"name": "planted stream", "attack": "unmixing", "passed": False},
                                         {"name": "inverts", "attack": "ridge", "passed": True}]}  # fmt: skip
    apply_competence(rows, block)
    assert {row["status"] for row in rows if row["stream"] == 1} == {"ok"}
    assert {row["status"] for row in rows if row["stream"] == 60} == {"not_validated"}
    apply_competence(rows, {"passed": False, "checks": []})
    assert {row["status"] for row in rows} == {"not_validated"}


def test_silence_says_what_its_rules_leave_out(silent):
    row = next(r for r in silent["rows"] if (r["metric"], r["slice"], r["stream"]) == ("psnr", "all", 1))
    above = {"value": 0.2, "ci95": [0.1, 0.3], "p": 0.001, "df": 9.0}
    other = copy.deepcopy(row) | {"metric": "membership_auc", "attack": "membership_distance", "headline": False}
    other["gain"] |= {"best": above, "permuted": above}
    found = verdict(silent | {"rows": [*silent["rows"], other]})
    assert found["level"] == "NO_IMAGE_LEAKAGE_FOUND"
    assert "Outside these rules, above guessing: Membership, AUC (membership_distance)." in found["sentence"]
    for change in ({"status": "failed"}, {"form": "raw"}, {"slice": "n1"}, {"curve": "rounds"},
                   {"gain": other["gain"] | {"permuted": above | {"ci95": [-0.1, 0.3]}}}):  # fmt: skip
        said = verdict(silent | {"rows": [*silent["rows"], other | change]})["sentence"]
        assert "Outside these rules" not in said, change


def test_single_images_that_could_not_be_tested_are_not_called_safe(silent):
    found, _ = on_stream(silent, "all", "members", 1.0, best=-2.0)
    assert verdict(found)["sentence"].endswith("the rule for single images was not met.")
    for row in found["rows"]:
        if row["metric"] == "retrieval_top1":
            row["status"] = "failed"
    made = verdict(found)
    assert made["level"] == "CLASS_LEVEL"
    assert made["sentence"].endswith("single images could not be tested.")


def test_a_share_picked_out_is_not_rounded_away(leaking):
    found = copy.deepcopy(leaking)
    for row in found["rows"]:
        if row["metric"] == "retrieval_top1":
            row["value"] = 0.9962
    assert "picks out 99.6 % of them" in verdict(found)["sentence"]


def test_one_attack_per_level_is_declared():
    assert declared_attacks(["ridge", "random_features_ridge", "optimisation"]) == [
        "optimisation",
        "random_features_ridge",
    ]

"""What a verdict of no leakage says of itself: its power, its groups, and what its rules leave out."""

import copy

import numpy as np
import pytest
from scipy import stats

from fedre_audit.audit.grounds import grounds
from fedre_audit.audit.power import detectable_gain, detectable_leak, shift
from fedre_audit.audit.silence import blind_words
from fedre_audit.audit.verdict import verdict
from fedre_audit.figures.verdict_synthetic import synthetic_audit

ABOVE = {"value": 0.2, "ci95": [0.1, 0.3], "p": 1e-9, "df": 9.0}


@pytest.fixture(scope="module")
def silent():
    return synthetic_audit(np.random.default_rng(4))


def row_of(scores, stream=1, part="all", metric="psnr", target="members"):
    return next(r for r in scores["rows"] if (r["stream"], r["slice"], r["metric"], r["target"])
                == (stream, part, metric, target))  # fmt: skip


def with_row(silent, **changes):
    """The silent audit with one row more: an undeclared one above the best floor and the permuted upload."""
    other = copy.deepcopy(row_of(silent)) | {"headline": False, **changes}
    other["gain"] |= {"best": ABOVE, "permuted": ABOVE} if "gain" not in changes else {}
    return silent | {"rows": [*silent["rows"], other]}


@pytest.mark.parametrize(("df", "alpha"), [(3, 0.0125), (9, 0.025), (30, 0.001)])
def test_the_shift_is_that_of_a_simulated_t_test(df, alpha):
    rng = np.random.default_rng(1)
    draws = rng.standard_normal((20000, df + 1)) + shift(df, alpha, 0.8) / np.sqrt(df + 1)
    t = draws.mean(1) / (draws.std(1, ddof=1) / np.sqrt(df + 1))
    assert (stats.t.sf(t, df) <= alpha).mean() == pytest.approx(0.8, abs=0.012)


@pytest.mark.parametrize("together", [0.0, 0.9])
@pytest.mark.parametrize("clients", [4, 6, 10])
def test_what_an_audit_says_it_would_have_seen_another_one_sees(clients, together):
    """Of audits of clients with gains over two floors: the size each states, planted in another one, is found."""
    rng, share, ways, found = np.random.default_rng(5), 0.25, 2, []
    mixed = np.linalg.cholesky([[1.0, together], [together, 1.0]]) * np.array([[1.0], [1.5]])

    def gains():
        return rng.standard_normal((clients, 2)) @ mixed.T

    for _ in range(400):
        seen, gain = gains(), {}
        half = seen.std(0, ddof=1) / np.sqrt(clients) * stats.t.ppf(0.975, clients - 1)
        for i, floor in enumerate(("mean_image", "permuted")):
            gain[floor] = {"ci95": [seen[:, i].mean() - half[i], seen[:, i].mean() + half[i]], "df": clients - 1}
        row = {"gain": gain, "n_clusters": clients, "n_rows": 30, "interval_unit": "client"}
        other = gains() + detectable_leak(row, share, ways)
        t = other.mean(0) / (other.std(0, ddof=1) / np.sqrt(clients))
        found.append(stats.t.sf(t, clients - 1).max() * ways <= 0.025 * share)
    assert np.mean(found) > 0.78  # 0.8 promised, three standard errors of 400 draws are .06


def test_detectable_gain_is_of_the_width_and_freedom_of_the_interval_of_three_clients(silent):
    row = copy.deepcopy(silent["rows"][0]) | {"n_clusters": 3, "n_rows": 9, "interval_unit": "image"}
    row["gain"]["best"] |= {"ci95": [-1.0, 1.0], "df": 6.0}
    error = 1.0 / 2.447 * np.sqrt(6 / 3.070)  # t, 6 degrees: .975; chi-squared, 6 degrees: .2
    assert detectable_gain(row, "best", 0.5) == pytest.approx(error * shift(6, 0.0125, 0.8), rel=1e-3)


def test_a_comparison_that_cannot_be_judged_leaves_no_leak_detectable(silent):
    row = copy.deepcopy(row_of(silent))
    assert detectable_leak(row, 0.5, 2) is not None
    row["gain"]["permuted"] |= {"ci95": None, "df": None}
    assert detectable_leak(row, 0.5, 2) is None


def test_groups_say_what_every_attack_would_have_seen_and_what_was_not_judged():
    rows = [{"form": "entangled", "stream": 1, "n_clusters": 5}]
    blind = {("ridge", 60, "all"): 0.5, ("ridge", 1, "all"): 0.25, ("ridge", 60, "n1"): None, ("other", 60, "n1"): 0.4,
             ("ridge", 60, "n2-5"): 2.0, ("other", 60, "n2-5"): 1.0, ("ridge", 60, "n20+"): 3.5,
             ("ridge", 60, "client 0"): 2.5, ("ridge", 60, "client 1"): None,
             ("ridge", 60, "client 2"): 1.5}  # fmt: skip
    assert blind_words(blind, {"rows": rows, "federation": {"form": "entangled"}}) == (
        "Gains over the mean image and the permuted upload below 0.50 dB over all images (the mean over clients), "
        "below 2.00 dB in classes of 2–5 images on 60 rounds, below 2.50 dB in each of 2 single clients would have "
        "gone unseen; not judged: classes of 1 image on 60 rounds, classes of 20 or more images on 60 rounds, "
        "3 of 5 clients by themselves"
    )


def test_silence_says_what_its_rules_leave_out(silent):
    found = verdict(with_row(silent, metric="membership_auc", attack="membership_distance"))
    assert found["level"] == "NO_IMAGE_LEAKAGE_FOUND"
    assert "Outside these rules, above guessing: Membership, AUC (membership_distance)." in found["sentence"]
    without = copy.deepcopy(row_of(silent))["gain"] | {"best": ABOVE, "permuted": ABOVE | {"ci95": [-0.1, 0.3]}}
    for change in ({"status": "failed"}, {"form": "raw"}, {"slice": "n1"}, {"curve": "rounds"}, {"gain": without}):
        said = verdict(with_row(silent, **{"metric": "membership_auc"} | change))["sentence"]
        assert "Outside these rules" not in said, change


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"attack": "another"}, "PSNR (another)"),  # members, by an attack that was not declared
        ({"metric": "ssim"}, "SSIM (ridge)"),
        ({"metric": "retrieval_top1", "slice": "n1"}, "Picked out, first guess in classes of 1 image (ridge)"),
        ({"metric": "psnr", "target": "mixture"}, "PSNR of the weighted mean image of the upload (ridge)"),
    ],
)
def test_whatever_is_above_guessing_is_named(silent, changes, said):
    assert said in verdict(with_row(silent, **changes))["sentence"]


def test_a_permuted_null_that_was_not_made_hinders_no_naming(silent):
    none = dict.fromkeys(ABOVE)
    gain = copy.deepcopy(row_of(silent))["gain"] | {"best": ABOVE, "permuted": none}
    found = verdict(with_row(silent, metric="membership_auc", attack="membership_distance", gain=gain))
    assert "Membership, AUC (membership_distance)" in found["sentence"]


def test_images_that_are_picked_out_are_no_silence(silent):
    picked = copy.deepcopy(silent)
    row = row_of(picked, metric="retrieval_top1")
    row["gain"] |= {"best": ABOVE, "permuted": ABOVE}
    row["value"] = 0.95
    found = verdict(picked)
    assert found["level"] == "NOT_ASSESSED"
    assert "picks out 95.0 % of the images" in found["sentence"]


def test_a_gain_that_the_permuted_upload_shares_is_no_silence(silent):
    shared = copy.deepcopy(silent)
    row_of(shared)["gain"]["mean_image"] |= {"value": 4.9, "ci95": [4.5, 5.3], "p": 1e-9}
    found = verdict(shared)
    assert found["level"] == "NOT_ASSESSED"
    assert "gains +4.90 dB over the mean image, but no more than with permuted uploads" in found["sentence"]


def test_an_attack_that_hardly_moves_shows_nothing(silent):
    still = copy.deepcopy(silent)
    for row in still["rows"]:
        if row["metric"] == "psnr":
            for gain in row["gain"].values():
                if gain["ci95"] is not None:
                    gain |= {"value": gain["value"] * 1e-3, "ci95": [end * 1e-3 for end in gain["ci95"]]}
    found = verdict(still)
    assert found["level"] == "NOT_ASSESSED"
    assert "hardly moves from the mean image" in found["sentence"]


def test_a_validated_stream_that_an_attack_left_out_is_no_silence(silent):
    some = copy.deepcopy(silent)
    some["unmixing"] = [{"recovered": True, "rounds": 60, "validated": True} for _ in range(10)]
    for row in some["rows"]:
        if row["stream"] == 60:
            row["n_clusters"] = 4
    found = verdict(some)
    assert found["level"] == "NOT_ASSESSED"
    assert "slice all has answers for 4 of 10 clients" in found["sentence"]


def test_what_is_above_guessing_is_named_where_nothing_was_assessed(silent):
    scores = with_row(silent, metric="retrieval_top1", slice="n1", stream=1)
    scores = scores | {
        "unmixing": [{"recovered": True, "rounds": 60, "validated": client == 0} for client in range(10)]
    }
    found = verdict(scores)
    assert found["level"] == "NOT_ASSESSED"
    said = "Above guessing all the same, outside the rules: Picked out, first guess in classes of 1 image (ridge)."
    assert found["sentence"].endswith(said)
    failed = verdict(scores | {"competence": {"passed": False, "checks": []}})
    assert "Above guessing" not in failed["sentence"]


@pytest.mark.parametrize("change", [{"curve": "auxiliary"}, {"status": "not_validated"}])
def test_what_shows_that_an_attack_works_is_a_row_that_counts(silent, change):
    raw = copy.deepcopy(row_of(silent)) | {"form": "raw", "headline": False}
    raw["gain"]["mean_image"] |= {"value": -1.0, "ci95": [-2.0, 0.0]}
    better = copy.deepcopy(raw) | change
    better["gain"]["mean_image"] |= {"value": 2.0, "ci95": [1.0, 3.0]}
    assert verdict(silent | {"rows": [*silent["rows"], raw, better]})["level"] == "NOT_ASSESSED"


def test_a_client_of_one_upload_has_no_stream_to_be_answered(silent):
    entry = {"recovered": True, "rounds": 60, "validated": True}
    streams = [entry] * 10 + [entry | {"rounds": 1}]
    assert verdict(silent | {"unmixing": streams})["level"] == "NO_IMAGE_LEAKAGE_FOUND"
    assert verdict(silent | {"unmixing": [*streams, entry]})["level"] == "NOT_ASSESSED"


def test_old_uploads_of_single_classes_are_no_silence(silent):
    entries = [
        {"recovered": True, "rounds": 60, "validated": True, "oldest": 7 * (client == 3)} for client in range(10)
    ]
    scores = silent | {"unmixing": entries}
    found = verdict(scores)
    assert found["level"] == "NOT_ASSESSED"
    assert "uploads of single classes are up to 7 rounds old" in found["sentence"]
    fresh = [entry | {"oldest": 0} for entry in entries]
    assert verdict(silent | {"unmixing": fresh})["level"] == "NO_IMAGE_LEAKAGE_FOUND"
    scores["federation"] = {**silent["federation"], "rounds": 60, "clients": 10}
    (missing,) = grounds(scores | {"verdict": found})["missing"]
    assert "--form prototype (for RSR --form raw)" in missing["change"]


def test_silence_of_few_clients_is_theirs_alone(silent):
    few = copy.deepcopy(silent)
    for row in few["rows"]:
        row |= {"n_clusters": 2, "n_rows": 30, "interval_unit": "image"}
    assert "It holds for the 2 clients of this run alone." in verdict(few)["sentence"]
    assert "of this run alone" not in verdict(silent)["sentence"]


def test_numbers_that_are_none_decide_nothing(silent):
    broken = copy.deepcopy(silent)
    for row in broken["rows"]:
        for gain in row["gain"].values():
            gain["p"] = float("nan")
    assert verdict(broken)["level"] == "NOT_ASSESSED"
    assert verdict(silent | {"rows": []})["level"] == "NOT_ASSESSED"

"""What the page says of guesses, of what decided, of counts from bins, and of what was not given."""

import re
from pathlib import Path

import pytest

from fedre_audit.result import AuditResult
from reports import texts
from reports.advice import advice, option, weights_kept
from reports.figures import histogram
from reports.reading import reading
from reports.render import render, render_card
from tests.reports.make_scores import make_run, row, scores
from tests.reports.test_render import Page


def words(html):
    return " ".join(Page(html).text.split())


def text(folder, made):
    return words(render(make_run(folder, made, strips=0)))


def of(form, mechanism="", **changes):
    made = scores(**changes)
    made["federation"] |= {"form": form, "mechanism": mechanism}
    return made


def beside_the_mean_image(gain, interval):
    """A class-level verdict of 40 rounds over all images; the best floor is 12.99, the mean image 11.88."""
    made = scores()
    own = row("entangled", "ridge", 12.75, stream=40, headline=True)
    own["floor"] |= {"mean_image": 11.88, "class_mean": 12.99, "best": 12.99}
    own["gain"]["best"] = {"value": gain, "ci95": interval}
    made["rows"].insert(1, own)
    numbers = {"metric": "psnr", "unit": "dB", "floor": 11.88, "form": 12.75, "ceiling": 18.62, "target": "members"}
    made["verdict"] |= {"numbers": numbers | {"against": "mean_image"},
                        "worst": {"attack": "ridge", "stream": 40, "slice": "all", "gain": 0.87}}  # fmt: skip
    return made


@pytest.mark.parametrize(
    ("gain", "interval", "stands"),
    [(-0.24, [-0.42, -0.06], "below"), (0.04, [0.02, 0.06], "above"), (0.04, [-0.02, 0.1], "not told apart from"),
     (-0.24, None, "below")],
)  # fmt: skip
def test_where_the_mean_image_is_named_the_card_also_names_a_better_guess(tmp_path, gain, interval, stands):
    run = make_run(tmp_path, beside_the_mean_image(gain, interval), strips=0)
    for html in (render(run), render_card(run)):
        said = words(html)
        assert f"reaches 12.99: the attacker is {stands} it, {'+' if gain > 0 else '−'}{abs(gain)} dB" in said
        assert said.count("The best guess without the representation") == 1
        assert 'data-path="/rows/1/gain/best/value"' in html
    line = f"the best guess without the representation reaches 12.99; this is {stands} it"
    assert AuditResult(run).lines()[-2] == line
    assert ("[−0.42, −0.06]" in words(render_card(run))) == (interval == [-0.42, -0.06])


def test_a_best_guess_that_is_the_mean_image_is_not_named_twice(tmp_path):
    made = beside_the_mean_image(0.87, [0.7, 1.0])
    made["rows"][1]["floor"]["best"] = 11.88
    assert "The best guess without the representation reaches" not in text(tmp_path / "a", made)
    assert "The best guess without the representation reaches" not in text(tmp_path / "b", scores())


def test_the_reading_lists_what_decided_beside_the_strongest_row(tmp_path):
    made = beside_the_mean_image(-0.24, [-0.42, -0.06])
    inference = reading(made)[2]
    assert inference["rows"][0][0] == 1
    assert 1 in inference["decided"]
    assert len({i for i, _ in inference["rows"]}) == len(inference["rows"]) > 1
    said = text(tmp_path, made).split("In the words of data protection")[-1]
    assert "the attack and images that decided the verdict, 40 rounds, unmixed, all classes: 12.75 dB" in said
    made["verdict"]["level"] = "NOT_ASSESSED"
    assert reading(made)[2]["decided"] == set()
    assert 1 not in {i for i, _ in reading(made)[2]["rows"]}


@pytest.mark.parametrize(
    ("edges", "said"),
    [([-2.0, -0.5, 0.5, 2.0], "between 30 and 50 of 60 images lie"), ([-2.0, -1.0, 0.0, 2.0], "30 of 60 images lie"),
     ([0.0, 1.0, 2.0, 3.0], "60 of 60 images lie"), ([-1.0, 0.5, 1.0, 2.0], "between 50 and 60 of 60 images lie")],
)  # fmt: skip
def test_of_a_bin_that_holds_zero_a_histogram_does_not_say_on_which_side(edges, said):
    desc = re.findall("<desc>(.*?)</desc>", histogram(edges, [10, 20, 30], title="t", x_label="x"))[0]
    assert desc.startswith(said)


def uploads_alone(private=0, auxiliary=0):
    """Recorded uploads that nothing could be scored of."""
    made = of("entangled", "RAP", rows=[])
    made["dataset"] |= {"private": private, "auxiliary": auxiliary, "duplicates_dropped": 0}
    made["federation"]["accuracy"] = {at: {"weighted": None, "unweighted": None} for at in ("last", "best")}
    for name in ("exposure", "exposed_samples", "distributions", "lowering", "grounds"):
        made.pop(name, None)
    made["verdict"] = {"level": "NOT_ASSESSED", "sentence": "Not assessed.", "rule": "r", "thresholds": {},
                       "worst": None}  # fmt: skip
    for entry in made["unmixing"]:
        entry["true_error"] = None
    return made


@pytest.mark.parametrize(
    ("private", "auxiliary", "said"),
    [(0, 0, "No public images were given."), (900, 0, "No public images were given."),
     (0, 2000, "Whether a public image is a private one was not checked: no private images were given."),
     (900, 2000, "No public image is a private one: that was checked by image hash.")],
)  # fmt: skip
def test_an_overlap_is_denied_only_where_there_are_two_sets(tmp_path, private, auxiliary, said):
    shown = text(tmp_path, uploads_alone(private, auxiliary))
    assert said in shown
    assert ("checked by image hash" in shown) == bool(private and auxiliary)


def test_uploads_alone_have_no_floor_no_accuracy_and_no_true_prototypes(tmp_path):
    made = uploads_alone()
    shown = text(tmp_path, made)
    assert "only the floor is known" not in shown
    trusted = [entry["validated"] for entry in made["unmixing"]].count(True)
    assert f"{trusted} of {len(made['unmixing'])} clients' prototypes are trusted" in shown
    assert "Accuracy was not measured; traffic is that of the entangled form (RAP)." in shown
    assert "Accuracy is that of the system" not in shown
    assert "Predicted error of recovered prototypes." in shown
    assert "Recovered against true prototypes" not in shown
    made["unmixing"][0]["true_error"] = 0.2
    assert "Recovered against true prototypes." in text(tmp_path / "truth", made)


def test_an_attack_without_a_check_is_said_to_stay_not_validated(tmp_path):
    shown = text(tmp_path, uploads_alone())
    assert "The attack shadow would, but it has no check with a known answer and stays not validated." in shown


def changes(made):
    return {change for change, _ in advice(made)}


FIXED, MINIMUM = "Fixed mixing weights", "A minimum class count"
WITHHOLD = "Withhold the label encoding, or send class ids alone"


@pytest.mark.parametrize(
    ("form", "mechanism", "given"),
    [("raw", "", set()), ("prototype", "", {MINIMUM}), ("entangled", "RAP", {FIXED, MINIMUM, WITHHOLD}),
     ("entangled", "RAP uniform, resampled", {FIXED, MINIMUM, WITHHOLD}), ("entangled", "VAP", {MINIMUM}),
     ("entangled", "RAR", {FIXED, MINIMUM, WITHHOLD}), ("entangled", "VAR", set()), ("entangled", "RSP", {MINIMUM}),
     ("entangled", "RSR", set())],
)  # fmt: skip
def test_advice_fits_the_form_and_the_mechanism(tmp_path, form, mechanism, given):
    made = of(form, mechanism)
    assert changes(made) & {FIXED, MINIMUM, WITHHOLD} == given
    shown = text(tmp_path, made)
    assert (FIXED in shown) == (FIXED in given)
    assert ("out of the mixture" in shown) == (form == "entangled" and MINIMUM in given and mechanism != "RSP")
    assert {"Noise on what is sent", "Keep encoders private"} <= changes(made)


def test_weights_that_are_kept_need_no_advice_to_keep_them():
    made = of("entangled", "RAP")
    assert FIXED in changes(made)
    made["run"]["command"] = "audit --form entangled --weights fixed"
    assert changes(made) & {FIXED, WITHHOLD} == set()
    made["run"]["command"] = "audit --uploads DIR"
    assert not weights_kept(made)
    for entry in made["unmixing"]:
        entry |= {"rounds": 40, "classes": 4, "rank": 1}
    assert FIXED not in changes(made)


def test_an_option_is_read_from_the_command():
    made = scores()
    given = {"audit --participation 0.5": "0.5", "audit --participation=0.5 --seed 0": "0.5", "audit --seed 0": None,
             "audit --participation": None, "audit 'open": None}  # fmt: skip
    for command, value in given.items():
        made["run"]["command"] = command
        assert option(made, "participation") == value
    del made["run"]["command"]
    assert option(made, "participation") is None


@pytest.mark.parametrize(("share", "named"), [("0.5", True), ("1.0", False), ("half", False)])
def test_participation_below_1_stands_in_the_header(tmp_path, share, named):
    made = scores()
    made["run"]["command"] = f"audit --participation {share}"
    shown = text(tmp_path, made).split("Verdict")[0]
    assert (f"10 clients, a share of {share} of them in each round · 60 rounds" in shown) == named
    assert ("a share of" in shown) == named


def test_the_number_of_candidates_is_said_to_be_a_median(tmp_path):
    assert "about 150 candidates, the median" in text(tmp_path, scores())


def test_the_floor_is_defined_by_what_the_guess_may_use():
    root = Path(__file__).parents[2]
    truth = "the best guess from public images and the labels that are sent along, without the representation"
    assert texts.GLOSSARY["Floor"] == f"{truth}."
    assert f"| floor | {truth} |" in (root / "README.md").read_text()
    for name in ("README.md", "docs/how-to-read-the-report.md"):
        assert "ignores the upload" not in (root / name).read_text()


def test_the_readme_says_what_was_sent_and_what_was_not():
    said = " ".join((Path(__file__).parents[2] / "README.md").read_text().split())
    assert "`uploads/raw` is made for the ceiling; unless `--form raw` sends it, no server saw it." in said
    assert "`audit export RUN --out DIR`" in said


def test_lines_of_the_how_to_are_short():
    lines = (Path(__file__).parents[2] / "docs" / "how-to-read-the-report.md").read_text().splitlines()
    assert max(map(len, lines)) <= 120

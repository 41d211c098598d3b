"""The page: self-contained, repeatable, right in every number, and honest in what it does not know."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from reports.numbers import look_up
from reports.render import render, write_report
from reports.schema import SchemaError
from reports.scores import Scores
from tests.reports.make_scores import make_run, row, scores, write_strips

VOID = {"wbr", "meta", "img", "br", "link", "input", "hr"}
LEVELS = ("NOT_ASSESSED", "NO_IMAGE_LEAKAGE_FOUND", "CLASS_LEVEL", "SAMPLE_LEVEL")


class Page(HTMLParser):
    """Collects tags, ids, links, text, and what each marked number says; insists on balanced tags."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.numbers: list[tuple[str, str, str]] = []
        self.text = self.script = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(self.tags[-1])

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1][0] == "script":
            self.script += data
        elif self.open and self.open[-1][0] != "style":
            self.text += data
        if self.open and "data-path" in self.open[-1][1]:
            at = self.open[-1][1]
            self.numbers.append((str(at["data-path"]), str(at["data-value"]), data))


def page(tmp_path: Path, made: Scores | None = None, **options: Any) -> Page:
    return Page(render(make_run(tmp_path, made, **options)))


def read(text: str) -> tuple[float, float]:
    """A number as shown, and half a unit of its last digit."""
    clean = text.replace("−", "-").replace(",", "").replace("+", "")
    scale = 0.01 if clean.endswith((" %", " points")) else 1.0
    clean = clean.removesuffix(" %").removesuffix(" points")
    mantissa, _, exponent = clean.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return float(clean) * scale, 0.5001 * 10.0 ** (int(exponent or 0) - decimals) * scale


@pytest.mark.parametrize("level", LEVELS)
def test_every_number_on_the_page_equals_scores_json(tmp_path: Path, level: Any) -> None:
    shown = page(tmp_path, scores(level))
    document = json.loads((tmp_path / "scores.json").read_text())
    assert len(shown.numbers) > 150
    for path, value, text in shown.numbers:
        exact = look_up(document, path)
        assert json.loads(value) == exact
        if exact is None:
            assert text in ("not available", "not a number")
        else:
            number, half = read(text)
            assert number == pytest.approx(exact, abs=half), path


def test_every_row_is_shown(tmp_path: Path) -> None:
    paths = {path for path, *_ in page(tmp_path).numbers}
    assert all(f"/rows/{i}/value" in paths for i in range(len(scores()["rows"])))


@pytest.mark.parametrize("level", LEVELS)
def test_the_level_is_named_and_the_word_safe_never_is(tmp_path: Path, level: Any) -> None:
    shown = page(tmp_path, scores(level))
    assert level in shown.text
    assert not re.search(r"\bsafe\b", shown.text, re.IGNORECASE)
    here = [attrs for _, attrs in shown.tags if attrs.get("aria-current") == "true"]
    assert len(here) == (0 if level == "NOT_ASSESSED" else 1)
    assert ("supports no statement about leakage" in shown.text) == (level == "NOT_ASSESSED")


def test_nothing_is_requested_and_only_our_script_runs(tmp_path: Path) -> None:
    shown = page(tmp_path)
    names = {tag for tag, _ in shown.tags}
    assert not names & {"link", "iframe", "object", "embed", "form", "base"}
    ids = {attrs["id"] for _, attrs in shown.tags if "id" in attrs}
    for tag, attrs in shown.tags:
        assert not any(name.startswith("on") for name in attrs)
        if "src" in attrs:
            assert (tag, str(attrs["src"])[:22]) == ("img", "data:image/png;base64,")
        if "href" in attrs:
            assert str(attrs["href"])[0] == "#"
            assert str(attrs["href"])[1:] in ids
    policy = [attrs["content"] for _, attrs in shown.tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert str(policy[0]).startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    digest = base64.b64encode(hashlib.sha256(shown.script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in str(policy[0])
    assert [tag for tag, _ in shown.tags].count("script") == 1
    css = (Path(__file__).parents[2] / "reports" / "style.css").read_text()
    assert "url(" not in css
    assert "@import" not in css


def test_images_have_words_and_sizes_in_shape(tmp_path: Path) -> None:
    images = [attrs for tag, attrs in page(tmp_path, shape=(3, 24, 40)).tags if tag == "img"]
    assert len(images) == 18
    for image in images:
        assert image["alt"]
        assert int(str(image["width"])) * 24 == int(str(image["height"])) * 40


def test_hostile_names_are_text(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\"'><img src=//x>"
    made = scores()
    made["dataset"]["name"] = f"imagefolder:/tmp/{evil}"
    made["run"]["versions"][evil] = evil
    made["flags"][0]["class"] = evil
    made["rows"][0] |= {"attack": evil, "target": evil, "slice": evil, "reason": evil}
    made["rows"][7]["attack"] = made["rows"][8]["attack"] = evil
    made["disclosures"][0] |= {"kind": evil, "value": {evil: [evil]}}
    made["distributions"][0]["attack"] = evil
    made["verdict"] |= {"sentence": evil, "rule": evil, "worst": evil}
    make_run(tmp_path, made)
    listed = json.loads((tmp_path / "strips/strips.json").read_text())
    listed[0]["title"] = evil
    (tmp_path / "strips/strips.json").write_text(json.dumps(listed))
    shown = Page(render(tmp_path))
    assert [tag for tag, _ in shown.tags].count("script") == 1
    assert evil not in shown.script
    assert all(str(attrs["src"]).startswith("data:") for tag, attrs in shown.tags if tag == "img")
    assert shown.text.count(evil) >= 12


def test_the_same_folder_gives_the_same_bytes(tmp_path: Path) -> None:
    first = write_report(make_run(tmp_path / "a")).read_bytes()
    assert write_report(make_run(tmp_path / "b")).read_bytes() == first
    assert write_report(tmp_path / "a").read_bytes() == first
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["report.html", "scores.json", "strips"]


def test_what_was_not_measured_is_said(tmp_path: Path) -> None:
    empty: dict[str, Any] = {key: [] for key in ("rows", "unmixing", "disclosures", "bounds", "flags")}
    made = scores("NOT_ASSESSED", **empty)
    for key in ("exposure", "exposed_samples", "distributions"):
        del made[key]  # type: ignore[misc]
    del made["verdict"]["numbers"], made["run"]["command"]
    made["competence"] = {"passed": False, "checks": []}
    text = page(tmp_path, made, strips=0).text
    for words in ("No row was declared as the headline", "No attack was scored", "No reconstructed images",
                  "over rounds was not measured", "budget was not measured", "Exposure of single clients",
                  "No single image is named",
                  "Disclosures were not collected", "Unmixing was not run", "No bound was computed",
                  "No competence check was run", "audit --config config.yaml"):  # fmt: skip
        assert words in text


def test_null_values_never_look_like_numbers(tmp_path: Path) -> None:
    shown = page(tmp_path)
    said = {path: text for path, _, text in shown.numbers}
    assert said["/rows/2/value"] == "not a number"
    assert said["/unmixing/1/predicted_error"] == "not available"
    assert "150 not a number" in re.sub(r"\s+", " ", shown.text)


def test_without_numbers_the_first_headline_row_carries_the_verdict(tmp_path: Path) -> None:
    made = scores()
    del made["verdict"]["numbers"]
    paths = [path for path, *_ in page(tmp_path, made).numbers]
    verdict = paths[paths.index("/rows/0/floor/best") :][:2]
    assert verdict == ["/rows/0/floor/best", "/rows/0/value"]


def test_many_strips_stay_under_five_megabytes(tmp_path: Path) -> None:
    make_run(tmp_path, strips=0)
    write_strips(tmp_path, count=3)
    noise = (tmp_path / "strips/0-best-target.png").read_bytes() + b"\0" * 30_000
    listed = json.loads((tmp_path / "strips/strips.json").read_text())
    (tmp_path / "strips/big.png").write_bytes(noise)
    for entry in listed:
        for image in entry["images"]:
            image["png"] = "strips/big.png"
    (tmp_path / "strips/strips.json").write_text(json.dumps(listed * 20))
    written = write_report(tmp_path)
    assert 2_000_000 < written.stat().st_size < 5_000_000
    assert "further strips are in the folder" in written.read_text()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"png": "../secret.png"}, "outside the run folder"),
        ({"png": "strips/none.png"}, "missing"),
        ({"png": "scores.json"}, "not a PNG"),
        ({"role": "hero"}, "role"),
    ],
)
def test_strips_that_cannot_be_shown_are_refused(tmp_path: Path, change: dict[str, str], words: str) -> None:
    make_run(tmp_path / "run")
    (tmp_path / "secret.png").write_bytes((tmp_path / "run/strips/0-best-target.png").read_bytes())
    path = tmp_path / "run/strips/strips.json"
    listed = json.loads(path.read_text())
    listed[0]["images"][0].update(change)
    path.write_text(json.dumps(listed))
    with pytest.raises(SchemaError, match=words):
        render(tmp_path / "run")


def test_a_picture_of_nan_is_said_to_be_one(tmp_path: Path) -> None:
    images = [attrs for tag, attrs in page(tmp_path).tags if tag == "img"]
    said = [attrs for attrs in images if str(attrs["alt"]).endswith(", not a number")]
    assert len(said) == 1
    assert str(said[0]["alt"]).startswith("reconstruction, worst rank")
    assert render(tmp_path).count("✗ not a number</b>") == 1


def test_what_would_lower_the_leak_is_shown_as_measured_or_said_not_to_be(tmp_path: Path) -> None:
    assert "No change was measured" in page(tmp_path / "a").text
    lowering: Any = [
        {"change": "fixed weights", "metric": "psnr", "unit": "dB", "before": 13.64, "value": 12.31,
         "difference": -1.33, "ci95": [-1.9, -0.76], "more_leakage": "higher", "note": None},
        {"change": "fewer rounds", "metric": "psnr", "unit": "dB", "value": 13.6, "difference": -0.04,
         "ci95": [-0.1, 0.02], "more_leakage": "higher", "note": "ridge"},
    ]  # fmt: skip
    shown = page(tmp_path / "b", scores(lowering=lowering))
    assert ("/lowering/0/before", "13.64", "13.64") in shown.numbers
    assert ("/lowering/0/difference", "-1.33", "−1.33") in shown.numbers
    assert "No change was measured" not in shown.text
    assert shown.text.count("✓ leaks less") == 1
    assert shown.text.count("≈ not told from chance") == 1


def test_recovered_prototypes_stand_beside_the_true_ones(tmp_path: Path) -> None:
    made = scores()
    made["unmixing"][0]["true_error"] = 0.27
    shown = page(tmp_path, made)
    assert ("/unmixing/0/true_error", "0.27", "0.27") in shown.numbers
    assert "client 0: predicted 0.21, true 0.27; client 1: predicted not available" in shown.text


def test_the_reading_for_data_protection_is_orientation_and_never_speaks_without_an_assessment(tmp_path: Path) -> None:
    words = "support no statement, in either direction"
    assessed, not_assessed = page(tmp_path / "a").text, page(tmp_path / "b", scores("NOT_ASSESSED")).text
    for text in (assessed, not_assessed):
        assert "Orientation, not legal advice" in text
        for risk in ("Singling out", "Linkability", "Inference", "05/2014"):
            assert risk in text
    assert words in not_assessed
    assert words not in assessed


def test_a_reason_that_several_rows_share_is_said_once(tmp_path: Path) -> None:
    made = scores()
    for shown in made["rows"][:2]:
        shown["reason"] = "failed its check"
    assert page(tmp_path, made).text.count("failed its check") == 1


def test_a_curve_is_a_chart_by_size_of_class_and_says_where_it_still_rises(tmp_path: Path) -> None:
    made = scores()
    for name in ("all", "n1"):
        point = row("entangled", "ridge", 13.1, stream=30, slice=name, curve="rounds")
        end = row("entangled", "ridge", 15.1, stream=60, slice=name, reason="not saturated: rounds may leak more")
        made["rows"] += [point, end]
    text = page(tmp_path, made).text
    assert text.count("At the right end: not saturated: rounds may leak more.") == 2
    assert "every image that contributed, classes of 1 image ↑ leaks more" in " ".join(text.split())


def words(shown: Page) -> str:
    return " ".join(shown.text.split())


def test_the_card_says_what_decided_or_what_was_missing_and_how_to_change_it(tmp_path: Path) -> None:
    said = {level: page(tmp_path / level, scores(level)) for level in LEVELS}  # type: ignore[arg-type]
    missing = "unmixing is not validated for 2 of 4 clients (see Can the mixture be undone?). To change: more rounds"
    assert [missing in words(shown) for shown in said.values()] == [True, False, False, False]
    decided = "unmix_ridge Q3 on 60 rounds, unmixed, classes of 1 image"
    assert [decided in words(shown) for shown in said.values()] == [False, False, True, True]
    assert ("/grounds/decided/0/gain", "2.16", "+2.16") in said["CLASS_LEVEL"].numbers
    assert ("/grounds/decided/0/value", "0.783", "78.3 %") in said["SAMPLE_LEVEL"].numbers


def test_slices_are_said_in_words(tmp_path: Path) -> None:
    made = scores("SAMPLE_LEVEL")
    made["verdict"]["sentence"] = "Leaks: ridge on 60 rounds, slice n2-5 picks out 63 %; ridge, slice client 12."
    made["verdict"]["thresholds"] = {"declared": {"ridge on one round, slice all": 4.0}}
    text = words(page(tmp_path, made))
    assert "ridge on 60 rounds (classes of 2–5 images) picks out 63 %; ridge (client 12's images)." in text
    assert "ridge on one round (all classes): 4" in text
    assert "slice n" not in text


def test_the_card_says_whether_the_server_alone_could_do_it(tmp_path: Path) -> None:
    made = scores()
    assert "Yes. What decided holds uploads" in words(page(tmp_path / "a", made))
    for shown in made["rows"]:
        shown["level"] = "Q2"
    text = words(page(tmp_path / "b", made))
    assert "Not shown. What decided needs more than the uploads: answers of the client's encoder" in text
    assert "Undoing the mixture took the uploads alone" in text
    assert "No attack of the server alone (Q0: uploads, its own classifier, public images) made images here" in text
    made["rows"].append(row("entangled", "shadow", 12.2, level="Q0", status="not_validated"))
    shown_page = page(tmp_path / "c", made)
    assert "The server alone (Q0): shadow reaches 12.20 dB" in words(shown_page)
    assert "not validated, so a failure says nothing" in words(shown_page)
    assert (f"/rows/{len(made['rows']) - 1}/value", "12.2", "12.20") in shown_page.numbers


def test_classes_are_named_where_they_have_names(tmp_path: Path) -> None:
    made = scores()
    made["dataset"]["class_names"] = ["cat", "dog", "<b>", *"abcdefg"]
    text = words(page(tmp_path, made))
    assert "1 (dog)" in text
    assert "0 (cat), 3 (a), 7 (e), 8 (f)" in text
    assert "client 0, class 3 (a): a class of one image" in text


def test_thresholds_are_a_sentence(tmp_path: Path) -> None:
    made = scores()
    made["verdict"]["thresholds"] = {
        "alpha": 0.025, "correction": "Holm, weighted", "power": 0.8, "largest_blind_gain_db": 3.0,
        "class_level_tests": 9, "sample_level_tests": 7,
    }  # fmt: skip
    shown = page(tmp_path, made)
    assert "one-sided at 0.025, corrected for 9 class-level and 7 sample-level tests (Holm, weighted)" in words(shown)
    assert ("/verdict/thresholds/power", "0.8", "0.8") in shown.numbers


def test_the_worst_off_group_comes_before_the_mean_that_hides_it(tmp_path: Path) -> None:
    made = scores("SAMPLE_LEVEL")
    at = len(made["rows"])
    pick = {"metric": "retrieval_top1", "floor": 0.0067, "chance": 0.00667, "headline": True}
    made["rows"] += [row("entangled", "ridge", 0.95, 0.05, slice="n1", **pick), row("entangled", "ridge", 0.2, **pick)]
    shown = page(tmp_path, made)
    panel = words(shown).split("In the words of data protection")[1]
    worst = "first guess, worst-off group, classes of 1 image: 95.0 %"
    assert panel.index(worst) < panel.index("first guess, all images together: 20.0 %")
    assert (f"/rows/{at}/value", "0.95", "95.0 %") in shown.numbers
    made["rows"][at]["status"] = "not_validated"
    assert worst not in words(page(tmp_path, made))


def test_a_membership_row_counts_clients_and_not_images(tmp_path: Path) -> None:
    made = scores()
    made["rows"] = [row("entangled", "membership_x", 0.6, metric="membership_auc", n=10, n_clusters=10)]
    made["rows"] += scores()["rows"]
    shown = page(tmp_path, made)
    assert "10 clientsone value each" in shown.text
    assert [path for path, *_ in shown.numbers].count("/rows/0/n") == 0


def test_a_chart_draws_each_point_against_its_own_floor_and_its_table_names_it(tmp_path: Path) -> None:
    made = scores()
    at = len(made["rows"])
    budget = {"auxiliary": 500, "steps": None, "restarts": None}
    shared = page(tmp_path / "a", made).text
    assert "Short dashes mark the floor" not in shared
    made["rows"].append(row("entangled", "ridge", 12.4, floor=11.6, budget=budget))
    html = render(make_run(tmp_path / "b", made))
    (drawn,) = [one for one in html.split("<figure>") if "<title>Leakage over attacker budget" in one]
    drawn = drawn.split("</figure>")[0]
    assert 'class="floor dashed"' not in drawn
    assert drawn.count('class="floor s0"') == 4  # of 100, 500, 1000 and the 2500 of the whole set
    assert "Short dashes mark the floor of each point." in drawn
    table = drawn.split("The same as a table")[1]
    assert [name in table for name in ("Floor</th>", f'data-path="/rows/{at}/floor/best"')] == [True, True]


def test_the_header_names_every_seed_that_was_run(tmp_path: Path) -> None:
    made = scores()
    assert "system fedre · seed 0" in words(page(tmp_path / "a", made))
    made["run"] |= {"seed": 0, "seeds": [1, 2]}
    shown = page(tmp_path / "b", made)
    assert "system fedre · seeds 1, 2" in words(shown)
    assert ("/run/seeds/1", "2", "2") in shown.numbers


def test_the_floor_cell_names_the_floor_that_decided(tmp_path):
    made = scores()
    for against, said in (("mean_image", "the mean image, a guess without"), ("best", "best guess without")):
        made["verdict"]["numbers"]["against"] = against
        assert said in render(make_run(tmp_path, made))

"""Damaged and edited scores.json and compare.json: one sentence naming the place, never a traceback or a wrong page."""

import json
import math
import random

import pytest

from reports.comparisons import load_comparison, render_comparison
from reports.figures import Line, Point, histogram, line_chart, recovery_chart, scatter, ticks
from reports.index import collect, write_index
from reports.render import write_report
from reports.schema import SchemaError, load_scores, showing, validate
from tests.browser.pages import comparison
from tests.reports.make_scores import make_run, row, scores

BINS = {"form": "raw", "attack": "ridge", "metric": "psnr"}
SPELLED = {"alpha": 0.1, "class_level_tests": 1, "largest_blind_gain_db": 3.0, "power": 0.8, "correction": "Holm"}


def lowering(ci95):
    return {"change": "less", "metric": "psnr", "unit": "dB", "value": 1.0, "difference": -1.0, "ci95": ci95,
            "more_leakage": "higher", "note": None}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "places"),
    [
        (lambda s: s.update(lowering=[lowering([])]), ["lowering.0.ci95"]),
        (lambda s: s.update(lowering=[lowering(None), lowering([2, 1])]), ["lowering.1.ci95"]),
        (lambda s: s["grounds"]["decided"][0].update(ci95=[1.0]), ["grounds.decided.0.ci95"]),
        (lambda s: s["rows"][0]["gain"]["best"].update(ci95=[1, 2, 3]), ["rows.0.gain.best.ci95"]),
        (lambda s: s["verdict"].update(worst={}), ["verdict.worst.attack"]),
        (lambda s: s["verdict"].update(worst={"attack": "x", "gain": "much"}), ["verdict.worst.gain"]),
        (lambda s: s["verdict"]["numbers"].update(against="permuted"), ["verdict.numbers.against"]),
        (lambda s: s["verdict"].update(thresholds=SPELLED), ["verdict.thresholds.sample_level_tests"]),
        (lambda s: s["verdict"]["thresholds"].update(declared=["a"]), ["verdict.thresholds.declared"]),
        (lambda s: s.update(distributions=[BINS | {"edges": [0.0], "counts": []}]), ["distributions.0.counts"]),
        (lambda s: s.update(distributions=[BINS | {"edges": [0, 1], "counts": [-1]}]), ["distributions.0.counts"]),
        (lambda s: s.update(distributions=[BINS | {"edges": [0.0, 0.0], "counts": [1]}]), ["distributions.0.edges"]),
        (lambda s: s["rows"].append(row("raw", "x", 1.7, metric="membership_auc", ceiling=0.9)), ["rows.13.value"]),
        (lambda s: s["exposure"][0].update(metric="retrieval_mrr"), ["exposure.0.value"]),
        (lambda s: s["verdict"]["numbers"].update(metric="membership_auc"), ["verdict.numbers.form"]),
        (lambda s: s["rows"][0].update(value=10**400), ["rows.0.value"]),
        (lambda s: s["rows"][0].update(stream=10**400, n=-(10**400)), ["rows.0.stream", "rows.0.n"]),
        (lambda s: s["disclosures"][0].update(value=[0, {"a": math.inf}]), ["disclosures.0.value.1.a"]),
        (lambda s: s["volatile"].update(host=1e308), ["volatile.host"]),
        (lambda s: s["dataset"].update(name="\ud800"), ["dataset.name"]),
    ],
)  # fmt: skip
def test_what_a_page_cannot_show_is_named_by_its_place(change, places):
    made = scores()
    change(made)
    assert [problem.split()[0] for problem in validate(made)] == places


def test_keys_that_are_not_ours_are_left_alone():
    extra = {"arms": 3, "note": {"ci95": "x", "n": "all", "n_invalid": 1, "metric": ["a"], "weighted": {}}}
    assert validate(scores(**extra)) == []


def test_equal_and_huge_numbers_are_no_problem(tmp_path):
    made = scores()
    for one in made["rows"]:
        if one["metric"] == "psnr":
            one |= {"value": 1e17, "ci95": None, "floor": dict.fromkeys(one["floor"], 1e17)}  # type: ignore[typeddict-item]
    made["unmixing"][0] |= {"condition": 1e299, "predicted_error": 1e299}  # type: ignore[typeddict-item]
    made["distributions"] = [BINS | {"edges": [-1e299, 1e-320, 1e299], "counts": [0, 0]}]  # type: ignore[list-item,typeddict-item]
    assert validate(made) == []
    assert write_report(make_run(tmp_path, made)).is_file()


@pytest.mark.parametrize(
    ("change", "places"),
    [
        (lambda c: c["lowering"][0].update(ci95=[]), ["lowering.0.ci95"]),
        (lambda c: c["differences"][2].update(ci95=[1.0]), ["differences.2.ci95"]),
        (lambda c: c["differences"][2].update(ci95=[2, 1]), ["differences.2.ci95"]),
        (lambda c: c["arms"][1]["rows"][0].update(ci95=[1.0]), ["arms.1.rows.0.ci95"]),
        (lambda c: c["arms"][0].update(accuracy={k: {"weighted": 93, "unweighted": 1} for k in ("last", "best")}),
         ["arms.0.accuracy.last.weighted", "arms.0.accuracy.best.weighted"]),
        (lambda c: c["arms"][0]["verdict"].update(worst={}), ["arms.0.verdict.worst.attack"]),
        (lambda c: c["arms"][0]["rows"][0].update(value=10**400), ["arms.0.rows.0.value"]),
        (lambda c: c.pop("reference_arm"), ["reference_arm"]),
    ],
)  # fmt: skip
def test_what_the_page_of_a_comparison_cannot_show_is_named_by_its_place(tmp_path, change, places):
    made = json.loads(json.dumps(comparison()))
    change(made)
    (tmp_path / "compare.json").write_text(json.dumps(made))
    with pytest.raises(SchemaError) as caught:
        load_comparison(tmp_path / "compare.json")
    said = str(caught.value).partition("file of ours: ")[2]
    assert [problem.split()[0] for problem in said.split("; ")] == places


def test_a_difference_of_shares_may_be_negative_and_equal_huge_values_are_drawn(tmp_path):
    made = comparison()
    for one in made["differences"]:
        one |= {"metric": "retrieval_top1", "value": -0.3, "ci95": [-0.4, -0.2]}
    for arm in made["arms"]:
        arm["rows"][0] |= {"value": 1e17, "ci95": None, "floor": dict.fromkeys(arm["rows"][0]["floor"], 1e17)}
    (tmp_path / "compare.json").write_text(json.dumps(made))
    assert "1e+17" in render_comparison(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"rows": ' + "[" * 200 + "]" * 200 + "}",
        '{"schema_version": 1' + "0" * 5000 + "}",
        '{"schema_version": 1e999}',
        b"\xff\xfe",
        None,
    ],
)
@pytest.mark.parametrize(("name", "load"), [("scores.json", load_scores), ("compare.json", load_comparison)])
def test_a_file_that_cannot_be_read_is_one_sentence_and_costs_the_index_one_line(tmp_path, name, load, text):
    make_run(tmp_path / "sound", strips=0)
    path = tmp_path / "broken" / name
    path.parent.mkdir()
    if text is None:
        path.mkdir()  # a folder
    else:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SchemaError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    runs, unreadable = collect(tmp_path)
    assert [run["name"] for run in runs] == ["sound"]
    assert unreadable == [str(caught.value)]
    page, count = write_index(tmp_path)
    assert count == 1
    assert "Not readable" in page.read_text()


@pytest.mark.parametrize("shown", [True, False])
def test_a_folder_whose_name_is_not_unicode_costs_the_index_one_line(tmp_path, shown):
    make_run(tmp_path / "sound", strips=0)
    make_run(tmp_path / "bad\udcff", strips=0)
    if shown:
        (tmp_path / "bad\udcff" / "report.html").write_text("there")
    page, count = write_index(tmp_path)
    assert count == 1
    assert "bad\\udcff" in page.read_text()


def test_what_no_check_foresaw_names_the_file_and_keeps_its_cause(tmp_path):
    with pytest.raises(SchemaError, match=r"scores\.json.*KeyError: 'x'") as caught, showing(tmp_path / "scores.json"):
        raise KeyError("x")
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(AssertionError), showing(tmp_path / "scores.json"):
        raise AssertionError("a test's own")
    with pytest.raises(SchemaError, match=r"^as it was$"), showing(tmp_path / "scores.json"):
        raise SchemaError("as it was")


@pytest.mark.parametrize(
    ("low", "high"),
    [(1e17, 1e17), (1e17, math.nextafter(1e17, 2e17)), (0.0, 5e-324), (-1e300, 1e300), (-1.7e308, 1.7e308), (2.0, 1.0)],
)
def test_ticks_of_any_scale_are_few_and_finite(low, high):
    assert 1 <= len(ticks(low, high)) <= 6
    assert all(math.isfinite(tick) for tick in ticks(low, high))


def test_ticks_are_few_and_inside_at_every_magnitude():
    draw = random.Random(0)
    for _ in range(2000):
        low = draw.choice([0.0, draw.uniform(-1, 1)]) * 10 ** draw.uniform(-9, 299)
        high = low + 10 ** draw.uniform(-9, 299)
        found = ticks(low, high)
        rounding = 1e-9 * max(1, abs(low), abs(high))
        assert len(found) <= 6
        assert all(low - rounding <= tick <= high + rounding for tick in found)


@pytest.mark.parametrize("value", [0.0, 1e-320, 1e17, -1e299])
def test_charts_of_equal_values_are_drawn_at_every_magnitude(value):
    texts = [
        line_chart([Line("a", [(1, value, None, None), (2, value, value, value)], [value, value])],
                   title="", x_label="", y_label=""),
        scatter([Point("a", 1, value), Point("b", 2, value, value, value, value)], title="", x_label="", y_label=""),
        histogram([value, value + max(abs(value), 1e-9)], [0], title="", x_label=""),
        recovery_chart([("a", abs(value), abs(value))], title=""),
    ]  # fmt: skip
    assert not any(word in text for text in texts for word in ("nan%", "inf%", "nan,", "inf,"))

"""The pages of comparisons and of many runs: every number as stored, names as text, order, what cannot be read."""

import json
import random
import re

import pytest

from fedre_audit.audit.intervals import MIN_CLIENTS
from fedre_audit.stages.lowering import strongest
from knowledge_forms.entangled import MECHANISMS
from reports import comparisons, texts
from reports.comparisons import dump_comparison, headline, render_comparison, render_comparison_card
from reports.index import collect, write_index
from reports.numbers import look_up
from reports.schema import SchemaError
from tests.browser.pages import comparison
from tests.reports.make_scores import make_run, row, scores
from tests.reports.test_render import Page, read

EVIL = "<script>alert(1)</script>\"'><img src=//x>"


def write(folder, made):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "compare.json").write_text(dump_comparison(made), encoding="utf-8")
    return folder


def test_every_number_of_a_comparison_equals_compare_json(tmp_path):
    made = comparison()
    page = Page(render_comparison(write(tmp_path, made)))
    assert len(page.numbers) > 80
    for path, value, text in page.numbers:
        exact = look_up(made, path)
        assert json.loads(value) == exact
        number, half = read(text)
        assert number == pytest.approx(exact, abs=half), path
    shown = {path for path, *_ in page.numbers}
    assert all(f"/differences/{i}/value" in shown for i in range(len(made["differences"])))
    assert all(f"/arms/{i}/traffic/bytes" in shown for i in range(len(made["arms"])))


def test_hostile_names_are_text(tmp_path):
    made = comparison(("raw", EVIL))
    made["dataset"]["name"] = made["arms"][0]["path"] = EVIL
    page = Page(render_comparison(write(tmp_path, made)))
    assert page.text.count(EVIL) >= 4
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert "img" not in {tag for tag, _ in page.tags}
    assert "<script>" not in render_comparison_card(tmp_path)
    run = scores()
    run["dataset"]["name"] = run["run"]["command"] = EVIL
    make_run(tmp_path / "runs" / "<b>&'", run, strips=0)
    listed = Page(write_index(tmp_path / "runs")[0].read_text())
    assert listed.text.count(EVIL) == 2
    assert "<b>&'" in listed.text
    assert [tag for tag, _ in listed.tags].count("script") == 1


def test_a_comparison_that_says_something_else_is_refused(tmp_path):
    made = comparison()
    made["arms"][1]["traffic"]["bytes"] = "many"
    del made["clients"]
    with pytest.raises(SchemaError, match=r"clients is missing.*arms\.1\.traffic\.bytes"):
        render_comparison(write(tmp_path, made))


def test_runs_are_listed_newest_first_and_what_cannot_be_read_is_named(tmp_path):
    for name, created in (("old", "2026-01-05T10:00:00Z"), ("new", "2026-03-05T10:00:00Z"), ("undated", None)):
        made = scores()
        made["volatile"]["created"] = created
        make_run(tmp_path / name, made, strips=0)
    write(tmp_path / "both", comparison())
    make_run(tmp_path / "broken", strips=0)
    (tmp_path / "broken" / "scores.json").write_text("{")
    runs, unreadable = collect(tmp_path)
    assert [run["name"] for run in runs] == ["new", "both", "old", "undated"]
    assert len(unreadable) == 1
    assert "broken" in unreadable[0]
    path, count = write_index(tmp_path)
    assert count == 4
    page = Page(path.read_text())
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a"]
    assert links == []
    (tmp_path / "new" / "report.html").write_text("there")
    page = Page(write_index(tmp_path)[0].read_text())
    assert [attrs["href"] for tag, attrs in page.tags if tag == "a"] == ["new/report.html"]


def test_an_empty_folder_says_so_and_none_is_refused(tmp_path):
    assert "no finished audit" in write_index(tmp_path)[0].read_text()
    with pytest.raises(SchemaError, match="not a folder"):
        write_index(tmp_path / "nowhere")


def test_a_comparison_says_what_decided_each_form_and_spells_out_the_mechanisms(tmp_path):
    made = comparison()
    text = " ".join(Page(render_comparison(write(tmp_path / "a", made))).text.split())
    assert text.count("on 60 rounds, unmixed, classes of 1 image: +2.16 dB over the mean image") == len(made["arms"])
    assert set(MECHANISMS) == set(texts.MECHANISMS) - {"fixed"}
    assert all(words in text for words in texts.MECHANISMS.values())


def test_a_comparison_gives_the_true_reason_where_no_change_was_measured(tmp_path):
    made = comparison()
    made["lowering"] = []
    level = {"level": "NOT_ASSESSED", "worst": None, "sentence": "Not assessed: ridge, slice n1 is failed."}
    for arm in made["arms"][1:]:
        arm["verdict"] = {**arm["verdict"], **level}
        del arm["grounds"]
    text = " ".join(Page(render_comparison(write(tmp_path / "a", made))).text.split())
    assert "it takes two forms that were assessed, and here were 1." in text
    assert "Not assessed: ridge (classes of 1 image) is failed." in text
    made["reference_arm"] = made["arms"][1]["name"]
    text = " ".join(Page(render_comparison(write(tmp_path / "b", made))).text.split())
    assert f"{made['arms'][1]['name']}, which the others are held against, was not assessed." in text
    made = comparison() | {"reference_arm": "raw", "trained_arm": "entangled:RAP"}
    text = " ".join(Page(render_comparison(write(tmp_path / "c", made))).text.split())
    assert "Of the assessed forms raw leaks most; entangled:RAP, which the server learned from, was not" in text


def test_the_strongest_attacker_is_that_of_what_would_lower_the_leak():
    draw = random.Random(0)
    assert comparisons.MIN_CLIENTS == MIN_CLIENTS
    for _ in range(300):
        rows = [
            row(
                "entangled",
                f"attack{k}",
                draw.uniform(10, 20),
                floor=draw.uniform(10, 15),
                status=draw.choice(["ok", "not_validated", "failed"]),
                n_clusters=draw.choice([1, 3, 4, 10]),
                target=draw.choice(["members", "members", "best"]),
                slice=draw.choice(["all", "all", "n1"]),
            )
            for k in range(draw.randrange(6))
        ]
        rows += [row("entangled", "curve", 30.0, curve="rounds"), row("entangled", "nothing", None)]
        found = headline({**comparison()["arms"][0], "form": "entangled", "rows": rows})
        wanted = strongest(rows, "entangled", "psnr")
        if wanted is not None:
            assert found is not None
            assert found[1] is wanted
            assert rows[found[0]] is wanted
        elif found is not None:
            assert found[1]["status"] != "ok"
            assert "curve" not in found[1]


def test_a_strongest_attacker_that_cannot_speak_for_all_clients_says_so(tmp_path):
    made = comparison(("raw", "prototype"))
    weak = dict(made["arms"][0]["rows"][0], value=19.0, status="not_validated", n_clusters=10)
    few = dict(made["arms"][0]["rows"][0], value=18.0, n_clusters=1)
    sound = dict(made["arms"][0]["rows"][0], value=13.5)
    made["arms"][0]["rows"] = [weak, few, sound]
    text = render_comparison(write(tmp_path / "a", made))
    assert 'data-path="/arms/0/rows/2/gain/best/value"' in text
    assert "1 client only" not in text
    made["arms"][0]["rows"] = [weak, few]
    shown = Page(render_comparison(write(tmp_path / "b", made))).text
    assert shown.count("1 client only") >= 3  # in the table, and beside and in both plots
    assert "raw (1 client only)" in shown
    assert "1 client only" in render_comparison_card(tmp_path / "b")
    made["arms"][0]["rows"] = [weak]
    shown = Page(render_comparison(write(tmp_path / "c", made))).text
    assert "raw (? not validated)" in shown
    assert "not validated" in render_comparison_card(tmp_path / "c")


def test_paired_differences_are_of_the_same_images_only_where_no_form_selects_some(tmp_path):
    same, own = "over the same clients and images;", "each form on the images behind its own uploads"
    made = comparison(("raw", "entangled:RAP", "entangled:RSR"))
    for k, arm in enumerate(made["arms"]):
        arm["rows"] = [dict(arm["rows"][0], n=[1122, 1122, 10][k])]
    page = Page(render_comparison(write(tmp_path / "a", made)))
    text = " ".join(page.text.split())
    assert [words in text for words in (same, own)] == [False, True]
    assert "minus raw1,122 images" in text
    assert "entangled:RSR10 images" in text
    shown = [path for path, *_ in page.numbers]
    assert shown.count("/arms/2/rows/0/n") == 1
    made["arms"][2]["rows"][0]["n"] = 1122
    made["arms"][2]["mechanism"] = "RSR"
    assert own in Page(render_comparison(write(tmp_path / "b", made))).text
    made["arms"].pop()
    made["differences"] = [one for one in made["differences"] if one["arm"] != "entangled:RSR"]
    text = " ".join(Page(render_comparison(write(tmp_path / "c", made))).text.split())
    assert [words in text for words in (same, own)] == [True, False]


def test_the_header_of_a_comparison_names_every_seed(tmp_path):
    made = comparison()
    made["run"] |= {"seeds": [1, 2]}
    text = " ".join(Page(render_comparison(write(tmp_path, made))).text.split())
    assert re.search(r"for the attacker · seeds 1, 2\. The same clients", text)

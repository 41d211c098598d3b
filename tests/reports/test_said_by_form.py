"""What the page says of one form, mechanism or target is not said of another."""

import json
import re

import pytest

from fedre_audit.result import AuditResult
from knowledge_forms.entangled import MECHANISMS
from reports import texts
from reports.index import write_index
from reports.numbers import format_number
from reports.render import render, render_card
from reports.words import kind_words, wire_words
from tests.reports.make_scores import make_run, row, scores, write_strips
from tests.reports.test_render import Page

ROW_IS_IMAGE = "Every uploaded row is the representation of one image."
NONE_IS = "No class of one image, no client of one class."


def text(folder, made, strips=0) -> str:
    return " ".join(Page(render(make_run(folder, made, strips=strips))).text.split())


def of(form, mechanism="", **changes):
    made = scores(**changes)
    made["federation"] |= {"form": form, "mechanism": mechanism}
    return made


@pytest.mark.parametrize(
    ("form", "mechanism", "said"),
    [("raw", "", ROW_IS_IMAGE), ("entangled", "RSR", ROW_IS_IMAGE), ("entangled", "RAP", NONE_IS),
     ("prototype", "", NONE_IS)],
)  # fmt: skip
def test_a_page_without_flags_never_denies_that_rows_are_single_images(tmp_path, form, mechanism, said):
    shown = text(tmp_path, of(form, mechanism, flags=[]))
    assert [words in shown for words in (ROW_IS_IMAGE, NONE_IS)] == [said == ROW_IS_IMAGE, said == NONE_IS]
    assert "was flagged as close" not in shown


def test_without_private_images_tiny_classes_are_not_denied(tmp_path):
    made = of("prototype", flags=[])
    made["dataset"]["private"] = 0
    shown = text(tmp_path, made)
    assert NONE_IS not in shown
    assert "not known here: no private images were given" in shown


def test_what_crosses_the_wire_is_said_by_mechanism(tmp_path):
    for name in MECHANISMS:
        said = wire_words("entangled", name)
        assert texts.MECHANISMS[name] in said
        assert ("its label" in said) == (name in ("RSR", "RSP"))
        assert f"What crosses the wire: {said}" in text(tmp_path / name, of("entangled", name))
    assert "mixture of its prototypes" not in wire_words("entangled", "RSR")
    assert wire_words("raw", "") == texts.FORMS["raw"]


def test_disclosures_and_flags_are_said_by_form_and_mechanism(tmp_path):
    disclosures = [{"client": 0, "kind": kind, "value": value}
                   for kind, value in (("class_set", [6]), ("mixing_weights_rounds", 12))]  # fmt: skip
    flags = [{"client": 0, "class": 6, "kind": kind} for kind in ("one_class_client", "one_image_class")]
    shown = {
        name: text(tmp_path / f"{form}{name}", of(form, name, disclosures=disclosures, flags=flags))
        for form, name in (("entangled", "RAP"), ("entangled", "RAR"), ("entangled", "RSR"), ("entangled", "RSP"),
                           ("raw", ""))
    }  # fmt: skip
    exact = {name for name, said in shown.items() if "exact mixing weights are known" in said}
    assert exact == {"RAP", ""}  # no raw upload discloses that kind
    assert {name for name, said in shown.items() if "classes seen in its uploads" in said} == {"RSR", "RSP"}
    assert "weight of each class, not of each image" in shown["RAR"]
    assert {name for name, said in shown.items() if "its mixture is that class's prototype" in said} == {"RAP"}
    panel = shown[""].split("Who is most exposed")[-1].split("What leaks without any attack")[0]
    assert "prototype" not in panel.split("⚑ client 0", 1)[1]
    assert "Classes that a client holds are read from its uploads" in shown["RSR"]
    assert kind_words("one_image_class", "prototype", "").endswith("so its prototype is that image's representation")
    assert kind_words("one_image_class", "new form", "") == "a class of one image"


def test_whose_accuracy_and_whose_traffic_it_is(tmp_path):
    trained = "Accuracy is that of the system fedre, which trained the clients; traffic is that of the "
    assert f"{trained}raw form." in text(tmp_path / "a", of("raw"))
    assert f"{trained}entangled form (RAR)." in text(tmp_path / "b", of("entangled", "RAR"))


def test_several_seeds_say_what_is_averaged_and_whose_client_is_which(tmp_path):
    made = scores()
    assert "of seed 0" not in text(tmp_path / "a", made)
    made["run"]["seeds"] = [5, 7]
    shown = text(tmp_path / "b", made)
    assert shown.count("numbered on from seed to seed: 0 to 9 are of seed 5, 10 to 19 are of seed 7.") == 1
    assert "Both are of the first seed alone." in shown
    made["federation"]["seeds_averaged"] = 2
    assert "Both are means over 2 seeds." in text(tmp_path / "c", made)


def class_level(target="class_mean"):
    """A verdict carried by one client's class means, held to the mean image, without a ceiling."""
    made = scores()
    made["rows"].append(row("entangled", "ridge", 28.5, headline=True, slice="client 4", target=target, ceiling=None))
    numbers = {"metric": "psnr", "unit": "dB", "floor": 19.5, "form": 28.5, "ceiling": None, "target": target}
    made["verdict"] |= {"numbers": numbers | {"against": "mean_image"},
                        "worst": {"attack": "ridge", "stream": 1, "slice": "client 4", "gain": 9.0}}  # fmt: skip
    return made


ABOUT = "ridge, level Q3, one round, client 4's images, compared with mean private image of the class"


def test_the_three_numbers_say_what_they_are_of_wherever_they_stand(tmp_path):
    run = make_run(tmp_path / "run", class_level(), strips=0)
    line = AuditResult(run).lines()[-2]
    assert "floor 19.50 (the mean image) · entangled 28.50 [95 % " in line
    assert "] · ceiling n/a (raw" in line
    assert line.endswith(ABOUT)
    card = " ".join(Page(render_card(run)).text.split())
    assert "floor, the mean image" in card
    assert ABOUT in card
    listed = " ".join(Page(write_index(tmp_path)[0].read_text()).text.split())
    assert ABOUT in listed
    assert "19.50the mean image" in listed
    assert "PSNR of the row that carries each verdict" not in listed
    run = make_run(tmp_path / "run", scores("NOT_ASSESSED"), strips=0)
    assert "floor 13.11 (the best guess) ·" in AuditResult(run).lines()[-2]


def test_equal_values_are_told_apart_by_the_unit_that_decided(tmp_path):
    made = class_level()
    made["rows"].insert(0, row("entangled", "other", 28.5, headline=True))
    assert AuditResult(make_run(tmp_path, made, strips=0)).lines()[-2].endswith(ABOUT)


def test_a_number_without_a_ceiling_says_why(tmp_path):
    shown = text(tmp_path / "a", class_level())
    why = "raw representations are compared with single images, not with a mean private image of the class"
    assert f"Ceiling not available {why}" in shown
    assert why not in text(tmp_path / "b", scores())
    assert "no row on the raw representations of these images" in text(tmp_path / "c", class_level("members"))


def test_an_attack_of_the_server_alone_needs_no_more_than_the_uploads(tmp_path):
    made = scores("NOT_ASSESSED")
    for one in made["rows"]:
        one["level"] = "Q0"
    shown = text(tmp_path / "a", made)
    assert "was declared for the verdict holds the uploads, the server's own classifier and public images" in shown
    assert "needs more than the uploads" not in shown
    made["rows"][0]["level"] = "Q2"
    assert "Part of what was declared for the verdict needs more than the uploads (level Q2)." in text(
        tmp_path / "b", made
    )


def test_a_strip_calls_its_guess_by_its_name(tmp_path):
    make_run(tmp_path, scores(), strips=0)
    write_strips(tmp_path, 1)
    page = Page(render(tmp_path))
    assert page.text.count("class-mean guess") >= 4
    alts = [str(attrs["alt"]) for tag, attrs in page.tags if tag == "img"]
    assert not any(alt.startswith("floor") for alt in alts)
    assert sum(alt.startswith("class-mean guess, ") for alt in alts) == 3


def test_a_difference_of_shares_is_in_points_and_within_their_range(tmp_path):
    made = scores()
    gain = made["rows"][4]["gain"]["best"]
    assert gain is not None
    gain |= {"value": -0.831, "ci95": [-1.03, -0.632]}
    html = render(make_run(tmp_path, made, strips=0))
    cell = html.split('data-path="/rows/4/gain/best/value"')[1].split("</td>")[0]
    assert re.findall(r">([^<>]* points)<", cell) == ["−83.1 points", "−100.0 points", "−63.2 points"]
    assert json.loads(re.findall(r'data-value="([^"]*)"', cell)[1]) == -1.03
    assert format_number(0.132, "share") == "13.2 %"
    shown = " ".join(Page(html).text.split())
    assert "over images where there are fewer than 4 clients" in shown


def test_overlapping_public_images_are_said_in_a_straight_sentence(tmp_path):
    made = scores()
    assert "No public image is a private one: that was checked by image hash. 3 exact" in text(tmp_path / "a", made)
    made["dataset"]["disjoint"] = False
    shown = text(tmp_path / "b", made)
    assert "Some public images are private ones, so every number is optimistic for the attacker. 3 exact" in shown
    assert "never overlap" not in shown


@pytest.mark.parametrize("passed", [True, False])
def test_no_check_is_not_said_to_have_passed(tmp_path, passed):
    shown = text(tmp_path, scores(competence={"passed": passed, "checks": []}))
    assert "No competence check was run." in shown
    assert "All checks passed" not in shown
    assert ("Competence was not shown" in shown) == (not passed)


def test_a_ceiling_of_other_images_is_marked(tmp_path):
    made = scores()
    made["rows"][0] |= {"ceiling": 22.9, "ceiling_n": 9}
    said = text(tmp_path, made)
    assert said.count("of 9 images") == 1

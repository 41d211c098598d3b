"""What would lower the leak: measured rows only, validated rows only, differences as they are."""

import numpy as np
import pytest

from fedre_audit.audit.rows import FormAttack
from fedre_audit.audit.scoring import PairScores
from fedre_audit.stages.curves import Part
from fedre_audit.stages.lowering import gains_of, of_comparison, of_run, reference_of
from fedre_audit.stages.points import Point
from tests.reports.make_scores import row

FLOOR = 12.73 * 1.03
"""The best floor of a row that says none."""


def stream(value, rounds, **changes):
    return row("entangled", "ridge", value, stream=rounds, **changes)


def retrieved(value, part, chance=0.1, **changes):
    gain = {"best": {"value": value - chance, "ci95": None}}
    return row("prototype", "ridge", value, metric="retrieval_top1", slice=part, chance=chance, gain=gain, **changes)


def gains(row):
    """Client k gains k more than the row's mean gain: what a row says, spread over five clients."""
    mean = row["gain"]["best"]["value"]
    return {client: mean + client - 2 for client in range(5)}


def test_fewer_rounds_are_held_against_the_whole_stream():
    rows = [stream(15.0, 60), stream(13.0, 15, curve="rounds"), stream(14.0, 30, curve="rounds")]
    found = of_run(rows, "entangled", gains)
    assert [entry["change"] for entry in found] == [
        "Upload in 30 rounds instead of 60", "Upload in 15 rounds instead of 60",
    ]  # fmt: skip
    assert [entry["difference"] for entry in found] == pytest.approx([-1.0, -2.0])
    assert [entry["before"] for entry in found] == pytest.approx([15.0 - FLOOR] * 2)
    assert [entry["value"] for entry in found] == pytest.approx([14.0 - FLOOR, 13.0 - FLOOR])
    assert found[0]["ci95"] == pytest.approx([-1.0, -1.0])
    assert found[0]["note"] == "ridge on the unmixed stream; the same images; 5 clients"


@pytest.mark.parametrize("which", [0, 1])
def test_rows_that_were_not_validated_do_not_count(which):
    rows = [stream(15.0, 60), stream(13.0, 15, curve="rounds")]
    assert len(of_run(rows, "entangled", gains)) == 1
    rows[which]["status"] = "not_validated"
    assert of_run(rows, "entangled", gains) == []


def test_tiny_classes_are_held_against_large_ones_over_their_own_floor():
    rows = [
        retrieved(0.6, "n2-5"),
        retrieved(0.15, "n20+"),
        row("prototype", "ridge", 16.0, slice="n1", floor=10.0),
        row("prototype", "decoder", 15.0, slice="n1", floor=10.0),
        row("prototype", "ridge", 13.0, slice="n20+", floor=11.0),
        row("prototype", "decoder", 14.0, slice="n20+", floor=11.0),
    ]
    single, few = of_run(rows, "prototype", gains)
    assert single["change"] == "Leave out classes of 1 image"
    assert single["before"] == pytest.approx(16.0 - 10.3)  # the stronger attack, over the best floor
    assert single["value"] == pytest.approx(13.0 - 11.33)
    assert single["difference"] == pytest.approx(single["value"] - single["before"])
    assert (few["metric"], few["unit"]) == ("retrieval_top1", "above chance")
    assert (few["before"], few["value"]) == pytest.approx((0.5, 0.05))


@pytest.mark.parametrize(("value", "entries"), [(0.0, 0), (0.1, 0), (0.11, 1)])
def test_tiny_classes_that_leak_nothing_have_nothing_to_lower(value, entries):
    rows = [retrieved(value, "n2-5"), retrieved(0.102, "n20+")]
    assert len(of_run(rows, "prototype", gains)) == entries


def test_only_clients_that_have_both_sides_speak():
    rows = [row("prototype", "ridge", 16.0, slice="n1"), row("prototype", "ridge", 13.0, slice="n20+")]
    held = {"n1": {0: 5.0, 1: 6.0}, "n20+": {1: 1.0, 2: 0.0}}
    (entry,) = of_run(rows, "prototype", lambda row: held[row["slice"]])
    assert (entry["before"], entry["value"], entry["difference"], entry["ci95"]) == (6.0, 1.0, -5.0, None)
    held["n20+"] = {2: 0.0}
    assert of_run(rows, "prototype", lambda row: held[row["slice"]]) == []


def test_nothing_is_said_of_other_forms_or_without_large_classes():
    tiny, large = row("raw", "ridge", 16.0, slice="n1"), row("raw", "ridge", 13.0, slice="n20+")
    assert of_run([tiny, large], "prototype", gains) == []
    assert of_run([tiny, large | {"slice": "n6-19"}], "raw", gains) == []


def test_gains_are_found_behind_rows_of_tables_and_of_curves():
    def pairs(own, floor):
        n = len(own)
        values = {"attack": {"psnr": np.array(own)}, "grey": {"psnr": np.array(floor)}}
        counts = np.array([1, *[30] * (n - 1)])
        return PairScores(*(np.array(column) for column in ([0, *[1] * (n - 1)], range(n), range(n), [1] * n, [3] * n)),
                          counts, values)  # fmt: skip

    table = FormAttack("entangled", "ridge", "Q2", 9, "members", pairs([15.0, 14.0, np.nan, 12.0], [10.0] * 4), 60)
    shorter = Part(Point("rounds", 0.5), "psnr", "entangled", True, True, {"stream": 30},
                   pairs([12.0, 13.0], [10.0, 10.0]), np.zeros(0))  # fmt: skip
    of = gains_of([table], [shorter])
    whole = row("entangled", "ridge", 14.0, stream=60, best_floor="grey")
    assert of(whole) == {0: 5.0, 1: 3.0}  # the mean of what is finite
    assert of(whole | {"slice": "n1"}) == {0: 5.0}
    assert of(whole | {"slice": "n20+"}) == {1: 3.0}
    assert of(whole | {"stream": 30, "curve": "rounds"}) == {0: 2.0, 1: 3.0}


def arm(name, *rows):
    return {"name": name, "form": name.split(":")[0], "rows": list(rows), "verdict": {"level": "CLASS_LEVEL"}}


def test_other_arms_are_paired_by_client_with_their_own_strongest_attacker():
    mixed = [stream(13.0, 1), stream(16.0, 60), stream(18.0, 60, status="not_validated")]
    arms = [
        arm("raw", row("raw", "ridge", 19.0), row("raw", "decoder", 18.0)),
        arm("entangled:RAP", *mixed),
        arm("entangled:RAP:fixed", stream(12.0, 1)),
        arm("prototype", row("prototype", "ridge", 14.0, status="not_validated")),
    ]
    clients = {"raw": dict.fromkeys(range(5), 19.0), "entangled:RAP": {0: 15.0, 1: 16.0, 2: 16.0, 3: 17.0},
               "entangled:RAP:fixed": {0: 12.0, 1: 13.0, 2: 12.0, 3: 13.0, 4: 50.0}}  # fmt: skip
    asked = []

    def values_of(one, found):
        asked.append((one["name"], found["attack"], found["stream"]))
        return clients[one["name"]]

    fixed, raw = of_comparison(arms, "entangled:RAP", values_of)
    assert asked == [("entangled:RAP", "ridge", 60), ("raw", "ridge", 1), ("entangled:RAP:fixed", "ridge", 1)]
    assert (fixed["change"], fixed["before"], fixed["value"]) == ("Mix by RAP with fixed weights", 16.0, 12.5)
    assert fixed["difference"] == -3.5  # client 4 is of one arm only
    assert fixed["ci95"][1] < 0
    assert fixed["note"] == "ridge, one round, against ridge, 60 rounds unmixed; 4 clients"
    assert raw["difference"] == 3.0


@pytest.mark.parametrize("which", [0, 1])
def test_an_arm_that_was_not_assessed_supports_no_statement(which):
    arms = [arm("raw", row("raw", "ridge", 19.0)), arm("entangled:RAP", stream(13.0, 1))]
    assert len(of_comparison(arms, "entangled:RAP", lambda one, found: {0: 1.0})) == 1
    arms[which]["verdict"] = {"level": "NOT_ASSESSED"}
    assert of_comparison(arms, "entangled:RAP", lambda one, found: {0: 1.0}) == []


def test_a_stream_of_one_client_does_not_speak_for_all():
    lucky = stream(20.0, 60, n_clusters=1)
    arms = [arm("raw", row("raw", "ridge", 19.0)), arm("entangled:RAP", stream(13.0, 1), lucky)]
    values = {1: dict.fromkeys(range(5), 13.0), 60: {0: 20.0}}
    (entry,) = of_comparison(arms, "entangled:RAP", lambda one, found: values[found["stream"]])
    assert (entry["before"], entry["note"]) == (13.0, "ridge, one round, against ridge, one round; 5 clients")
    arms[1]["rows"] = [lucky]
    (entry,) = of_comparison(arms, "entangled:RAP", lambda one, found: values[found["stream"]])
    assert entry["before"] == 20.0


def test_the_strongest_attacker_gains_most_on_guessing_of_its_own_images():
    easy = stream(16.0, 60, floor=15.0)
    arms = [arm("raw", row("raw", "ridge", 19.0)), arm("entangled:RAP", stream(14.0, 1, floor=10.0), easy)]
    (entry,) = of_comparison(arms, "entangled:RAP", lambda one, found: {0: found["value"]})
    assert entry["before"] == 14.0


def test_a_row_without_a_floor_is_no_strongest_attacker_where_another_has_one():
    bare, known = stream(19.0, 60), stream(14.0, 1)
    bare["gain"] = {"best": None}
    arms = [arm("raw", row("raw", "ridge", 19.0)), arm("entangled:RAP", bare, known)]
    (entry,) = of_comparison(arms, "entangled:RAP", lambda one, found: {0: found["value"]})
    assert entry["before"] == 14.0
    arms[1]["rows"] = [bare]
    assert reference_of(arms, "entangled:RAP") == "entangled:RAP"
    assert reference_of(arms[1:], "raw") == "entangled:RAP"


def test_changes_are_held_against_the_leakiest_assessed_arm_where_the_wanted_one_was_not():
    def arm(name, value, level="CLASS_LEVEL"):
        rows = [row("raw", "ridge", value)]
        return {"name": name, "form": "raw", "verdict": {"level": level}, "rows": rows}

    arms = [arm("a", 14.0), arm("b", 16.0), arm("c", 19.0, "NOT_ASSESSED")]
    assert reference_of(arms, "a") == "a"
    assert reference_of(arms, "c") == "b"
    assert reference_of(arms[2:], "c") == "c"

"""What would lower the leak: measured rows only, validated rows only, differences as they are."""

import pytest

from fedre_audit.stages.lowering import of_comparison, of_run
from tests.reports.make_scores import row


def stream(value, rounds, **changes):
    return row("entangled", "ridge", value, stream=rounds, **changes)


def retrieved(value, part, chance=0.1, **changes):
    gain = {"best": {"value": value - chance, "ci95": None}}
    return row("prototype", "ridge", value, metric="retrieval_top1", slice=part, chance=chance, gain=gain, **changes)


def test_fewer_rounds_are_held_against_the_whole_stream():
    rows = [stream(15.0, 60), stream(13.0, 15, curve="rounds"), stream(14.0, 30, curve="rounds")]
    found = of_run(rows, "entangled")
    assert [entry["change"] for entry in found] == [
        "Upload in 30 rounds instead of 60", "Upload in 15 rounds instead of 60",
    ]  # fmt: skip
    assert [(entry["before"], entry["value"], entry["difference"]) for entry in found] == [
        (15.0, 14.0, -1.0), (15.0, 13.0, -2.0),
    ]  # fmt: skip
    assert all(entry["ci95"] is None for entry in found)


@pytest.mark.parametrize("which", [0, 1])
def test_rows_that_were_not_validated_do_not_count(which):
    rows = [stream(15.0, 60), stream(13.0, 15, curve="rounds")]
    assert len(of_run(rows, "entangled")) == 1
    rows[which]["status"] = "not_validated"
    assert of_run(rows, "entangled") == []


def test_tiny_classes_are_held_against_large_ones_over_their_own_floor():
    rows = [
        row("prototype", "ridge", 16.0, slice="n1", floor=10.0),
        row("prototype", "decoder", 15.0, slice="n1", floor=10.0),
        row("prototype", "ridge", 13.0, slice="n20+", floor=11.0),
        row("prototype", "decoder", 14.0, slice="n20+", floor=11.0),
        retrieved(0.6, "n2-5"),
        retrieved(0.15, "n20+"),
    ]
    single, few = of_run(rows, "prototype")
    assert single["change"].startswith("Leave out classes of 1 image")
    assert single["before"] == pytest.approx(16.0 - 10.3)  # the stronger attack, over the best floor
    assert single["value"] == pytest.approx(13.0 - 11.33)
    assert single["difference"] == pytest.approx(single["value"] - single["before"])
    assert (few["metric"], few["unit"], few["ci95"]) == ("retrieval_top1", "above chance", None)
    assert (few["before"], few["value"]) == pytest.approx((0.5, 0.05))


def test_nothing_is_said_of_other_forms_or_without_large_classes():
    assert of_run([row("raw", "ridge", 16.0, slice="n1"), row("raw", "ridge", 13.0, slice="n20+")], "prototype") == []
    assert of_run([row("raw", "ridge", 16.0, slice="n1"), row("raw", "ridge", 13.0, slice="n6-19")], "raw") == []


def arm(name, *rows):
    return {"name": name, "form": name.split(":")[0], "rows": list(rows)}


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

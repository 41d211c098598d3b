"""Curves over rounds and public images: their points, and what is said where they still rise."""

import numpy as np
import pytest

from fedre_audit.audit.scoring import ATTACK, FLOOR_NAMES, PERMUTED, PairScores
from fedre_audit.config import AuditConfig, resolve
from fedre_audit.stages.curves import Part, rows_of_parts
from fedre_audit.stages.points import Point, points
from knowledge_forms.errors import AuditError

META = {"level": "Q2", "round": 8, "steps": None, "restarts": None}


def part(client: int, point: Point, amount: int, psnr: float, *, trusted: bool = True, valid: bool = True) -> Part:
    row = np.arange(3)
    values = {who: {"psnr": np.full(3, 10.0)} for who in (*FLOOR_NAMES, PERMUTED)} | {ATTACK: {"psnr": psnr + row / 9}}
    table = PairScores(np.full(3, client), row, row, np.ones(3, dtype=int), row, np.array([1, 3, 30]), values)
    stream, images = (amount, 400) if point.axis == "rounds" else (1, amount)
    return Part(point, "psnr", "entangled", trusted, valid, {**META, "stream": stream, "auxiliary": images}, table,
                np.zeros(0))  # fmt: skip


def whole(value: float, stream: int = 8, part_: str = "all") -> dict:
    return {"form": "entangled", "attack": "ridge", "metric": "psnr", "target": "members", "slice": part_,
            "stream": stream, "value": value, "ceiling": 30.0, "reason": None, "status": "ok",
            "budget": {"auxiliary": 400}}  # fmt: skip


def curve(axis: str, quarter: float, half: float, *, valid: bool = True) -> list[Part]:
    return [
        part(client, Point(axis, share), int(share * (8 if axis == "rounds" else 400)), psnr, valid=valid)
        for share, psnr in ((0.25, quarter), (0.5, half))
        for client in range(5)
    ]


def test_a_rising_curve_says_so_and_a_flat_one_is_silent():
    rising, flat = whole(15.0), whole(14.05 + 1 / 9)
    rows_of_parts(curve("rounds", 12.0, 14.0), [rising], 400)
    rows = rows_of_parts(curve("rounds", 12.0, 14.0), [flat], 400)
    assert rising["reason"] == "not saturated: more rounds of uploads may leak more"
    assert flat["reason"] is None
    unsure = whole(15.0) | {"status": "not_validated", "reason": "unmixing validated for no client"}
    rows_of_parts(curve("rounds", 12.0, 14.0), [unsure], 400)
    assert unsure["reason"] == "unmixing validated for no client"
    assert {row["ceiling"] for row in rows if row["slice"] == "all"} == {30.0}


def test_points_are_rows_of_their_budget_and_never_headline():
    rows = rows_of_parts(curve("rounds", 12.0, 14.0) + curve("auxiliary", 13.0, 13.0), [whole(15.0)], 400)
    shown = {(row["curve"], row["stream"], row["budget"]["auxiliary"], row["slice"]) for row in rows}
    tiny = {("rounds", stream, 400, name) for stream in (2, 4) for name in ("all", "n1", "n2-5")}
    assert shown == tiny | {("auxiliary", 1, 100, "all"), ("auxiliary", 1, 200, "all")}
    assert not any(row["headline"] for row in rows)
    assert next(row["value"] for row in rows if row["stream"] == 2 and row["slice"] == "all") == pytest.approx(
        12 + 1 / 9
    )


def test_a_curve_over_images_marks_the_row_of_one_round_alone():
    one, stream = whole(15.0, stream=1), whole(15.0)
    rows_of_parts(curve("auxiliary", 12.0, 14.0), [one, stream], 400)
    assert one["reason"] == "not saturated: more public images may leak more"
    assert stream["reason"] is None


def test_points_of_streams_that_were_not_validated_say_so():
    rows = rows_of_parts(curve("rounds", 12.0, 14.0, valid=False), [], 400)
    assert {row["status"] for row in rows} == {"not_validated"}
    assert rows[0]["reason"] == "unmixing of so few rounds validated for 0 of 5 clients"


def test_every_point_is_of_the_clients_whose_whole_stream_validated():
    stranger = part(9, Point("rounds", 0.25), 2, 50.0, trusted=False)
    rows = rows_of_parts([stranger, *curve("rounds", 12.0, 14.0)], [], 400)
    assert max(row["n_clusters"] for row in rows) == 5
    assert rows_of_parts([stranger], [], 400)[0]["value"] == pytest.approx(50 + 1 / 9)


def test_what_is_followed_is_asked_for_by_preset_and_name():
    assert [p.folder for p in points(resolve(AuditConfig()), "rounds")] == ["rounds-0.25", "rounds-0.5"]
    assert points(resolve(AuditConfig()), "auxiliary") == []
    assert len(points(resolve(AuditConfig(preset="small")), "auxiliary")) == 2
    assert points(resolve(AuditConfig(attacks=["shadow"])), "rounds") == []
    with pytest.raises(AuditError, match="--curves is epochs, choose from rounds, auxiliary"):
        resolve(AuditConfig(curves=["epochs"]))

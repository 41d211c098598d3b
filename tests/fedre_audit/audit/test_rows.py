"""Rows of scores.json: the slices of one client, and their ceilings."""

import numpy as np
import pytest
from scipy import stats

from fedre_audit.audit.rows import FormAttack, fill_ceilings, summarise
from fedre_audit.audit.scoring import ATTACK, CHANCE, FLOOR_NAMES, PERMUTED, SLICES, PairScores
from fedre_audit.figures.verdict_synthetic import CLIENTS, image_table, layout
from fedre_audit.stages.score import rows_of


def test_rows_of_single_clients_have_the_ceiling_of_the_same_client_which_decides_nothing():
    rng = np.random.default_rng(0)
    pairs = layout(rng)
    clients = [f"client {client}" for client in range(CLIENTS)]
    declaration = {"form": "prototype", "attacks": ["ridge"], "stream": 1, "slices": ["all", *SLICES, *clients]}
    rows = [
        row
        for form in ("prototype", "raw")
        for attack in ("ridge", "other")
        for row in rows_of(
            FormAttack(form, attack, "Q2", 5, "members", image_table(rng, pairs, np.zeros(len(pairs)), False), 1,
                       FLOOR_NAMES), declaration, 10)
    ]  # fmt: skip
    fill_ceilings(rows, "raw")
    own = {row["slice"]: row for row in rows if (row["form"], row["attack"]) == ("prototype", "ridge")}
    raw = {row["slice"]: row for row in rows if (row["form"], row["attack"]) == ("raw", "ridge")}
    named = [part for part in clients if part in own]
    assert named
    assert [own[part]["ceiling"] for part in named] == [raw[part]["value"] for part in named]
    assert {row["form"] for row in rows if row["headline"]} == {"prototype"}
    assert not any(row["slice"] in clients for row in rows if row["attack"] == "other")


def test_a_ceiling_of_other_images_says_how_many():
    def row(form, n, target="members"):
        return {"form": form, "attack": "optimisation", "metric": "psnr", "slice": "all", "target": target, "stream": 1,
                "value": 22.9, "n": n, "ceiling": None}  # fmt: skip

    raw, same, more, other = row("raw", 9), row("entangled", 9), row("entangled", 67), row("entangled", 1, "mixture")
    fill_ceilings([raw, same, more, other], "raw")
    assert [one["ceiling"] for one in (same, more, other)] == [22.9, 22.9, None]
    assert more["ceiling_n"] == 9
    assert not any("ceiling_n" in one for one in (raw, same, other))


@pytest.mark.parametrize(("hit", "clients"), [(1.0, 6), (0.0, 6), (1.0, 3)])
def test_six_hits_of_six_are_no_certainty(hit, clients):
    at, one = np.arange(clients), np.ones(clients, dtype=np.int64)
    chance = 0.2 + 1e-3 * at
    values = {who: {"retrieval_top1": column} for who, column in
              ((ATTACK, np.full(clients, hit)), (CHANCE, chance), (PERMUTED, chance))}  # fmt: skip
    found = summarise(PairScores(at, at, at, one, one, one, values), "retrieval_top1", floors=(CHANCE,))
    exact = stats.binomtest(int(hit * clients), clients).proportion_ci(0.95, "exact")
    assert found["ci95"] == pytest.approx((exact.low, exact.high))
    best = found["gain"]["best"]
    assert best["ci95"] == pytest.approx((exact.low - chance.mean(), exact.high - chance.mean()))
    if hit:
        assert best["p"] == pytest.approx(chance.mean() ** clients, rel=1e-6)
    else:
        assert best["p"] > 0.9

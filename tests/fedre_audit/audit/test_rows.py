"""Rows of scores.json: the slices of one client, and their ceilings."""

import numpy as np

from fedre_audit.audit.rows import FormAttack, fill_ceilings
from fedre_audit.audit.scoring import FLOOR_NAMES, SLICES
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

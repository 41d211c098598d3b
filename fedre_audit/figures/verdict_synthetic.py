"""How often the verdict is wrong: synthetic score tables through the real row-making, Holm correction and rule.

Without a leak every predictor, attack and floors alike, is equally good on average, with deviations of clients, rows
and images of their own, and picks at chance: the hardest null there is. In half of the audits the permuted null is
WEAK_NULL_DB worse, so that it protects from nothing. A planted leak touches one slice alone.

The test of a single client takes its upload rows for independent: where clients differ in how easy they are by more
than SPREAD, and the permuted null protects from nothing, it finds leaks that are none.
"""

from collections import Counter
from typing import Any

import numpy as np

from fedre_audit.audit.retrieval import chance_values, rank_values
from fedre_audit.audit.rows import FormAttack
from fedre_audit.audit.scoring import ATTACK, CHANCE, FLOOR_NAMES, PERMUTED, SLICES, PairScores
from fedre_audit.audit.verdict import verdict
from fedre_audit.figures import FIGURES, Figure
from fedre_audit.stages.score import rows_of

CLIENTS = 10
POOL = 60
SPREAD = {"client": 0.4, "row": 0.6, "image": 1.0}
"""Standard deviations of gains in dB, as seen in default audits of mnist5k."""
WEAK_NULL_DB = 3.0
LEAK_DB, LEAK_HITS = 5.0, 0.9
TINY = 6
FORM = "entangled"


def layout(rng: np.random.Generator) -> PairScores:
    """Ten clients of 2 to 7 classes of 1 to 100 images; TINY of them have a class of 1 and one of 2 to 5."""
    client: list[int] = []
    row: list[int] = []
    label: list[int] = []
    count: list[int] = []
    rows = 0
    for c in range(CLIENTS):
        for held in range(int(rng.integers(2, 8))):
            n = int(np.exp(rng.uniform(0, np.log(100))))
            if c < TINY and held < 2:
                n = (1, int(rng.integers(2, 6)))[held]
            client += [c] * n
            row += [rows] * n
            label += [held] * n
            count += [n] * n
            rows += 1
    columns = [np.array(values, dtype=np.int64) for values in (client, row, label, count)]
    return PairScores(columns[0], columns[1], np.arange(len(client)), columns[3], columns[2], columns[3])


def one_per_row(table: PairScores) -> PairScores:
    """The class-mean pairs: one for each row."""
    return table.subset(np.unique(table.row, return_index=True)[1])


def noisy(rng: np.random.Generator, table: PairScores, scale: float = 1.0) -> np.ndarray:
    """Deviations [P] in dB with a part of the client, of the row and of the image."""
    by_client = SPREAD["client"] * rng.standard_normal(table.client.max() + 1)
    by_row = SPREAD["row"] * rng.standard_normal(table.row.max() + 1)
    return scale * (by_client[table.client] + by_row[table.row] + SPREAD["image"] * rng.standard_normal(len(table)))


def image_table(rng: np.random.Generator, table: PairScores, leak: np.ndarray, weak: bool) -> PairScores:
    """PSNR of every predictor: a difficulty that all share, and deviations of its own; `leak` [P] dB for the attack."""
    shared = 12.0 + 2.0 * rng.standard_normal(len(table))
    names = (ATTACK, PERMUTED, *FLOOR_NAMES)
    values = {who: {"psnr": shared + noisy(rng, table, 0.7)} for who in names}
    values[ATTACK]["psnr"] += leak
    values[PERMUTED]["psnr"] -= WEAK_NULL_DB * weak
    return table.with_values(values)


def retrieval_table(rng: np.random.Generator, table: PairScores, leak: np.ndarray) -> PairScores:
    """Ranks among POOL candidates, at random; with probability `leak` [P] the attack ranks the member first."""
    values: dict[str, dict[str, np.ndarray]] = {}
    for who in (ATTACK, PERMUTED):
        better = rng.integers(0, POOL, len(table)).astype(float)
        if who == ATTACK:
            better[rng.random(len(table)) < leak] = 0.0
        values[who] = rank_values(better, np.zeros(len(table)))
    values[CHANCE] = chance_values(np.full(len(table), float(POOL)))
    return table.with_values(values)


def synthetic_audit(rng: np.random.Generator, leaking: str | None = None) -> dict[str, Any]:
    """What the verdict needs of a scores.json. leaking: the slice that leaks on the stream, and there alone."""
    rows: list[dict[str, Any]] = []
    declaration = {
        "form": FORM, "attacks": ["ridge"], "stream": 60,
        "slices": ["all", *SLICES, *(f"client {c}" for c in range(CLIENTS))],
    }  # fmt: skip
    table = layout(rng)
    weak = bool(rng.random() < 0.5)
    low, high = SLICES[leaking] if leaking else (1, 0)
    for stream in (1, 60):
        touched = (table.count >= low) & (table.count <= high) & (stream > 1)
        members = image_table(rng, table, LEAK_DB * touched, weak)
        picks = retrieval_table(rng, table, LEAK_HITS * touched)
        whole = one_per_row(table)
        kinds = [("members", members, FLOOR_NAMES, None), ("members", picks, (CHANCE,), float(POOL))]
        kinds.append(("class_mean", image_table(rng, whole, np.zeros(len(whole)), weak), FLOOR_NAMES, None))
        for target, filled, floors, pool in kinds:
            scored = FormAttack(FORM, "ridge", "Q2", 59, target, filled, stream, floors, candidates=pool)
            rows += rows_of(scored, declaration, 2500)
    competence = {"passed": True, "checks": [{"name": "planted", "attack": "ridge", "passed": True}]}
    return {"rows": rows, "federation": {"form": FORM}, "competence": competence}


def levels(count: int, seed: int, leaking: str | None = None) -> Counter[str]:
    """Verdict levels of `count` synthetic audits."""
    rng = np.random.default_rng(seed)
    return Counter(verdict(synthetic_audit(rng, leaking))["level"] for _ in range(count))


def measure() -> dict[str, Any]:
    """Shares of wrong verdicts: leaks found without a leak, planted leaks missed."""
    without = levels(200, 0)
    planted = {part: levels(50, 1, part) for part in ("n1", "n2-5")}
    return {
        "without a leak": {"audits": 200, "levels": dict(without),
                           "false": (without["CLASS_LEVEL"] + without["SAMPLE_LEVEL"]) / 200},
        "planted": {part: {"audits": 50, "levels": dict(found),
                           "found": (found["SAMPLE_LEVEL"] + found["CLASS_LEVEL"]) / 50}
                    for part, found in planted.items()},
        "leak": {"gain_db": LEAK_DB, "picked_out": LEAK_HITS, "clients": CLIENTS},
    }  # fmt: skip


FIGURES.register("verdict_synthetic")(
    Figure(
        measure,
        (
            "fedre_audit/figures/verdict_synthetic.py",
            "fedre_audit/audit/verdict.py",
            "fedre_audit/audit/silence.py",
            "fedre_audit/audit/units.py",
            "fedre_audit/audit/power.py",
            "fedre_audit/audit/rows.py",
            "fedre_audit/audit/intervals.py",
            "fedre_audit/audit/scoring.py",
            "fedre_audit/audit/retrieval.py",
        ),
    )
)

"""scores.json: canonical text, and every problem named at once."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from reports.schema import SchemaError, dump_scores, load_scores, validate
from tests.reports.make_scores import scores


def test_a_whole_file_is_valid_and_survives_a_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    path.write_text(dump_scores(scores()), encoding="utf-8")
    assert validate(scores()) == []
    assert load_scores(path) == scores()
    assert dump_scores(load_scores(path)) == path.read_text(encoding="utf-8")


def test_every_problem_is_named_at_once_by_its_place() -> None:
    made = scores()
    made["rows"][0]["level"] = "Q9"  # type: ignore[typeddict-item]
    made["rows"][1]["ceiling"] = "high"  # type: ignore[typeddict-item]
    made["dataset"]["private"] = True
    del made["run"]["seed"]  # type: ignore[misc]
    problems = validate(made)
    assert {problem.split()[0] for problem in problems} == {
        "rows.0.level", "rows.1.ceiling", "dataset.private", "run.seed",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda s: s.update(schema_version=2), "schema_version"),
        (lambda s: s["rows"][0].update(ci95=[2.0, 1.0]), "rows.0.ci95"),
        (lambda s: s["rows"][0].update(ci95=[2.0]), "rows.0.ci95"),
        (lambda s: s["rows"][0].update(n_invalid=151), "rows.0.n_invalid"),
        (lambda s: s["rows"][0].update(value=math.inf), "rows.0.value"),
        (lambda s: s["rows"][4].update(value=13.2), "rows.4.value"),
        (lambda s: s["federation"]["accuracy"]["best"].update(weighted=93.1), "federation.accuracy.best"),
        (lambda s: s["distributions"][0]["counts"].pop(), "distributions.0"),
        (lambda s: s.update(rows=[]), "verdict.level"),
        (lambda s: s["verdict"].update(level="SAFE"), "verdict.level"),
    ],
)
def test_numbers_that_cannot_be_are_refused(change, place: str) -> None:
    made = scores()
    change(made)
    problems = validate(made)
    assert len(problems) == 1
    assert problems[0].startswith(place)


def test_not_finite_becomes_null_and_numpy_becomes_plain() -> None:
    text = dump_scores({"a": math.nan, "b": (np.float32(1.5), np.int64(3)), "c": np.float64("inf")})
    assert json.loads(text) == {"a": None, "b": [1.5, 3], "c": None}


@pytest.mark.parametrize("text", ["{", '{"rows": NaN}', "[]", "{}"])
def test_a_broken_file_is_one_sentence_naming_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "scores.json"
    path.write_text(text)
    with pytest.raises(SchemaError, match=r"scores\.json") as caught:
        load_scores(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="audit score"):
        load_scores(tmp_path / "scores.json")

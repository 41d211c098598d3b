"""scores.json: its checks, its canonical text, and reading it. The types are in `reports.scores`."""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Union, cast, get_args, get_origin, get_type_hints

from reports.scores import Estimate, Number, Scores

SCHEMA_VERSION = 1
FRACTIONS = ("retrieval_top1", "retrieval_top5", "membership_tpr_at_1pct", "evaluator_accuracy")


class SchemaError(ValueError):
    """A run folder that cannot be shown: one sentence naming the file, the place in it and what is wrong."""


def type_problems(value: Any, hint: Any, path: str) -> Iterator[str]:
    """What keeps `value` from being of the type `hint`, a sentence each, at the place named `path`."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return
    if origin in (NotRequired,):
        yield from type_problems(value, args[0], path)
    elif hasattr(hint, "__required_keys__"):
        if not isinstance(value, dict):
            yield f"{path or 'scores'} must be an object, is {value!r:.60}"
            return
        for key, kind in get_type_hints(hint).items():
            where = f"{path}.{key}" if path else key
            if key in value:
                yield from type_problems(value[key], kind, where)
            elif key in hint.__required_keys__:
                yield f"{where} is missing"
    elif origin is list:
        if not isinstance(value, list):
            yield f"{path} must be a list, is {value!r:.60}"
            return
        for index, item in enumerate(value):
            yield from type_problems(item, args[0], f"{path}.{index}")
    elif origin is dict:
        if not isinstance(value, dict):
            yield f"{path} must be an object, is {value!r:.60}"
            return
        for key, item in value.items():
            yield from type_problems(item, args[1], f"{path}.{key}")
    elif origin is Literal:
        if value not in args:
            yield f"{path} is {value!r:.60}, must be one of {', '.join(map(str, args))}"
    elif origin in (Union, UnionType):
        problems = [list(type_problems(value, kind, path)) for kind in args]
        if all(problems):
            # The message of the first choice; the others are simpler ways to be absent.
            yield from problems[0]
    else:
        yield from _scalar_problems(value, hint, path)


def _scalar_problems(value: Any, hint: Any, path: str) -> Iterator[str]:
    kinds: dict[Any, Any] = {float: (int, float), int: int, str: str, bool: bool, NoneType: NoneType}
    fits = kinds[hint]
    if not isinstance(value, fits) or (isinstance(value, bool) and hint is not bool):
        yield f"{path} must be {hint.__name__}, is {value!r:.60}"
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{path} is {value}; what is not finite is written as null"


def _interval_problems(interval: Any, path: str) -> Iterator[str]:
    if not isinstance(interval, list):
        return
    if len(interval) != 2:
        yield f"{path} must hold two ends, holds {len(interval)}"
    elif None not in interval and interval[0] > interval[1]:
        yield f"{path} runs from {interval[0]} down to {interval[1]}"


def _meaning_problems(scores: Scores) -> Iterator[str]:
    if scores["schema_version"] != SCHEMA_VERSION:
        yield f"schema_version is {scores['schema_version']}, this program reads {SCHEMA_VERSION}"
    for when in ("last", "best"):
        for kind, share in cast(dict[str, Number], scores["federation"]["accuracy"][when]).items():
            if share is not None and not 0 <= share <= 1:
                yield f"federation.accuracy.{when}.{kind} is {share}, must be a fraction in [0,1]"
    for i, row in enumerate(scores["rows"]):
        yield from _interval_problems(row["ci95"], f"rows.{i}.ci95")
        for name, gain in cast(dict[str, Estimate | None], row["gain"]).items():
            if gain is not None:
                yield from _interval_problems(gain["ci95"], f"rows.{i}.gain.{name}.ci95")
        if row["metric"] in FRACTIONS and row["value"] is not None and not 0 <= row["value"] <= 1:
            yield f"rows.{i}.value is {row['value']}, {row['metric']} must be a fraction in [0,1]"
        if not 0 <= row["n_invalid"] <= row["n"]:
            yield f"rows.{i}.n_invalid is {row['n_invalid']} of n {row['n']}"
    for i, bins in enumerate(scores.get("distributions", [])):
        if len(bins["edges"]) != len(bins["counts"]) + 1:
            yield f"distributions.{i} has {len(bins['edges'])} edges for {len(bins['counts'])} counts"
    if scores["verdict"]["level"] != "NOT_ASSESSED" and not any(row["headline"] for row in scores["rows"]):
        yield f"verdict.level is {scores['verdict']['level']} but no row is a headline row"


def validate(scores: Any) -> list[str]:
    """Every problem of a parsed scores.json at once, each `place is what`; empty: it can be shown."""
    problems = list(type_problems(scores, Scores, ""))
    return problems or list(_meaning_problems(cast(Scores, scores)))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):  # a NumPy scalar
        return _plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def dump_scores(scores: Mapping[str, Any]) -> str:
    """Canonical JSON text: keys in the order given, NaN and infinity as null, one newline at the end."""
    return json.dumps(_plain(scores), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_json(path: Path, maker: str) -> Any:
    """Strict JSON of a file; SchemaError names it, and the command that makes it where it is missing."""

    def refuse(constant: str) -> None:
        raise SchemaError(f"{path} holds {constant}, which is not JSON; write null and make the scores again")

    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    except FileNotFoundError:
        raise SchemaError(f"{path} does not exist; run `{maker}` on this folder first") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise SchemaError(f"{path} is not JSON ({error}); make the scores again") from None


def _refuse(path: Path, version: int, problems: list[str]) -> None:
    if problems:
        shown = "; ".join(problems[:20]) + (f"; and {len(problems) - 20} more" if len(problems) > 20 else "")
        raise SchemaError(f"{path} is not a version {version} file of ours: {shown}")


def read_document(path: Path, hint: Any, version: int, maker: str) -> Any:
    """A JSON file whose types are those of `hint` and whose schema_version is `version`; else SchemaError."""
    document = read_json(path, maker)
    problems = list(type_problems(document, hint, ""))
    if not problems and document["schema_version"] != version:
        problems = [f"schema_version is {document['schema_version']}, this program reads {version}"]
    _refuse(path, version, problems)
    return document


def load_scores(path: Path) -> Scores:
    """Read and check scores.json; SchemaError names the file and every problem in one sentence."""
    scores = read_json(path, "audit score")
    _refuse(path, SCHEMA_VERSION, validate(scores))
    return cast(Scores, scores)

"""scores.json: its checks, its canonical text, and reading it. The types are in `reports.scores`."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, TypedDict, Union, cast, get_args, get_origin, get_type_hints

from reports import texts
from reports.scores import Number, Scores

SCHEMA_VERSION = 1
FRACTIONS = (
    "retrieval_top1", "retrieval_top5", "retrieval_mrr", "membership_auc", "membership_tpr_at_1pct",
    "evaluator_accuracy",
)  # fmt: skip
LARGEST = 1e300
"""No number is larger: charts subtract and scale, which must not overflow."""
DEEPEST = 50
"""Lists and objects within one another; ours have fewer than ten."""


class Worst(TypedDict):
    """verdict.worst where it is an object."""

    attack: str
    stream: NotRequired[int]
    slice: NotRequired[str]
    gain: NotRequired[Number]


class Thresholds(TypedDict):
    """verdict.thresholds where it holds `SPELLED`, which the page then says in a sentence."""

    alpha: float
    correction: str
    power: float
    largest_blind_gain_db: float
    class_level_tests: int
    sample_level_tests: int
    detectable_gain_db: NotRequired[Number]


SPELLED = {"alpha", "class_level_tests", "largest_blind_gain_db"}


class SchemaError(ValueError):
    """A run folder that cannot be shown: one sentence naming the file, the place in it and what is wrong."""


def type_problems(value: Any, hint: Any, path: str) -> Iterator[str]:
    """What keeps `value` from being of the type `hint`, a sentence each, at the place named `path`."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        yield from _open_problems(value, path)
    elif origin in (NotRequired,):
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


def _open_problems(value: Any, path: str) -> Iterator[str]:
    """What of a value of any type no page can show."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _open_problems(item, f"{path}.{key}")
    elif isinstance(value, str | int | float):
        yield from _scalar_problems(value, type(value), path)


def _scalar_problems(value: Any, hint: Any, path: str) -> Iterator[str]:
    kinds: dict[Any, Any] = {float: (int, float), int: int, str: str, bool: bool, NoneType: NoneType}
    fits = kinds[hint]
    if not isinstance(value, fits) or (isinstance(value, bool) and hint is not bool):
        yield f"{path} must be {hint.__name__}, is {value!r:.60}"
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{path} is {value}; what is not finite is written as null"
    elif isinstance(value, int | float) and abs(value) > LARGEST:
        yield f"{path} is {str(value)[:12]}..., a number too large to show"
    elif isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
        yield f"{path} is {value!r:.60}, which is not Unicode text"


def _interval_problems(interval: Any, path: str) -> Iterator[str]:
    if not isinstance(interval, list):
        return
    if len(interval) != 2:
        yield f"{path} must hold two ends, holds {len(interval)}"
    elif all(_is_number(end) for end in interval) and interval[0] > interval[1]:
        yield f"{path} runs from {interval[0]} down to {interval[1]}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _objects(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of a document, with its place."""
    if isinstance(value, dict):
        yield path, value
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, dict | list):
            yield from _objects(item, f"{path}.{key}" if path else str(key))


def _entry_problems(entry: dict[str, Any], path: str) -> Iterator[str]:
    """Numbers that cannot be, by the names of an object's keys: the same ones stand in many places."""
    yield from _interval_problems(entry.get("ci95"), f"{path}.ci95")
    # Changes of a share, which have a sign, stand beside what was changed.
    share = entry.get("metric") in FRACTIONS and not {"difference", "reference"} & set(entry)
    for key in ("weighted", "unweighted", *(("value", "form", "chance") if share else ())):
        number = entry.get(key)
        if _is_number(number) and not 0 <= number <= 1:  # type: ignore[operator]
            what = f"{entry['metric']} " if share else ""
            yield f"{path}.{key} is {number}, {what}must be a fraction in [0,1]"
    invalid, n = entry.get("n_invalid"), entry.get("n")
    if isinstance(invalid, int) and isinstance(n, int) and not 0 <= invalid <= n:
        yield f"{path}.n_invalid is {invalid} of n {n}"


def _verdict_problems(verdict: Any, path: str) -> Iterator[str]:
    """What keeps the parts of a verdict that have no type of their own from being said in words."""
    if isinstance(verdict["worst"], dict):
        yield from type_problems(verdict["worst"], Worst, f"{path}.worst")
    thresholds = verdict["thresholds"]
    if set(thresholds) >= SPELLED:
        yield from type_problems(thresholds, Thresholds, f"{path}.thresholds")
    yield from type_problems(thresholds.get("declared", {}), dict[str, Number], f"{path}.thresholds.declared")
    against = verdict.get("numbers", {}).get("against", "best")
    if against not in texts.AGAINST:
        yield f"{path}.numbers.against is {against!r:.60}, must be one of {', '.join(texts.AGAINST)}"


def _shared_problems(document: Any, verdicts: Mapping[str, Any]) -> Iterator[str]:
    """What scores.json and compare.json are both checked for once their types are right; verdicts: by place."""
    for path, entry in _objects(document):
        yield from _entry_problems(entry, path)
    for path, verdict in verdicts.items():
        yield from _verdict_problems(verdict, path)


def _comparison_problems(made: Any) -> Iterator[str]:
    yield from _shared_problems(made, {f"arms.{i}.verdict": arm["verdict"] for i, arm in enumerate(made["arms"])})
    if made.get("lowering") and "reference_arm" not in made:
        yield "reference_arm is missing, of which lowering holds the changes"


def _meaning_problems(scores: Scores) -> Iterator[str]:
    if scores["schema_version"] != SCHEMA_VERSION:
        yield f"schema_version is {scores['schema_version']}, this program reads {SCHEMA_VERSION}"
    yield from _shared_problems(scores, {"verdict": scores["verdict"]})
    for i, bins in enumerate(scores.get("distributions", [])):
        if len(bins["edges"]) != len(bins["counts"]) + 1:
            yield f"distributions.{i} has {len(bins['edges'])} edges for {len(bins['counts'])} counts"
        elif not bins["counts"] or min(bins["counts"]) < 0:
            yield f"distributions.{i}.counts must hold counts, holds {bins['counts']!r:.60}"
        elif any(left >= right for left, right in pairwise(bins["edges"])):
            yield f"distributions.{i}.edges must rise, are {bins['edges']!r:.60}"
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
        document = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
        if _is_deep(document):
            raise RecursionError
        return document
    except FileNotFoundError:
        raise SchemaError(f"{path} does not exist; run `{maker}` on this folder first") from None
    except OSError as error:
        raise SchemaError(f"{path} cannot be read ({error.strerror}); it must be a file that you may read") from None
    except SchemaError:
        raise
    except RecursionError:
        raise SchemaError(f"{path} is nested too deeply to be a file of ours; make the scores again") from None
    except ValueError as error:  # no JSON, no UTF-8, or an integer of thousands of digits
        raise SchemaError(f"{path} is not JSON ({error}); make the scores again") from None


def _is_deep(document: Any) -> bool:
    layer = [document]
    for _ in range(DEEPEST):
        layer = [part for one in layer if isinstance(one, dict | list)
                 for part in (one.values() if isinstance(one, dict) else one)]  # fmt: skip
    return bool(layer)


@contextmanager
def showing(path: Path) -> Iterator[None]:
    """Last resort: what no check foresaw when a file is shown is a SchemaError naming it, its cause chained."""
    from jinja2 import TemplateError  # here, for the command line's help is to start at once

    try:
        yield
    except SchemaError:
        raise
    except (
        ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, TemplateError,
    ) as error:  # fmt: skip
        why = f"{type(error).__name__}: {error}"
        raise SchemaError(f"{path}, or a file beside it, cannot be shown ({why}); make the scores again") from error


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
    if not problems and "arms" in hint.__required_keys__:
        problems = list(_comparison_problems(document))
    _refuse(path, version, problems)
    return document


def load_scores(path: Path) -> Scores:
    """Read and check scores.json; SchemaError names the file and every problem in one sentence."""
    scores = read_json(path, "audit score")
    _refuse(path, SCHEMA_VERSION, validate(scores))
    return cast(Scores, scores)

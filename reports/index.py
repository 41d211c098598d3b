"""One page over many runs, newest first: a pure function of the scores.json and compare.json files below a folder."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

from reports import texts
from reports.comparisons import load_comparison
from reports.numbers import KINDS, format_number
from reports.pages import environment, write_page
from reports.schema import SchemaError, load_scores, showing
from reports.words import ceiling_words, guess_words, measured_words


def _entry(folder: Path, root: Path, page: str) -> dict[str, Any]:
    name = folder.relative_to(root).as_posix()
    href = quote(f"{name}/{page}")
    return {"name": "this folder" if name == "." else name, "href": href if (folder / page).is_file() else None}


def _audit(folder: Path, root: Path) -> dict[str, Any]:
    scores = load_scores(folder / "scores.json")
    numbers: Any = scores["verdict"].get("numbers") or {}
    return _entry(folder, root, "report.html") | {
        "created": scores["volatile"].get("created"),
        "dataset": scores["dataset"]["name"],
        "form": f"{scores['federation']['form']} {scores['federation']['mechanism']}".strip(),
        "system": scores["federation"]["system"],
        "level": scores["verdict"]["level"],
        "verdict": texts.VERDICTS[scores["verdict"]["level"]][0],
        "kind": KINDS.get(numbers.get("metric", ""), "plain"),
        "about": measured_words(scores) if numbers else "",
        "guess": guess_words(scores) if numbers else "",
        "no_ceiling": ceiling_words(scores) if numbers else "",
        "floor": numbers.get("floor"),
        "value": numbers.get("form"),
        "ceiling": numbers.get("ceiling"),
        "accuracy": scores["federation"]["accuracy"]["last"]["weighted"],
        "command": scores["run"].get("command"),
    }


def _comparison(folder: Path, root: Path) -> dict[str, Any]:
    made = load_comparison(folder / "compare.json")
    return _entry(folder, root, "compare.html") | {
        "created": made["volatile"].get("created"),
        "dataset": made["dataset"]["name"],
        "form": f"{len(made['arms'])} forms compared",
        "system": ", ".join(sorted({arm["system"] for arm in made["arms"]})),
        "level": "",
        "verdict": "comparison",
        "kind": "plain",
        "about": "",
        "guess": "",
        "no_ceiling": "",
        "floor": None,
        "value": None,
        "ceiling": None,
        "accuracy": None,
        "command": made["run"].get("command"),
    }


def collect(root: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Finished runs below `root`, newest first, and one sentence for each that cannot be read."""
    runs, unreadable = [], []
    for name, read in (("scores.json", _audit), ("compare.json", _comparison)):
        for path in sorted(root.rglob(name)):
            try:
                with showing(path):
                    runs.append(read(path.parent, root))
            except SchemaError as error:
                # Names of folders need not be Unicode; the page is.
                unreadable.append(str(error).encode("utf-8", "backslashreplace").decode())
    runs.sort(key=lambda run: run["name"])
    runs.sort(key=lambda run: run["created"] or "", reverse=True)
    return runs, unreadable


def write_index(root: Path) -> tuple[Path, int]:
    """Write `index.html` into `root`; returns its path and how many runs it lists. Raises SchemaError."""
    if not root.is_dir():
        raise SchemaError(f"{root} is not a folder; give the folder that holds your runs, for instance runs")
    runs, unreadable = collect(root)
    page = environment().get_template("index.html.j2").render(runs=runs, unreadable=unreadable, fmt=format_number)
    return write_page(root / "index.html", page), len(runs)

"""`python -m fedre_audit.figures.unmixing_table`: writes the measured part of docs/unmixing.md from results/ alone."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BEGIN = "<!-- Written by `python -m fedre_audit.figures.unmixing_table` from results/; no number here was typed. -->"
END = "<!-- End of what was written. -->"
METHODS = ("least_squares", "adaptive_norm_smoothed", "learned_drift")
STATUS = {"validated": "yes", "inconclusive": "open", "not_validated": "no", "refused": "refused"}


def error(value: float) -> str:
    """Two significant decimals below 1, without a leading zero.

    >>> [error(value) for value in (0.009, 0.413, 1.541)]
    ['.009', '.41', '1.54']
    """
    text = f"{value:.3f}" if value < 0.1 else f"{value:.2f}"
    return text.removeprefix("0")


def streams_table(streams: dict[str, list[dict[str, Any]]]) -> list[str]:
    """One line a recorded client: errors last / late of each method, the default's own prediction, gap and claim."""
    lines = [
        "| stream | h | T | least squares | default filter | learned drift | predicted | gap | validated |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for name, rows in streams.items():
        for row in rows:
            default = row[METHODS[1]]
            cells = [f"{error(row[method]['last'])} / {error(row[method]['smoothed'])}" for method in METHODS]
            predicted = f"{error(default['predicted_last'])} / {error(default['predicted_smoothed'])}"
            claim = STATUS[default["status"]]
            head = [name, str(row["classes"]), str(row["rounds"])]
            lines.append("| " + " | ".join([*head, *cells, predicted, error(default["null_gap"]), claim]) + " |")
    return lines


def claims(summary: dict[str, Any]) -> list[str]:
    """What holds over the streams with broadcast, method by method."""
    lines = []
    for method, name in zip(METHODS[1:], ("Default filter", "Learned drift"), strict=True):
        found, of = summary[method], summary["streams"]
        worst = found["worst last error among validated"]
        lines.append(
            f"- {name}, the {of} streams with broadcast: late error at most .6 on {found['smoothed <= .6']}, below "
            f"least squares on {found['below least squares']}; predicted within a factor of 2.5 of the truth on "
            f"{found['predicted within 2.5, last']} (last) and {found['predicted within 2.5, smoothed']} (late); "
            f"{found['validated']} validated"
            + (f", the worst of them at {error(worst)} in the last round." if worst is not None else ".")
        )
    return lines


def end_to_end(values: dict[str, Any]) -> list[str]:
    """Gain of decoded one-image classes over the class mean."""
    lines = [
        "| one-image classes, gain over the class mean, dB | images | raw | single vector | default filter "
        "| learned drift |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, found in values.items():
        gain = found["gain over the class mean"]
        cells = [f"{gain[key]:+.2f}" for key in ("raw", "single vector", *METHODS[1:])]
        lines.append("| " + " | ".join([name, str(found["images"]), *cells]) + " |")
    return lines


def measured(results: Path) -> str:
    """The measured part, as Markdown between its two marks."""
    read = {
        name: json.loads((results / f"unmixing_{name}.json").read_text(encoding="utf-8"))["values"]
        for name in ("streams", "end_to_end")
    }
    streams = read["streams"]
    parts = (streams_table(streams["streams"]), claims(streams["summary"]), end_to_end(read["end_to_end"]))
    return "\n".join([BEGIN, *("\n" + "\n".join(lines) for lines in parts), "", END])


def filled(text: str, results: Path) -> str:
    """The document with its measured part replaced; ValueError where its marks are missing."""
    before, began, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (began and ended):
        raise ValueError(f"the document holds no part between '{BEGIN}' and '{END}'")
    return before + measured(results) + after


def write(root: Path = ROOT) -> None:
    """Write the measured part of docs/unmixing.md."""
    path = root / "docs" / "unmixing.md"
    path.write_text(filled(path.read_text(encoding="utf-8"), root / "results"), encoding="utf-8")


if __name__ == "__main__":
    write()

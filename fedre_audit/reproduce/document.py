"""`python -m fedre_audit.reproduce.document`: writes docs/reproduction.md and its pictures from results/ alone."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ORDER = ("privacy", "communication", "mechanisms", "toy", "overhead", "accuracy")
HEAD = """\
# The published tables, and what they show

Written by `python -m fedre_audit.reproduce.document` from `results/reproduce_*.json`; no number here was typed.
Each section is one command, `audit reproduce NAME`, at preset `small`. Published figures are those of FedRE
(CVPR 2026, arXiv 2511.22265). Where the setting is not the published one, the table says so.
"""


def number(value: float | None) -> str:
    """Two decimals, a dash for none."""
    return "–" if value is None else f"{value:.2f}"


def interval(value: list[float] | None) -> str:
    """95 % interval, a dash for none."""
    return "–" if value is None else f"{value[0]:.2f} to {value[1]:.2f}"


def table(rows: list[dict[str, Any]]) -> list[str]:
    """A Markdown table of the rows, with their notes."""
    lines = [
        "| what | setting | unit | published | ours | 95 % interval | floor | note |",
        "|---|---|---|---:|---:|---:|---:|---|",
    ]
    lines += [
        f"| {row['what']} | {row['setting']} | {row['unit']} | {number(row['published'])} | {number(row['ours'])} "
        f"| {interval(row['ci95'])} | {number(row['floor'])} | {row['note']} |"
        for row in rows
    ]
    return lines


def picture_name(name: str, index: int) -> str:
    """File of a section's picture, beside the document."""
    return f"reproduction-{name}-{index}.svg"


def section(name: str, made: dict[str, Any]) -> list[str]:
    """One reproduction: reading, protocol, table, pictures, how to make it."""
    lines = [f"## {made['title']}", "", made["reading"], "", f"Protocol. {' '.join(made['protocol'].split())}", ""]
    lines += [f"`audit reproduce {name} --preset {made['preset']} --seed {made['seed']}`", "", *table(made["rows"]), ""]
    for index, title in enumerate(made["pictures"]):
        lines += [f"![{title}]({picture_name(name, index)})", ""]
    lines += [f"- {key}: {value}" for key, value in made["provenance"].items()]
    return [*lines, ""] if made["provenance"] else lines


def sweep_section(stored: dict[str, Any]) -> list[str]:
    """How wide the region is that gives the published figures, and what each architecture does there."""
    settings = sorted(stored["settings"], key=lambda entry: entry["distance"])
    inside = [entry for entry in settings if entry["distance"] <= 1]
    ordered = [e for e in settings if e["psnr"]["raw"] > e["psnr"]["prototype"] > e["psnr"]["entangled"]]
    above = [e for e in settings if all(e["floor"] > e["psnr"][form] for form in ("prototype", "entangled"))]
    lines = [
        "### The sweep behind the stored setting", "",
        f"{len(settings)} settings on seed {stored['tuning_seed']}. All six figures within 0.5 dB and 10 %: "
        f"{len(inside)}. Order raw > prototype > entangled: {len(ordered)}. Mean image above both the prototype and "
        f"the entangled figure: {len(above)}. A distance of 1 is 0.5 dB or 10 % of the MSE, the worst of six figures.",
        "",
        "| steps | step size | prior | start | raw dB / MSE | prototype | entangled | mean image | distance |",
        "|---:|---:|---:|---|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    lines += [
        f"| {e['steps']} | {e['lr']} | {e['tv']} | {e['start']} | "
        + " | ".join(f"{e['psnr'][f]:.2f} / {e['mse'][f]:.0f}" for f in ("raw", "prototype", "entangled"))
        + f" | {e['floor']:.2f} | {e['distance']:.2f} |"
        for e in settings[:12]
    ]
    lines += ["", "By architecture at the nearest setting (PSNR, dB):", "",
              "| model | raw | prototype | entangled |", "|---|---:|---:|---:|"]  # fmt: skip
    lines += [
        f"| {name} | {by['raw']:.2f} | {by['prototype']:.2f} | {by['entangled']:.2f} |"
        for name, by in settings[0]["psnr_by_model"].items()
    ]
    return [*lines, ""]


def document(results: Path) -> tuple[str, dict[str, str]]:
    """The Markdown text and the pictures (file name -> SVG text) made from stored results."""
    lines: list[str] = [HEAD]
    pictures: dict[str, str] = {}
    for name in ORDER:
        made = json.loads((results / f"reproduce_{name}.json").read_text(encoding="utf-8"))["values"]
        lines += section(name, made)
        if name == "privacy":
            lines += sweep_section(json.loads((results / "privacy_sweep.json").read_text(encoding="utf-8"))["values"])
        pictures |= {picture_name(name, i): svg for i, svg in enumerate(made["pictures"].values())}
    return "\n".join(lines).rstrip() + "\n", pictures


def write(root: Path = ROOT) -> None:
    """Write docs/reproduction.md and the pictures beside it."""
    text, pictures = document(root / "results")
    for name, content in {"reproduction.md": text, **pictures}.items():
        (root / "docs" / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    write()

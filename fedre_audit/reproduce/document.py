"""`python -m fedre_audit.reproduce.document`: writes docs/reproduction.md and its pictures from results/ alone."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedre_audit.reproduce.pixel_attack import FORMS_IN_ORDER, PUBLISHED
from fedre_audit.reproduce.sweep import PLAIN, REFERENCE, ROUNDS, plain_grid

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


def entry_line(entry: dict[str, Any], head: list[str]) -> str:
    """One setting of the sweep as a row of a table; head: the cells that name it."""
    figures = [f"{entry['psnr'][form]:.2f} / {entry['mse'][form]:.0f}" for form in FORMS_IN_ORDER]
    return "| " + " | ".join([*head, *figures, f"{entry['floor']:.2f}", f"{entry['distance']:.2f}"]) + " |"


def in_order(psnr: dict[str, float]) -> bool:
    """Whether raw > prototype > entangled."""
    return psnr["raw"] > psnr["prototype"] > psnr["entangled"]


def sweep_section(stored: dict[str, Any]) -> list[str]:
    """How wide the region is that gives the published figures, what one change does, what each architecture does."""
    tried = stored["settings"]
    grid = plain_grid(tried)
    inside = [entry for entry in grid if entry["distance"] <= 1]
    psnr_only = [e for e in grid if all(abs(e["psnr"][f] - PUBLISHED[f][0]) <= 0.5 for f in FORMS_IN_ORDER)]
    above = [e for e in grid if all(e["floor"] > e["psnr"][form] for form in ("prototype", "entangled"))]
    figures = "raw dB / MSE | prototype | entangled | mean image | distance |"
    lines = [
        "### The sweep behind the stored setting", "",
        f"{len(grid)} settings on clients that share one plain CNN, seed {stored['tuning_seed']}. All three PSNRs "
        f"within 0.5 dB: {len(psnr_only)}; all six figures, MSE within 10 % too: {len(inside)}. Order raw > "
        f"prototype > entangled: {sum(in_order(e['psnr']) for e in grid)}. Mean image above both the "
        f"prototype and the entangled figure: {len(above)}. A distance of 1 is 0.5 dB or 10 % of the MSE, "
        "the worst of six figures.",
        "",
        f"| steps | step size | prior | start | {figures}", "|---:|---:|---:|---|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    lines += [entry_line(e, [str(e[key]) for key in ("steps", "lr", "tv", "start")]) for e in grid]
    lines += [
        "", "One thing changed, the rest as in the reference (200 steps of 0.1, prior 0.15, noise start, last round of "
        f"{ROUNDS}, scored against all members):", "", f"| change | {figures}", "|---|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    lines += [entry_line(entry, [name]) for name, entry in changes(tried)]
    lines += ["", "By architecture (PSNR, dB), trained together in one federation:", "",
              "| model | setting | raw | prototype | entangled | in order |",
              "|---|---|---:|---:|---:|---|"]  # fmt: skip
    lines += [
        f"| {name} | {entry['steps']} × {entry['lr']}, prior {entry['tv']}, {entry['rounds']} rounds | "
        f"{by['raw']:.2f} | {by['prototype']:.2f} | {by['entangled']:.2f} | {'yes' if in_order(by) else 'no'} |"
        for entry in tried
        if len(entry["psnr_by_model"]) > 1
        for name, by in entry["psnr_by_model"].items()
    ]
    return [*lines, ""]


def changes(tried: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Entries that differ from the reference in one thing, with its name; the reference first."""
    reference = {"family": PLAIN, "rounds": ROUNDS, **asdict(REFERENCE)}
    found = []
    for entry in tried:
        differing = [key for key, value in reference.items() if entry[key] != value]
        if len(differing) <= 1:
            key = differing[0] if differing else ""
            found.append((f"{key} {entry[key]}" if key else "none", entry))
    return sorted(found, key=lambda pair: (pair[0] != "none", pair[0]))


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

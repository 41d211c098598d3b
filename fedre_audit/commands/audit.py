"""`audit [options]`: the whole audit."""

from collections.abc import Sequence
from pathlib import Path

SWITCHES = {"on": "true", "off": "false"}


def normalise(arguments: Sequence[str]) -> list[str]:
    """Accept --two-words, on|off and comma lists, in the spelling that the typed parser reads."""
    words: list[str] = []
    for word in arguments:
        name, equals, value = word.partition("=")
        if name.startswith("--"):
            words.append("--" + name[2:].replace("-", "_") + equals + SWITCHES.get(value, value))
        else:
            words.append(SWITCHES.get(word, word))
    for i, word in enumerate(words):
        if word == "--attacks" and i + 1 < len(words) and not words[i + 1].startswith("["):
            words[i + 1] = f"[{words[i + 1]}]"
        elif word.startswith("--attacks=") and not word.startswith("--attacks=["):
            words[i] = f"--attacks=[{word.partition('=')[2]}]"
    return words


def run(command: str, arguments: Sequence[str]) -> int:
    """Parse, audit, print the result."""
    from jsonargparse import ArgumentParser

    from fedre_audit.config import AuditConfig

    parser = ArgumentParser(prog="audit", exit_on_error=False, description="Audit a knowledge form.")
    parser.add_argument("--config", action="config", help="YAML file of options")
    parser.add_argument("--out", type=str | None, default=None, help="run folder (default runs/<name>)")
    parser.add_argument("--quiet", action="store_true", help="print the result only")
    parser.add_class_arguments(AuditConfig)
    values = parser.parse_args(normalise(arguments)).as_dict()
    values.pop("config", None)
    out, quiet = values.pop("out"), values.pop("quiet")
    config = AuditConfig(**values)

    from fedre_audit.pipeline import audit

    run = audit(config, Path(out) if out else None, quiet=quiet)
    print_result(run.path)
    return 0


def print_result(path: Path) -> None:
    """Verdict, the three numbers that carry it, and where the report is."""
    from reports.schema import load_scores

    scores = load_scores(path / "scores.json")
    dropped = scores["dataset"]["duplicates_dropped"]
    numbers = scores["verdict"]["numbers"]
    shown = {key: "n/a" if numbers[key] is None else f"{numbers[key]:.2f}" for key in ("floor", "form", "ceiling")}
    if dropped:
        print(f"exact duplicates dropped from auxiliary and evaluation images: {dropped}")
    print(f"verdict: {scores['verdict']['level']}. {scores['verdict']['sentence']}")
    print(
        f"{numbers['metric']} {numbers['unit']}: floor {shown['floor']} · {scores['federation']['form']} "
        f"{shown['form']} · ceiling {shown['ceiling']}"
    )
    print(f"report: {path / 'report.html'}")

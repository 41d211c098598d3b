"""The command line. The first word picks the command; without one it is the audit itself. Help needs no torch."""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from fedre_audit import __version__
from knowledge_forms.errors import AuditError

HELP = """\
fedre-audit: what does a client leak when it uploads representations, prototypes or entangled representations?

usage: audit [options]             train, attack, score, report: the whole audit
       audit COMMAND ...

commands
  (none)              audit --form entangled
  train RUN           train and record again              audit train runs/my-run
  attack RUN          attack the recorded uploads again   audit attack runs/my-run
  score RUN           score the reconstructions again     audit score runs/my-run
  report RUN          write report.html again             audit report runs/my-run
  list WHAT           forms, attacks, systems, families, models, datasets, metrics
                                                          audit list attacks

options of the audit (all of them: audit --form entangled --help)
  --form FORM         raw, prototype or entangled (default)
  --dataset NAME      mnist5k (default, embedded), cifar10, tinyimagenet or imagefolder:PATH
  --data-root DIR     where data sets are found (default $FEDRE_AUDIT_DATA, else ~/.cache/fedre-audit)
  --preset NAME       quick (default, about a minute) or small (minutes)
  --out DIR           the run folder; the same configuration resumes it
  --config FILE       a YAML file of options; options on the command line win
  --clients, --rounds, --seed, --device, --broadcast on|off, ...

exit codes: 0 the audit ended (whatever its verdict), 2 bad input, 130 interrupted
"""
COMMANDS = ("train", "attack", "score", "report", "list")
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


def run_audit(arguments: Sequence[str]) -> int:
    """`audit [options]`."""
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


def run_stage(stage: str, arguments: Sequence[str]) -> int:
    """`audit train|attack|score|report RUN`."""
    if len(arguments) != 1:
        raise AuditError(f"usage: audit {stage} RUN, where RUN is the folder of an audit")
    path = Path(arguments[0])
    if stage == "report":
        from reports.render import write_report

        print(f"report: {write_report(path)}")
        return 0
    from fedre_audit import pipeline
    from fedre_audit.runs import existing_run

    run = existing_run(path)
    pipeline.set_up_torch(run.config)
    pipeline.run_stage(stage, run, None, {}, quiet=False)
    return 0


def run_list(arguments: Sequence[str]) -> int:
    """`audit list WHAT`."""
    from fedre_audit.listing import LISTS, table

    if len(arguments) != 1 or arguments[0] not in LISTS:
        raise AuditError(f"usage: audit list WHAT, where WHAT is one of: {', '.join(sorted(LISTS))}")
    print(table(arguments[0]))
    return 0


def dispatch(arguments: Sequence[str]) -> int:
    """Pick the command by the first word."""
    if not arguments or arguments[0].startswith("-"):
        if list(arguments) in (["--help"], ["-h"]):
            print(HELP, end="")
            return 0
        if list(arguments) == ["--version"]:
            print(f"fedre-audit {__version__}")
            return 0
        return run_audit(arguments)
    command, rest = arguments[0], arguments[1:]
    if command not in COMMANDS:
        raise AuditError(f"unknown command '{command}'; choose one of: {', '.join(COMMANDS)}, or see audit --help")
    if rest in (["--help"], ["-h"]):
        print(HELP, end="")
        return 0
    handlers: dict[str, Callable[[Sequence[str]], int]] = {"list": run_list}
    return handlers.get(command, lambda words: run_stage(command, words))(rest)


def one_sentence(error: BaseException) -> str:
    """The parser's message without its usage block."""
    return re.sub(r"\s+", " ", str(error)).strip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, 2 on bad input (one sentence on stderr), 130 when interrupted."""
    from argparse import ArgumentError

    from reports.schema import SchemaError

    try:
        return dispatch(list(sys.argv[1:] if arguments is None else arguments))
    except (AuditError, SchemaError, ArgumentError) as error:
        print(f"audit: {one_sentence(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("audit: interrupted; the same command with the same --out resumes it", file=sys.stderr)
        return 130

"""The command line. The first word picks the command; without one it is the audit itself. Help needs no torch.

Each command is a file of fedre_audit/commands with `run(arguments) -> exit code`; it is imported only when called.
"""

import importlib
import re
import sys
from collections.abc import Sequence

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
COMMANDS = {
    "train": "stage",
    "attack": "stage",
    "score": "stage",
    "report": "stage",
    "list": "list",
}
"""Command word -> module of fedre_audit/commands."""


def dispatch(arguments: Sequence[str]) -> int:
    """Pick the command by the first word."""
    first = arguments[0] if arguments else ""
    if list(arguments) in (["--help"], ["-h"]):
        print(HELP, end="")
        return 0
    if list(arguments) == ["--version"]:
        print(f"fedre-audit {__version__}")
        return 0
    if not arguments or first.startswith("-"):
        return importlib.import_module("fedre_audit.commands.audit").run("audit", arguments)
    if first not in COMMANDS:
        raise AuditError(f"unknown command '{first}'; choose one of: {', '.join(COMMANDS)}, or see audit --help")
    if list(arguments[1:]) in (["--help"], ["-h"]):
        print(HELP, end="")
        return 0
    return importlib.import_module(f"fedre_audit.commands.{COMMANDS[first]}").run(first, arguments[1:])


def one_sentence(error: BaseException) -> str:
    """The message on one line."""
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

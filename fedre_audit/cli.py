"""The command line. The first word picks the command; without one it is the audit itself. Help needs no torch.

Each command is a file of fedre_audit/commands with `run(command, arguments) -> exit code`; it is imported only when
called.
"""

import importlib
import re
import shlex
import sys
from collections.abc import Sequence
from typing import NamedTuple

from fedre_audit import __version__
from knowledge_forms.errors import AuditError


class Command(NamedTuple):
    """module: file of fedre_audit/commands. usage: what follows the word. about: one line. example: a whole line."""

    module: str
    usage: str
    about: str
    example: str


COMMANDS = {
    "compare": Command(
        "compare", "[options]", "all forms and mechanisms on the same clients, images, seeds and attackers",
        "audit compare --out runs/compared",
    ),
    "reproduce": Command("reproduce", "WHAT [options]", "published tables beside ours: accuracy, communication, "
                         "mechanisms, overhead, privacy, toy", "audit reproduce communication"),
    "train": Command("stage", "RUN", "train and record again", "audit train runs/my-run"),
    "attack": Command("stage", "RUN", "attack the recorded uploads again", "audit attack runs/my-run"),
    "score": Command("stage", "RUN", "score the reconstructions again", "audit score runs/my-run"),
    "report": Command("stage", "RUN", "write report.html again, byte for byte", "audit report runs/my-run"),
    "index": Command("index", "DIR", "one page over many runs, newest first, searchable", "audit index runs"),
    "list": Command(
        "list", "WHAT", "forms, attacks, systems, families, models, datasets, metrics", "audit list attacks"
    ),
    "check": Command("check", "PATH ...", "are recorded uploads readable, whole and sane", "audit check my-uploads"),
    "import": Command("import_", "PATH --out DIR", "client data folders (.npz) of federated libraries, as truth",
                      "audit import dataset/Cifar10/train --out my-truth"),
    "export": Command("export", "RUN --out DIR", "what the server saw, without any truth, to hand on",
                      "audit export runs/my-run --out uploads-to-share"),
    "completion": Command("completion", "SHELL", "completion script for bash, zsh or fish",
                          "audit completion bash > ~/.local/share/bash-completion/completions/audit"),
}  # fmt: skip
"""Command word -> what it is. A new command is a file and a line here."""

OPTIONS = """\
options of the audit (all of them: audit --form entangled --help)
  --form FORM         raw, prototype or entangled (default)
  --dataset NAME      mnist5k (default, embedded), cifar10, tinyimagenet or imagefolder:PATH
  --data-root DIR     where data sets are found (default $FEDRE_AUDIT_DATA, else ~/.cache/fedre-audit)
  --preset NAME       quick (default, about a minute), small (minutes) or full (the published setting: for CUDA)
  --out DIR           the run folder; the same configuration resumes it
  --config FILE       a YAML file of options; options on the command line win
  --uploads DIR       audit recorded uploads of your own federation (audit --uploads DIR --help)
  --dry-run           print plan, cost and traffic, and do nothing
  --quiet             the result alone          --json   the result as one line of JSON
  --fail-on LEVELS    sample, class, not-assessed (a comma list): exit 3 at such a verdict
  --clients, --rounds, --seed, --device, --broadcast on|off, ...
"""
EXIT_CODES = """\
exit codes
  0    it ended, whatever the verdict           2    bad input, named in one line
  3    the verdict is one that --fail-on names  130  interrupted; the same command resumes
"""


def help_text(word: str | None = None) -> str:
    """Help of one command, or of all."""
    if word is not None:
        command = COMMANDS[word]
        return f"usage: audit {word} {command.usage}\n\n{command.about}\n\nexample\n  {command.example}\n\n{EXIT_CODES}"
    lines = [
        f"  {f'{name} {command.usage}':<26}{command.about}\n{'':28}{command.example}"
        for name, command in COMMANDS.items()
    ]
    return "\n".join(
        [
            "fedre-audit: what does a client leak when it uploads representations, prototypes or entangled",
            "representations?\n",
            "usage: audit [options]             train, attack, score, report: the whole audit",
            "       audit COMMAND ...           audit COMMAND --help says more\n",
            "commands",
            f"  {'(none)':<26}the audit\n{'':28}audit --form entangled",
            *lines,
            "",
            OPTIONS,
            EXIT_CODES,
        ]
    )


def dispatch(arguments: Sequence[str]) -> int:
    """Pick the command by the first word."""
    first = arguments[0] if arguments else ""
    asks_help = bool({"--help", "-h"} & set(arguments))
    if list(arguments) in (["--help"], ["-h"], ["help"]):
        print(help_text(), end="")
        return 0
    if list(arguments) == ["--version"]:
        print(f"fedre-audit {__version__}")
        return 0
    if any(word.partition("=")[0] == "--uploads" for word in arguments):
        return importlib.import_module("fedre_audit.commands.uploads").run("audit", arguments)
    if not arguments or first.startswith("-"):
        return importlib.import_module("fedre_audit.commands.audit").run("audit", arguments)
    if first not in COMMANDS:
        raise AuditError(f"unknown command '{first}'; choose one of: {', '.join(COMMANDS)}, or see audit --help")
    if asks_help:
        print(help_text(first), end="")
        return 0
    return importlib.import_module(f"fedre_audit.commands.{COMMANDS[first].module}").run(first, arguments[1:])


def one_sentence(error: BaseException) -> str:
    """The message on one line, options spelt as on the command line.

    >>> one_sentence(ValueError("too few;\\n  raise --private_images"))
    'too few; raise --private-images'
    """
    text = re.sub(r"\s+", " ", str(error)).strip()
    return re.sub(r"(?<![\w./-])--[a-z]+(_[a-z]+)+", lambda found: found[0].replace("_", "-"), text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, 2 on bad input (one line on stderr), 3 from --fail-on, 130 when interrupted."""
    from argparse import ArgumentError

    from reports.schema import SchemaError

    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return dispatch(words)
    except (AuditError, SchemaError, ArgumentError) as error:
        print(f"audit: {one_sentence(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"audit: interrupted, nothing finished is lost; resume with: {shlex.join(['audit', *words])}",
              file=sys.stderr)  # fmt: skip
        return 130

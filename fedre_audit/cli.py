"""The command line. The first word picks the command; without one it is the audit itself. Help needs no torch.

Each command is a file of fedre_audit/commands with `run(command, arguments) -> exit code`; it is imported only when
called.
"""

import importlib
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fedre_audit import __version__
from knowledge_forms.errors import AuditError


class Command(NamedTuple):
    """module: file of fedre_audit/commands. usage: what follows the word. about: one line. example: a whole line.

    own: whether its file names options in OWN. audits: whether it takes the options of the audit besides.
    """

    module: str
    usage: str
    about: str
    example: str
    own: bool = False
    audits: bool = False


COMMANDS = {
    "compare": Command(
        "compare", "[options]", "all forms and mechanisms on the same clients, images, seeds and attackers",
        "audit compare --out runs/compared", own=True, audits=True,
    ),
    "reproduce": Command("reproduce", "WHAT [options]", "published tables beside ours: accuracy, communication, "
                         "mechanisms, overhead, privacy, toy", "audit reproduce communication", own=True),
    "train": Command("stage", "RUN", "train and record again", "audit train runs/my-run"),
    "attack": Command("stage", "RUN", "attack the recorded uploads again", "audit attack runs/my-run"),
    "score": Command("stage", "RUN", "score the reconstructions again", "audit score runs/my-run"),
    "report": Command("stage", "RUN", "write report.html again, byte for byte", "audit report runs/my-run"),
    "index": Command("index", "DIR", "one page over many runs, newest first, searchable", "audit index runs"),
    "list": Command(
        "list", "WHAT", "forms, mechanisms, attacks, systems, families, models, datasets, metrics",
        "audit list attacks",
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
  --dataset NAME      mnist5k (default, embedded), fashionmnist, cifar10, cifar100, tinyimagenet, imagefolder:PATH
  --data-root DIR     where data sets are found (default $FEDRE_AUDIT_DATA, else ~/.cache/fedre-audit)
  --preset NAME       quick (default, about a minute), small (minutes) or full (the published setting: for CUDA)
  --out DIR           the run folder; the same configuration resumes it
  --config FILE       a YAML file of options; options on the command line win
  --uploads DIR       audit recorded uploads of your own federation (audit --uploads DIR --help)
  --dry-run           print plan, cost and traffic; train and fetch nothing
  --quiet             the result alone          --json   the result as one line of JSON
  --fail-on LEVELS    sample, class, not-assessed (a comma list): exit 3 at such a verdict
  --clients, --rounds, --seed, --device, --broadcast on|off, ...
"""
EXIT_CODES = """\
exit codes
  0    it ended, whatever the verdict           2    bad input, named in one line
  3    the verdict is one that --fail-on names  130  interrupted; the same command resumes
"""


BROKEN_PIPE = 128 + 13
"""Exit code of a program whose reader has gone, as a shell gives it; never 0, for a gate may be behind it."""


def audit_options(config: type | None = None) -> str:
    """Every option of the audit, or of the audit of recorded uploads where `config` is theirs."""
    from fedre_audit.config import PRESETS, AuditConfig
    from fedre_audit.manual import config_lines, own_lines
    from fedre_audit.options import SHARED

    keys = config_lines(config or AuditConfig, {} if config else PRESETS)
    return "\n".join(["how to run and answer", *own_lines(SHARED), "", "what to audit", *keys]) + "\n\n"


def command_options(word: str) -> str:
    """Options of one command; of the audit's, which it may take besides, the place where they stand."""
    from fedre_audit.manual import own_lines

    command = COMMANDS[word]
    if not command.own:
        return ""
    own = own_lines(importlib.import_module(f"fedre_audit.commands.{command.module}").OWN)
    besides = ["  and all options of the audit: audit --form entangled --help"] if command.audits else []
    return "\n".join(["options", *own, *besides]) + "\n\n"


def long_help(uploads: bool) -> str:
    """Help of the audit with all of its options."""
    if not uploads:
        return f"usage: audit [options]\n\n{audit_options()}{EXIT_CODES}"
    from fedre_audit.foreign.config import ForeignConfig

    return f"usage: audit --uploads DIR [options]\n\n{audit_options(ForeignConfig)}{EXIT_CODES}"


def help_text(word: str | None = None) -> str:
    """Help of one command, or of all."""
    if word is not None:
        command = COMMANDS[word]
        options = command_options(word)
        usage, example = f"usage: audit {word} {command.usage}", f"example\n  {command.example}"
        return "\n\n".join([usage, command.about, example, options + EXIT_CODES])
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
    uploads = any(word.partition("=")[0] == "--uploads" for word in arguments)
    if asks_help and first.startswith("-"):
        print(long_help(uploads), end="")
        return 0
    if uploads:
        return importlib.import_module("fedre_audit.commands.uploads").run("audit", arguments)
    if not arguments or first.startswith("-"):
        return importlib.import_module("fedre_audit.commands.audit").run("audit", arguments)
    if first not in COMMANDS:
        raise AuditError(f"unknown command '{first}'; choose one of: {', '.join(COMMANDS)}, or see audit --help")
    if asks_help:
        print(help_text(first), end="")
        return 0
    run = importlib.import_module(f"fedre_audit.commands.{COMMANDS[first].module}").run
    if first == "report" and len(arguments) == 2:  # it only reads, so what goes wrong is the file's
        from reports.schema import showing

        with showing(Path(arguments[1]) / "scores.json"):
            return run(first, arguments[1:])
    return run(first, arguments[1:])


def one_sentence(error: BaseException) -> str:
    """The message on one line, options spelt as on the command line.

    >>> one_sentence(ValueError("too few;\\n  raise --private_images"))
    'too few; raise --private-images'
    """
    text = re.sub(r"\s+", " ", str(error)).strip()
    return re.sub(r"(?<![\w./-])--[a-z]+(_[a-z]+)+", lambda found: found[0].replace("_", "-"), text)


def refused(error: OSError) -> AuditError:
    """What the system refused, in words; most often a path, else the output.

    >>> refused(PermissionError(13, "Permission denied", "runs/x"))
    AuditError('runs/x: Permission denied; check the path, its permissions and the free space')
    """
    where = "the output" if error.filename is None else os.fsdecode(error.filename)[:200]
    return AuditError(f"{where}: {error.strerror or error}; check the path, its permissions and the free space")


def drop_output() -> None:
    """What is still to print goes nowhere, lest the interpreter fails over it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, 2 on bad input (one line on stderr), 3 from --fail-on, 130 interrupted, 141 unread."""
    from argparse import ArgumentError

    from reports.schema import SchemaError

    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = dispatch(words)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `audit list attacks | head`: the reader has gone, and so would what is still to print
        drop_output()
        return BROKEN_PIPE
    except (AuditError, SchemaError, ArgumentError, OSError) as error:
        if sys.flags.dev_mode:  # python -X dev -m fedre_audit: where it comes from
            raise
        print(f"audit: {one_sentence(error if not isinstance(error, OSError) else refused(error))}", file=sys.stderr)
        if isinstance(error, OSError) and error.filename is None:
            drop_output()
        return 2
    except KeyboardInterrupt:
        print(f"audit: interrupted, nothing finished is lost; resume with: {shlex.join(['audit', *words])}",
              file=sys.stderr)  # fmt: skip
        return 130

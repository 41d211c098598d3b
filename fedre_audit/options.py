"""From words on the command line to a configuration: every problem of them named at once."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from fedre_audit.config import INDIFFERENT, PRESETS, AuditConfig, default_lr, resolve
from knowledge_forms.errors import AuditError

SWITCHES = {"on": "true", "off": "false"}
FAIL_ON = {
    "sample": ("SAMPLE_LEVEL",),
    "class": ("CLASS_LEVEL", "SAMPLE_LEVEL"),
    "not-assessed": ("NOT_ASSESSED",),
}
FAIL_ON_HELP = "sample, class, not-assessed (a comma list): exit 3 at such a verdict"
LISTS = tuple(field.name for field in fields(AuditConfig) if "list[" in str(field.type))


@dataclass(frozen=True)
class Options:
    """What a command was asked: the configuration, and how to run and answer."""

    config: AuditConfig
    values: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        return self.values[name]


def normalise(arguments: Sequence[str]) -> list[str]:
    """Accept --two-words, on|off and comma lists, in the spelling that the typed parser reads.

    >>> normalise(["--data-root", "d", "--broadcast", "off", "--attacks=ridge,shadow"])
    ['--data_root', 'd', '--broadcast', 'false', '--attacks=[ridge,shadow]']
    """
    words: list[str] = []
    for word in arguments:
        name, equals, value = word.partition("=")
        if not name.startswith("--"):
            listed = words and words[-1][2:] in LISTS and not word.startswith("[")
            words.append(f"[{word}]" if listed else SWITCHES.get(word, word))
            continue
        name = name[2:].replace("-", "_")
        if equals and name in LISTS and not value.startswith("["):
            value = f"[{value}]"
        words.append("--" + name + equals + SWITCHES.get(value, value))
    return without_empty_configs(words)


def without_empty_configs(words: Sequence[str]) -> list[str]:
    """The words, less every --config whose file holds nothing; AuditError where a file is no mapping.

    The typed parser would not name the file, or not even catch what reading it raises.
    """
    import yaml

    kept: list[str] = []
    for chunk in _chunks(words):
        name, equals, value = chunk[0].partition("=")
        file = Path(value or "".join(chunk[1:2]))
        try:
            if name != "--config" or not file.is_file():
                kept += chunk
                continue
            # BaseLoader makes strings, lists and mappings only: what values mean is left to the parser.
            held = yaml.load(file.read_text(), Loader=yaml.BaseLoader)
        except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
            reason = " ".join(str(error).split())
            raise AuditError(
                f"--config {file} is no readable YAML ({reason}); write lines of `option: value`"
            ) from error
        empty = held in (None, "")
        if not empty and not isinstance(held, dict):
            raise AuditError(f"--config {file} is not a mapping; write lines of `option: value`")
        kept += chunk[1 if equals else 2 :] if empty else chunk
    return kept


SHARED: list[tuple[str, dict[str, Any]]] = [
    ("--config", {"action": "config", "metavar": "FILE", "help": "YAML file of options; the command line wins"}),
    ("--out", {"type": str | None, "default": None, "metavar": "DIR", "help": "run folder (default runs/<name>)"}),
    ("--quiet", {"action": "store_true", "help": "print the result alone"}),
    ("--json", {"action": "store_true", "help": "the result as one line of JSON"}),
    ("--dry_run", {"action": "store_true", "help": "print plan, cost and traffic; train and fetch nothing"}),
    ("--fail_on", {"type": str, "default": "", "metavar": "LEVELS", "help": FAIL_ON_HELP}),
]
"""Options of every command that audits, as name and settings of `add_argument`."""


def make_parser(command: str, *, own: Sequence[tuple[str, dict[str, Any]]] = ()) -> Any:
    """The typed parser of one command: every key of AuditConfig, what all commands share, and its `own` options."""
    from jsonargparse import ArgumentParser

    parser = ArgumentParser(prog=f"audit {command}".strip(), exit_on_error=False, description=__doc__)
    for name, settings in (*SHARED, *own):
        parser.add_argument(name, **settings)
    parser.add_class_arguments(AuditConfig)
    return parser


def _chunks(words: Sequence[str]) -> list[list[str]]:
    """One list per option: its name and what follows it."""
    found: list[list[str]] = []
    for word in words:
        if word.startswith("--") or not found:
            found.append([word])
        else:
            found[-1].append(word)
    return found


def _wanted(hint: Any) -> str:
    """What a value of this type looks like, in words."""
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(get_args(hint))
    kinds: dict[Any, str] = {
        int: "a whole number",
        float: "a number",
        bool: "on or off",
        str: "one word, in quotes where it holds spaces",
        list[int]: "whole numbers with commas between, such as 0,1",
        list[str]: "words with commas between and no spaces",
    }
    return next(words for kind, words in kinds.items() if kind in (hint, *get_args(hint)))


def explain(chunk: Sequence[str], error: Exception) -> str:
    """Why the parser refused one option: in words where the option is known, else the parser's own."""
    name, _, value = chunk[0].partition("=")
    given = value or " ".join(chunk[1:])
    if name[2:] in LISTS:
        given = given.replace("[", "").replace("]", "")  # as `normalise` found it
    hints = get_type_hints(AuditConfig)
    if name[2:] in hints:
        return f"{name} {given}: must be {_wanted(hints[name[2:]])}" if given else f"{name} needs a value"
    if "unrecognized" in str(error).lower():
        close = get_close_matches(name[2:], hints, n=1)
        return f"unknown option {name}" + (f"; did you mean --{close[0]}?" if close else "")
    return str(error)


def split_fail_on(text: str | None) -> tuple[list[str], list[str]]:
    """The words of --fail-on (None: a null in a file), and what is wrong with them.

    >>> split_fail_on("class, sample"), split_fail_on("sampel")
    ((['class', 'sample'], []), (['sampel'], ['--fail-on sampel: choose from sample, class, not-assessed']))
    """
    words = [word for word in (text or "").replace(" ", "").split(",") if word]
    unknown = [word for word in words if word not in FAIL_ON]
    return words, [f"--fail-on {','.join(unknown)}: choose from {', '.join(FAIL_ON)}"] if unknown else []


def parse(command: str, arguments: Sequence[str], *, own: Sequence[tuple[str, dict[str, Any]]] = ()) -> Options:
    """Parse words; AuditError names every option that is wrong, at once. Ranges are checked by `resolve`."""
    from argparse import ArgumentError

    parser = make_parser(command, own=own)
    words = normalise(arguments)
    problems: list[str] = []
    try:
        values = parser.parse_args(words).as_dict()
    except ArgumentError as error:
        good: list[str] = []
        for chunk in _chunks(words):
            try:
                parser.parse_args(chunk)
                good += chunk
            except ArgumentError as single:
                problems.append(explain(chunk, single))
        if not problems:
            raise AuditError(str(error)) from error
        values = parser.parse_args(good).as_dict()
    values.pop("config", None)
    names = {field.name for field in fields(AuditConfig)}
    config = AuditConfig(**{name: value for name, value in values.items() if name in names})
    others = {name: value for name, value in values.items() if name not in names}
    others["fail_on"], wrong = split_fail_on(others["fail_on"])
    problems += wrong
    if problems:
        try:
            resolve(config)
        except AuditError as error:
            problems.append(str(error))
        raise AuditError(one_or_many(problems))
    return Options(config, others)


def one_or_many(problems: Sequence[str]) -> str:
    """Problems as one line.

    >>> one_or_many(["a is 0"]), one_or_many(["a is 0", "b is bad"])
    ('a is 0', '2 problems: (1) a is 0 (2) b is bad')
    """
    if len(problems) == 1:
        return problems[0]
    return f"{len(problems)} problems: " + " ".join(f"({i}) {problem}" for i, problem in enumerate(problems, 1))


def command_line(config: AuditConfig, word: str = "") -> str:
    """The command that makes this configuration, shortest form; where data lie on this machine is left out.

    >>> command_line(AuditConfig(form="raw", broadcast=False, attacks=["ridge", "shadow"], rounds=100))
    'audit --form raw --broadcast off --attacks ridge,shadow'
    """
    plain, preset = AuditConfig(), PRESETS[config.preset]
    words = ["audit", *([word] if word else []), "--form", config.form]
    for field in fields(AuditConfig):
        value = getattr(config, field.name)
        if field.name in ("form", *INDIFFERENT) or value == getattr(plain, field.name) or value is None:
            continue
        if getattr(plain, field.name) in (None, "auto") and preset.get(field.name) == value:
            continue
        if field.name == "lr" and value == default_lr(config.family, config.preset):
            continue
        if isinstance(value, bool):
            value = "on" if value else "off"
        elif isinstance(value, list):
            value = ",".join(str(item) for item in value)
        words += ["--" + field.name.replace("_", "-"), str(value)]
    # Into UTF-8 files it goes: bytes of a path that are not UTF-8 stand there as \xff.
    return shlex.join(words).encode(errors="surrogateescape").decode(errors="backslashreplace")


COMMAND_FILE = "command.txt"
"""Holds the command of a run that a command on its own configuration would not make, such as an arm of a comparison."""


def command_of(run: Path, config: AuditConfig) -> str:
    """The command that makes this run folder."""
    stored = run / COMMAND_FILE
    return stored.read_text().strip() if stored.is_file() else command_line(config)

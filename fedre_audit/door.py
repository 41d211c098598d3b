"""The Python door: `from fedre_audit import audit, compare, Recorder`. Torch is loaded by the call, not the import."""

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fedre_audit.config import CONFIG_KEYS, AuditConfig
from fedre_audit.result import AuditResult
from knowledge_forms.errors import AuditError

if TYPE_CHECKING:
    from fedre_audit.comparison import ComparisonResult


def make_config(options: dict[str, Any]) -> AuditConfig:
    """Options by the names of AuditConfig, checked as on the command line; AuditError names every bad one."""
    from argparse import ArgumentError

    from fedre_audit.options import explain, make_parser, one_or_many

    problems = [f"unknown option '{name}'" for name in options if name not in CONFIG_KEYS]
    parser = make_parser("")
    for name, value in options.items():
        try:
            parser.parse_object({name: value} if name in CONFIG_KEYS else {})
        except ArgumentError as error:
            problems.append(explain([f"--{name}", str(value)], error))
    if problems:
        raise AuditError(one_or_many(problems))
    values = parser.parse_object(options)
    return AuditConfig(**{name: values[name] for name in CONFIG_KEYS})


def audit(*, out: str | Path | None = None, quiet: bool = True, **options: Any) -> AuditResult:
    """Run an audit, or what is missing of it, and return its result: `.scores`, `.verdict`, `.report`.

    out: the run folder, as `--out`. options: any key of AuditConfig, for instance form="prototype", clients=4.
    Raises AuditError on bad options or data.
    """
    from fedre_audit.pipeline import audit as run_audit

    return AuditResult(run_audit(make_config(options), Path(out) if out else None, quiet=quiet).path)


def compare(*, out: str | Path | None = None, quiet: bool = True, **options: Any) -> "ComparisonResult":
    """Audit several forms on the same clients and attackers; see fedre_audit.comparison.compare.

    options: `forms`, `own_system`, and any key of AuditConfig. Raises AuditError on bad options or data.
    """
    from fedre_audit.comparison import compare as run_comparison

    own = {name: options.pop(name) for name in ("forms", "own_system") if name in options}
    return run_comparison(make_config(options), out=out, quiet=quiet, **own)


class CallableModule(ModuleType):
    """Lets the package `fedre_audit.audit` be called: it and the function share the name that users want."""

    def __call__(self, **options: Any) -> AuditResult:
        return audit(**options)

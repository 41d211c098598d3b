"""`audit [options]`: the whole audit."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from fedre_audit.config import resolve
from fedre_audit.options import FAIL_ON, parse
from fedre_audit.result import AuditResult
from fedre_audit.runs import default_path


def run(command: str, arguments: Sequence[str]) -> int:
    """Parse, plan, audit, print the result."""
    options = parse("", arguments)
    out = Path(options.out) if options.out else None
    quiet = options.quiet or options.json

    from fedre_audit.pipeline import audit
    from fedre_audit.plan import make_plan

    if options.dry_run:
        plan = make_plan(options.config, dry=True)
        print(json.dumps(plan.as_dict()) if options.json else plan.text())
        return 0
    path = out or default_path(resolve(options.config))
    if not quiet and not (path / "scores.json").exists():
        print(make_plan(options.config).line(), file=sys.stderr, flush=True)
    return answer(AuditResult(audit(options.config, path, quiet=quiet).path), options.fail_on, options.json)


def answer(result: AuditResult, fail_on: Sequence[str], as_json: bool) -> int:
    """Print the result of one run, as lines or as one line of JSON; returns the exit code."""
    code = exit_code(result.verdict, fail_on)
    print(json.dumps({**result.summary(), "exit_code": code}) if as_json else "\n".join(result.lines()))
    return code


def exit_code(level: str, fail_on: Sequence[str], of: str = "") -> int:
    """3 where the verdict is one that --fail-on names, else 0; warns where a gate passes without a verdict.

    of: the arm of a comparison, named in what is printed.

    >>> exit_code("SAMPLE_LEVEL", ["class"]), exit_code("CLASS_LEVEL", ["sample"]), exit_code("CLASS_LEVEL", [])
    (3, 0, 0)
    """
    name = f" {of}:" if of else ""
    if any(level in FAIL_ON[word] for word in fail_on):
        print(f"audit: --fail-on {','.join(fail_on)}:{name} the verdict is {level}", file=sys.stderr)
        return 3
    if fail_on and level == "NOT_ASSESSED":
        print(
            f"audit:{name} nothing was assessed, so this gate proves nothing; add not-assessed to --fail-on",
            file=sys.stderr,
        )
    return 0

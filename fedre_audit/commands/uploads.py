"""`audit --uploads DIR [options]`: audit recorded uploads of one's own federation."""

import json
from collections.abc import Sequence
from pathlib import Path

from fedre_audit.options import SHARED, normalise, split_fail_on
from knowledge_forms.errors import AuditError


def run(command: str, arguments: Sequence[str]) -> int:
    """Parse, print the plan, audit, print the result."""
    from jsonargparse import ArgumentParser

    from fedre_audit.foreign.config import ForeignConfig

    parser = ArgumentParser(prog="audit", exit_on_error=False, description="Audit recorded uploads.")
    for name, settings in SHARED:
        parser.add_argument(name, **settings)
    parser.add_class_arguments(ForeignConfig)
    values = parser.parse_args(normalise(arguments)).as_dict()
    values.pop("config", None)
    out, quiet, as_json, dry_run = (values.pop(name) for name in ("out", "quiet", "json", "dry_run"))
    fail_on, wrong = split_fail_on(values.pop("fail_on"))
    if wrong:
        raise AuditError(wrong[0])
    config = ForeignConfig(**values)
    if dry_run:
        from fedre_audit.foreign.config import check_config
        from fedre_audit.foreign.plan import plan, plan_text
        from fedre_audit.foreign.truth import check_truth_folder
        from fedre_audit.foreign.uploads import read_uploads

        check_config(config)
        found = read_uploads(Path(config.uploads), config.form)
        if config.truth:
            check_truth_folder(Path(config.truth))
        lines = [dict(zip(("what", "answer", "why"), line, strict=True)) for line in plan(config, found)]
        print(json.dumps({"plan": lines}) if as_json else plan_text(config, found))
        return 0

    from fedre_audit.commands.audit import answer
    from fedre_audit.foreign.pipeline import audit_uploads
    from fedre_audit.result import AuditResult

    quiet = quiet or as_json
    say = (lambda text: None) if quiet else print
    done = audit_uploads(config, Path(out) if out else None, quiet=quiet, say=say)
    return answer(AuditResult(done.path), fail_on, as_json)

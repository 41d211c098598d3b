"""`audit --uploads DIR [options]`: audit recorded uploads of one's own federation."""

from collections.abc import Sequence
from pathlib import Path

from fedre_audit.options import normalise


def run(command: str, arguments: Sequence[str]) -> int:
    """Parse, print the plan, audit, print the result."""
    from jsonargparse import ArgumentParser

    from fedre_audit.foreign.config import ForeignConfig

    parser = ArgumentParser(prog="audit", exit_on_error=False, description="Audit recorded uploads.")
    parser.add_argument("--config", action="config", help="YAML file of options")
    parser.add_argument("--out", type=str | None, default=None, help="run folder (default runs/<name>)")
    parser.add_argument("--quiet", action="store_true", help="print the result only")
    parser.add_argument("--dry_run", action="store_true", help="print the plan and do nothing")
    parser.add_class_arguments(ForeignConfig)
    values = parser.parse_args(normalise(arguments)).as_dict()
    values.pop("config", None)
    out, quiet, dry_run = values.pop("out"), values.pop("quiet"), values.pop("dry_run")
    config = ForeignConfig(**values)
    if dry_run:
        from fedre_audit.foreign.config import check_config
        from fedre_audit.foreign.plan import plan_text
        from fedre_audit.foreign.uploads import read_uploads

        check_config(config)
        print(plan_text(config, read_uploads(Path(config.uploads), config.form)))
        return 0

    from fedre_audit.foreign.pipeline import audit_uploads
    from fedre_audit.result import AuditResult

    say = (lambda text: None) if quiet else print
    done = audit_uploads(config, Path(out) if out else None, quiet=quiet, say=say)
    print("\n".join(AuditResult(done.path).lines()))
    return 0

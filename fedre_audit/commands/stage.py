"""`audit train|attack|score|report RUN`: one stage of a run again from its start; later stages become due."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from knowledge_forms.errors import AuditError

NEXT = {"train": "attack", "attack": "score", "score": "report"}


def run(command: str, arguments: Sequence[str]) -> int:
    """Run the stage `command` of the run folder named by the one argument."""
    if len(arguments) != 1:
        raise AuditError(f"usage: audit {command} RUN, where RUN is the folder of an audit")
    path = Path(arguments[0])
    if command == "report":
        from reports.render import write_report

        print(f"report: {write_report(path)}")
        return 0
    from fedre_audit import pipeline
    from fedre_audit.result import AuditResult
    from fedre_audit.runs import existing_run, lock_run

    found = existing_run(path)
    if found.has("foreign.json"):
        from fedre_audit.foreign.pipeline import audit_again

        print("\n".join(AuditResult(audit_again(found, command).path).lines()))
        return 0
    pipeline.check_names(found.config)
    pipeline.set_up_torch(found.config)
    prepared = pipeline.prepare(
        pipeline.configs(found.config)[0]
    )  # before anything is removed: missing data lose nothing
    with lock_run(path):
        parts = pipeline.part_runs(found)
        for part in parts if command in pipeline.NEEDED else ():
            part.read_json(pipeline.NEEDED[command])
        if command in pipeline.NEEDED:  # training starts afresh, with the images that are there now
            pipeline.check_images(found, prepared)
        for one in {part.path: part for part in (found, *parts)}.values() if command != "score" else ():
            one.clear(command)  # scoring clears for itself, once it has read what it needs
        pipeline.run_stage(command, found, prepared, {}, quiet=False)
    print("\n".join(AuditResult(path).lines()[:-1]) if command == "score" else f"{command}: done, {path}")
    print(f"next: {shlex.join(['audit', NEXT[command], str(path)])}")
    return 0

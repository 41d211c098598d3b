"""The whole audit: train, attack, score, report, in that order; a complete stage is not run again."""

import os
import time
from pathlib import Path

import torch

from attacks.base import ATTACKS
from fedre_audit.config import AuditConfig, resolve
from fedre_audit.federation.systems import SYSTEMS
from fedre_audit.models.base import FAMILIES
from fedre_audit.options import one_or_many
from fedre_audit.runs import Run, default_path, lock_run, open_run
from fedre_audit.seeds import configs, part_runs, parts_of
from fedre_audit.stages import attack as attacking
from fedre_audit.stages import score as scoring
from fedre_audit.stages import train as training
from fedre_audit.stages.prepare import Prepared, prepare
from knowledge_forms.base import FORMS
from knowledge_forms.entangled import LAWS, MECHANISMS
from knowledge_forms.errors import AuditError
from knowledge_forms.mapping import MAPPINGS
from reports.render import write_report

DONE = {"train": training.DONE, "attack": attacking.DONE, "score": scoring.DONE}
NEEDED = {"attack": training.DONE, "score": attacking.DONE}
"""What must be there before a stage may start again: the mark of the stage before it."""
STAGES = ("train", "attack", "score", "report")


def check_names(config: AuditConfig) -> None:
    """Refuse unknown names before any work is done, all of them at once."""
    problems = []
    for registry, names in ((FORMS, [config.form]), (SYSTEMS, [config.system]), (FAMILIES, [config.family]),
                            (ATTACKS, config.attacks or []), (MECHANISMS, [config.mechanism]),
                            (LAWS, [config.weight_law]),
                            (MAPPINGS, [config.mapping])):  # fmt: skip
        problems += [registry.refusal(name) for name in names if name not in registry]
    form, colon, mechanism = config.form.partition(":")
    if colon and form == "entangled":
        problems = [f"--form {config.form}: write --form entangled --mechanism {mechanism}", *problems[1:]]
    problems += [
        f"attack '{name}' is a floor and always runs; leave it out of --attacks"
        for name in config.attacks or ()
        if name in ATTACKS and not ATTACKS[name].uses_upload
    ]
    if not config.attacks:
        problems.append("--attacks is empty; name at least one, for instance ridge")
    if problems:
        raise AuditError(one_or_many(problems))


def set_up_torch(config: AuditConfig) -> None:
    """Threads are part of the configuration: one against two threads is not bit-equal."""
    torch.set_num_threads(config.threads)
    torch.use_deterministic_algorithms(True, warn_only=True)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def run_stage(
    stage: str,
    run: Run,
    prepared: Prepared | None,
    seconds: dict[str, float],
    *,
    quiet: bool,
    kept: scoring.Kept | None = None,
) -> None:
    """Run one stage of every seed, whether or not it ran before. kept: see `score`."""
    if stage == "report":
        write_report(run.path)
        return
    prepared = prepared or prepare(run.config, quiet=quiet)
    started = time.perf_counter()
    parts = parts_of(run, prepared, quiet=quiet)
    if stage == "score":
        scoring.score(run, prepared, seconds=seconds, quiet=quiet, parts=parts, kept=kept)
    for one, data in parts if stage != "score" else ():
        if run.config.seeds is None or not one.has(DONE[stage]):
            (training.train if stage == "train" else attacking.attack)(one, data, quiet=quiet)
    seconds[stage] = time.perf_counter() - started


def check_images(run: Run, prepared: Prepared) -> None:
    """AuditError where any seed was trained on other images. prepared: of any seed, for all have the same data sets."""
    for one in part_runs(run):
        training.check_images(one, prepared)


def audit(
    config: AuditConfig,
    out: Path | None = None,
    *,
    quiet: bool = False,
    kept: scoring.Kept | None = None,
    prepared: Prepared | None = None,
) -> Run:
    """Run what is missing of an audit and return its run folder.

    kept: what several audits share, see `score`. prepared: the images where they were loaded before.
    """
    config = resolve(config)
    check_names(config)
    set_up_torch(config)
    path = out or default_path(config)
    started = time.perf_counter()
    # Before the folder is made: bad data leaves nothing behind.
    prepared = prepared or prepare(configs(config)[0], quiet=quiet)
    seconds = {"prepare": time.perf_counter() - started}
    with lock_run(path):
        run = open_run(path, config)
        check_images(run, prepared)
        for stage in STAGES:
            owners = [run] if stage in ("score", "report") else part_runs(run)
            if stage == "report" or not all(owner.has(DONE[stage]) for owner in owners):
                run_stage(stage, run, prepared, seconds, quiet=quiet, kept=kept)
    return run

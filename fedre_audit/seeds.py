"""Several seeds: each is a federation of its own in `seed-N/` below the run, and all are scored together."""

from dataclasses import replace

from fedre_audit.config import AuditConfig
from fedre_audit.runs import Run, open_run
from fedre_audit.stages.prepare import Prepared, prepare

Parts = list[tuple[Run, Prepared]]


def configs(config: AuditConfig) -> list[AuditConfig]:
    """The configuration of each seed; the configuration itself where there is one seed."""
    if config.seeds is None:
        return [config]
    return [replace(config, seed=seed, seeds=None) for seed in config.seeds]


def part_runs(run: Run) -> list[Run]:
    """The run of each seed, made where it is missing; the run itself where there is one seed."""
    if run.config.seeds is None:
        return [run]
    return [open_run(run.path / f"seed-{config.seed}", config) for config in configs(run.config)]


def parts_of(run: Run, prepared: Prepared, *, quiet: bool = False) -> Parts:
    """Every seed's run with its data. prepared: that of the first seed."""
    first, *others = part_runs(run)
    return [(first, prepared), *((one, prepare(one.config, quiet=quiet)) for one in others)]

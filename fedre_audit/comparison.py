"""Many forms on the same clients, images, seeds and attacker budget: one training, recorded in every form.

Each form is an ordinary run folder below `arms/`, with its own scores and report; compare.json joins them.
"""

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from fedre_audit.audit.paired import client_values, difference
from fedre_audit.config import AuditConfig, config_sha256, resolve
from fedre_audit.federation.history import read_history
from fedre_audit.federation.view import read_view
from fedre_audit.options import COMMAND_FILE, command_line
from fedre_audit.runs import Run, lock_run, open_run
from fedre_audit.stages.lowering import of_comparison, reference_of
from knowledge_forms.base import FORMS, Classifier
from knowledge_forms.entangled import MECHANISMS
from knowledge_forms.errors import AuditError
from knowledge_forms.store import write_bytes
from knowledge_forms.traffic import count_traffic
from reports.comparisons import (
    COMPARE_SCHEMA_VERSION,
    Arm,
    Comparison,
    Difference,
    dump_comparison,
    load_comparison,
    write_comparison,
)
from reports.schema import load_scores

DEFAULT_FORMS = (
    "raw", "prototype", "entangled:RAP", "entangled:RAP:fixed", "entangled:RSR", "entangled:VAR", "entangled:RAR",
    "entangled:RSP", "entangled:VAP",
)  # fmt: skip
REFERENCES = ("raw", "prototype", "entangled:RAP")
PAIRED = ("psnr", "ssim")
TRAINED = "trained.json"
"""Which forms one training was begun for, and which of them trained."""


@dataclass(frozen=True)
class ComparisonResult:
    """One finished comparison. path: its folder. Shows itself in a notebook."""

    path: Path

    @cached_property
    def comparison(self) -> Comparison:
        """compare.json, read once and checked."""
        return load_comparison(self.path / "compare.json")

    @property
    def report(self) -> Path:
        """The page."""
        return self.path / "compare.html"

    def _repr_html_(self) -> str:
        from reports.comparisons import render_comparison_card

        return render_comparison_card(self.path)


def arm_config(config: AuditConfig, spec: str) -> AuditConfig:
    """`form[:mechanism[:weights]]` -> the configuration of that arm; AuditError where the spec says something else.

    >>> made = arm_config(AuditConfig(), "entangled:VAP:fixed")
    >>> made.form, made.mechanism, made.weights
    ('entangled', 'VAP', 'fixed')
    """
    form, *rest = spec.split(":")
    mixed = form == "entangled" and rest and rest[0] in MECHANISMS and rest[1:] in ([], ["fixed"])
    if form not in FORMS or (rest and not mixed):
        raise AuditError(
            f"--forms names '{spec}'; write {', '.join(FORMS)}, entangled:MECHANISM or entangled:MECHANISM:fixed, "
            f"MECHANISM one of {', '.join(MECHANISMS)}"
        )
    changes: dict[str, Any] = {"form": form}
    if rest:
        changes |= {"mechanism": rest[0], "weights": rest[1] if rest[1:] else "per_round"}
    return replace(config, **changes)


def arms_of(config: AuditConfig, forms: Sequence[str], own_system: bool) -> dict[str, AuditConfig]:
    """Name of each arm -> its resolved configuration; AuditError where one of them could not be run."""
    from fedre_audit.pipeline import check_names

    if len(set(forms)) < 2 or len(set(forms)) < len(forms):
        raise AuditError(f"--forms is {','.join(forms) or 'empty'}; name at least two different ones")
    if config.seeds and not own_system:
        raise AuditError("--seeds: forms are recorded from one training of one --seed; add --own-system on, or drop it")
    arms = {spec: resolve(replace(arm_config(config, spec), own_system=own_system)) for spec in forms}
    for arm in arms.values():
        check_names(arm)
    return arms


def trainer(arms: Sequence[str]) -> str:
    """The arm that the server of a shared training learns from: entangled RAP where it is compared, else the first."""
    return next((name for name in ("entangled:RAP", "entangled") if name in arms), arms[0])


def refuse_other_forms(arms: Sequence[str], root: Path) -> None:
    """AuditError where the training below `root` was begun for other forms, or its server learnt from another one.

    Fewer forms may be compared again once all are trained. Before that a form would record the rest of the rounds
    alone, or be missing when the interrupted training goes on.
    """
    path = root / TRAINED
    if not path.is_file():  # not begun, or recorded before there was such a file
        return
    try:
        held = json.loads(path.read_text())
        forms, trained = list(held["forms"]), held["trainer"]
    except (ValueError, KeyError, TypeError) as error:
        raise AuditError(f"{path} is damaged ({error}); choose another --out") from error
    finished = all((folder / "manifest.json").exists() for folder in folders_of(forms, root).values())
    same = set(arms) <= set(forms) if finished else set(arms) == set(forms)
    if not same or trainer(arms) != trained:
        raise AuditError(
            f"{root} was trained for other --forms ({','.join(forms)}, by {trained}); name the same ones, or choose "
            "another --out"
        )


def share_training(base: Run, other: Run) -> None:
    """Give `other` what the training of `base` left: client models, and the diary with its own form's traffic."""
    shutil.copytree(base.path / "clients", other.path / "clients", dirs_exist_ok=True)
    view = read_view(other.path, other.config.form)
    last = max(upload.round for upload in view.uploads)
    sent: Classifier | None = view.classifiers.get(last)
    traffic = count_traffic([u for u in view.uploads if u.round == last], sent, other.config.clients or 0)
    history = read_history(base.path)
    history.rows[:] = [{**row, "traffic": asdict(traffic)} for row in history.rows]
    history.write(other.path)


def make_arm(name: str, run: Run, root: Path) -> Arm:
    """One arm of compare.json: of its scores the rows over all classes, every attacker and stream, no curves."""
    scores = load_scores(run.path / "scores.json")
    federation = scores["federation"]
    rows = [
        row for row in scores["rows"] if row["form"] == run.config.form and row["slice"] == "all" and "curve" not in row
    ]
    arm = Arm(
        name=name,
        form=federation["form"],
        mechanism=federation["mechanism"],
        system=federation["system"],
        path=run.path.relative_to(root).as_posix(),
        accuracy=federation["accuracy"],
        traffic=federation["traffic"],
        verdict=scores["verdict"],
        rows=rows,
    )
    if "grounds" in scores:
        arm["grounds"] = scores["grounds"]
    return arm


def make_differences(arms: Sequence[Arm], root: Path) -> list[Difference]:
    """Every arm minus every reference, for each attack and metric both have on the members target."""
    values: dict[tuple[str, str, str], dict[int, float]] = {}
    facts: dict[tuple[str, str], Any] = {}
    for arm in arms:
        for row in arm["rows"]:
            if row["target"] != "members" or row["metric"] not in PAIRED or row["stream"] != 1:
                continue
            key = arm["name"], row["attack"], row["metric"]
            csv_path = root / arm["path"] / "scores.csv"
            values[key] = client_values(csv_path, row["attack"], "members", row["metric"], arm["form"])
            facts[row["attack"], row["metric"]] = row
    found: list[Difference] = []
    for (attack, metric), row in facts.items():
        for reference in (name for name in REFERENCES if (name, attack, metric) in values):
            for arm in arms:
                key = arm["name"], attack, metric
                if arm["name"] == reference or key not in values:
                    continue
                value, interval, n = difference(values[key], values[reference, attack, metric])
                found.append(
                    Difference(
                        arm=arm["name"], reference=reference, attack=attack, target="members", metric=metric,
                        unit=row["unit"], more_leakage=row["more_leakage"], value=value,
                        ci95=cast(Any, interval), n_clusters=n, interval_unit="client" if interval else "none",
                    )
                )  # fmt: skip
    return found


def make_lowering(arms: Sequence[Arm], root: Path, reference: str) -> list[Any]:
    """What each other arm would change for clients of the reference arm, by the strongest attackers."""

    def values_of(arm: Any, row: Any) -> dict[int, float]:
        path = root / arm["path"] / "scores.csv"
        return client_values(path, row["attack"], row["target"], row["metric"], arm["form"], row["stream"])

    return of_comparison(arms, reference, values_of)


def folders_of(arms: Sequence[str], root: Path) -> dict[str, Path]:
    """Where each arm has its run folder."""
    return {name: root / "arms" / name.replace(":", "-") for name in arms}


def compare_command(arms: Mapping[str, AuditConfig]) -> str:
    """The command that makes a comparison of these arms.

    >>> compare_command(arms_of(AuditConfig(rounds=9, precision="fp32"), ["prototype", "raw"], own_system=False))
    'audit compare --form prototype --rounds 9 --precision fp32 --forms prototype,raw'
    """
    chosen = [] if tuple(arms) == DEFAULT_FORMS else ["--forms", ",".join(arms)]
    return " ".join([command_line(arms[trainer(list(arms))], "compare"), *chosen])


def train_arms(arms: dict[str, AuditConfig], root: Path, *, quiet: bool) -> dict[str, Run]:
    """Train once and record every arm from the same trajectory; what is complete is not trained again."""
    from fedre_audit import pipeline
    from fedre_audit.stages import train as training
    from fedre_audit.stages.prepare import prepare

    first = trainer(list(arms))
    refuse_other_forms(list(arms), root)
    pipeline.set_up_torch(arms[first])
    prepared = prepare(arms[first], quiet=quiet)
    runs = {name: open_run(path, arms[name]) for name, path in folders_of(list(arms), root).items()}
    for run in runs.values():
        training.check_images(run, prepared)
    command = compare_command(arms)
    missing = [name for name, run in runs.items() if not run.has(training.DONE)]
    if missing:
        others = [runs[name] for name in missing if name != first]
        half = runs[first].has(training.DONE) and all(other.has("uploads") for other in others)  # interrupted
        if len(missing) < len(runs) and not half:
            raise AuditError(f"{root} was trained for other --forms; name the same ones, or choose another --out")
        begun = {"forms": sorted(arms), "trainer": first}
        write_bytes(root / TRAINED, (json.dumps(begun) + "\n").encode())
        training.train(runs[first], prepared, quiet=quiet, others=others)
        for other in others:
            share_training(runs[first], other)
            write_bytes(other.path / COMMAND_FILE, (command + "\n").encode())
            training.write_manifest(other, prepared)
    return runs


def run_arms(arms: dict[str, AuditConfig], root: Path, *, own_system: bool, quiet: bool) -> dict[str, Run]:
    """Train once (or each by its own system), attack and score every arm; what is complete is not run again.

    Arms of one training share what is the same in all: fitted attackers, the raw ceiling, the evaluator, the checks.
    """
    from fedre_audit import pipeline
    from fedre_audit.stages import attack as attacking
    from fedre_audit.stages.prepare import prepare

    if own_system:
        folders = folders_of(list(arms), root)
        return {name: pipeline.audit(config, folders[name], quiet=quiet) for name, config in arms.items()}
    runs = train_arms(arms, root, quiet=quiet)
    prepared = prepare(arms[trainer(list(arms))], quiet=quiet)  # the same images and parts for every arm
    if due := [run for run in runs.values() if not run.has(attacking.DONE)]:
        attacking.attack(due[0], prepared, quiet=quiet, others=due[1:])
    kept: dict[Any, Any] = {}
    for run in runs.values():
        pipeline.audit(run.config, run.path, quiet=quiet, kept=kept, prepared=prepared)
    return runs


def compare(
    config: AuditConfig | None = None,
    *,
    out: str | Path | None = None,
    forms: Sequence[str] = DEFAULT_FORMS,
    own_system: bool = False,
    quiet: bool = True,
    **options: Any,
) -> ComparisonResult:
    """Audit every form of `forms` on the same clients, images, seeds and attackers, and write one page.

    config or options: an AuditConfig, or its keys. forms: 'raw', 'prototype', 'entangled:MECHANISM[:fixed]'.
    own_system: each form trains its own system, as published; else all are recorded from one training.
    Raises AuditError on bad input. A comparison that was interrupted goes on where it stopped.
    """
    base = config or AuditConfig(**options)
    arms = arms_of(base, forms, own_system)
    first = arms[trainer(list(arms))]
    name = f"{base.dataset.rsplit('/', 1)[-1]}-compare-{config_sha256(first)[:10]}".replace(":", "-")
    root = Path(out) if out else Path("runs") / name
    started = time.perf_counter()
    with lock_run(root, mark="arms"):
        runs = run_arms(arms, root, own_system=own_system, quiet=quiet)
        made = [make_arm(name, run, root) for name, run in runs.items()]
        trained = trainer(list(arms))
        reference = reference_of(made, trained)
        scores = load_scores(runs[trained].path / "scores.json")
        comparison = Comparison(
            schema_version=COMPARE_SCHEMA_VERSION,
            run={**scores["run"], "command": compare_command(arms)},
            volatile={
                "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "seconds": {"this call": round(time.perf_counter() - started, 2)},
            },
            dataset=scores["dataset"],
            clients=scores["federation"]["clients"],
            rounds=scores["federation"]["rounds"],
            shared_training=not own_system,
            arms=made,
            differences=make_differences(made, root),
            lowering=make_lowering(made, root, reference),
            reference_arm=reference,
            trained_arm=trained,
        )
        write_bytes(root / "compare.json", dump_comparison(comparison).encode())
        write_comparison(root)
    return ComparisonResult(root)

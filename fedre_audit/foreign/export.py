"""What the server of a run saw, and nothing else: to hand to somebody who may attack but not know."""

import shutil
from pathlib import Path

import yaml

from fedre_audit.runs import existing_run
from knowledge_forms.check import BROADCAST, check
from knowledge_forms.errors import AuditError
from knowledge_forms.store import write_bytes

SHARED = ("form", "mechanism", "weight_law", "weights", "mapping", "system", "clients", "rounds", "participation",
          "broadcast", "feature_width", "local_epochs")  # fmt: skip
"""Keys of the configuration that an attacker may know. Seed, data set and partition would give the images away."""


def export(run_dir: Path, out: Path) -> list[str]:
    """Copy the audited form's uploads and the broadcasts; lines that say what was copied and what was left out.

    Uploads of other forms are left out: the raw ones were recorded for the ceiling and never reached a server.
    """
    run = existing_run(run_dir)
    source = run.path / "uploads"
    if run.config.seeds is not None:
        parts = ", ".join(str(run.path / f"seed-{seed}") for seed in run.config.seeds)
        raise AuditError(f"{run.path} holds a federation for each seed; export each by itself: {parts}")
    if not (source / run.config.form).is_dir():
        raise AuditError(f"{source / run.config.form} does not exist; finish the training of this run first")
    for form in (run.config.form, BROADCAST):
        if (source / form).is_dir():
            for path in sorted((source / form).glob("*.safetensors")):
                target = out / form / path.name
                try:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, target)
                except OSError as error:
                    raise AuditError(
                        f"cannot copy {path} to {target} ({error.strerror}); free space or choose another --out"
                    ) from error
    shared = {key: value for key in SHARED if (value := getattr(run.config, key, None)) is not None}
    write_bytes(out / "config.yaml", yaml.safe_dump(shared, sort_keys=False).encode())
    checked = check([out])
    if checked.problems:
        raise AuditError(f"the exported uploads have a problem: {checked.problems[0]}; record the run again")
    left = sorted(p.name for p in run.path.iterdir() if p.name not in ("uploads", "config.yaml") and p.name[0] != ".")
    others = sorted(p.name for p in source.iterdir() if p.name not in (run.config.form, BROADCAST))
    return [f"copied: {checked.files} files of {run.config.form} uploads and broadcasts",
            f"left out: {', '.join([*left, *(f'uploads/{name}' for name in others)])}, seed and data set"]  # fmt: skip

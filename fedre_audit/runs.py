"""The run folder: where every stage reads and writes; one folder holds one configuration and serves one process."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_type_hints

import yaml

from fedre_audit.config import CONFIG_KEYS, INDIFFERENT, AuditConfig, config_sha256, resolve
from knowledge_forms.errors import AuditError
from knowledge_forms.store import write_bytes
from reports.schema import type_problems

LOCK = ".lock"
OUTPUTS = {
    "train": ("manifest.json", "clients", "history.jsonl", "uploads", "truth", "images.json"),
    "attack": ("attacks/complete.json", "attacks"),
    "score": ("scores.json", "scores.csv", "strips"),
    "report": ("report.html",),
}
"""What each stage writes, in stage order; first the file whose presence says that the stage is complete."""


@dataclass(frozen=True)
class Run:
    """One run folder and the resolved configuration it holds."""

    path: Path
    config: AuditConfig

    @cached_property
    def sha256(self) -> str:
        """Hash of the configuration."""
        return config_sha256(self.config)

    def write_json(self, name: str, value: Any) -> None:
        """`value` as JSON to `name` in the run folder, atomically."""
        write_bytes(self.path / name, (json.dumps(value, indent=1) + "\n").encode())

    def read_json(self, name: str, *keys: str) -> Any:
        """JSON of `name`; AuditError where the stage that writes it has not run, or where it lacks one of `keys`."""
        path = self.path / name
        if not path.is_file():
            raise AuditError(f"{path} is missing; run the stage that writes it first (see `audit --help`)")
        try:
            value = json.loads(path.read_text())
        except ValueError as error:
            raise AuditError(f"{path} is not valid JSON ({error}); delete it and run its stage again") from error
        lacking = [key for key in keys if not (isinstance(value, dict) and key in value)]
        if lacking:
            raise AuditError(f"{path} lacks {', '.join(lacking)}; delete it and run its stage again")
        return value

    def has(self, name: str) -> bool:
        """Whether a stage's last file is there: it is written last and whole, so the stage is complete."""
        return (self.path / name).exists()

    def clear(self, stage: str) -> None:
        """Remove what a stage and those after it wrote, last first: a cut in between leaves earlier stages whole."""
        stages = list(OUTPUTS)
        for name in reversed(stages[stages.index(stage) :]):
            for output in OUTPUTS[name]:
                path = self.path / output
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)


@contextmanager
def lock_run(path: Path, *, mark: str = "config.yaml") -> Iterator[None]:
    """Hold a run folder, made where it is missing, for this process alone; the system lets go when the process dies.

    AuditError where another process holds it, where it is no run folder, and where it cannot be written.
    What a killed process left half written is removed.
    """
    refuse_foreign(path, mark)
    try:
        path.mkdir(parents=True, exist_ok=True)
        # Unbuffered: what a full disk refuses must not be tried again, and raised again, on closing.
        stream = (path / LOCK).open("ab+", buffering=0)
    except OSError as error:
        raise AuditError(f"cannot write in {path} ({error.strerror}); choose another --out") from error
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            stream.truncate(0)
            stream.write(f"{os.getpid()}\n".encode())
            for left in path.rglob(".*.part"):
                left.unlink(missing_ok=True)
        except BlockingIOError:
            stream.seek(0)
            holder = stream.read().decode(errors="replace").strip()
            raise AuditError(
                f"{path} is in use by another audit (process {holder}); wait for it or choose another --out"
            ) from None
        except OSError as error:
            raise AuditError(f"cannot write in {path} ({error.strerror}); choose another --out") from error
        yield


def refuse_foreign(path: Path, mark: str = "config.yaml") -> None:
    """AuditError where a path holds something that is not a run (nor whatever `mark` is the mark of)."""
    try:
        if (path / mark).exists() or not path.exists():
            return
        foreign = not path.is_dir() or any(found.name != LOCK for found in path.iterdir())
    except OSError as error:
        raise AuditError(f"cannot look into {path} ({error.strerror}); choose another --out") from error
    if foreign:
        raise AuditError(f"{path} exists and is not a run folder; choose another --out")


def default_path(config: AuditConfig) -> Path:
    """runs/<data set>-<form>-<configuration hash>."""
    name = "".join(letter if letter.isalnum() else "-" for letter in config.dataset.rsplit("/", 1)[-1])
    return Path("runs") / f"{name}-{config.form}-{config_sha256(config)[:10]}"


def open_run(path: Path, config: AuditConfig) -> Run:
    """Start or resume a run folder; AuditError names the keys that differ from what the folder already holds."""
    if (path / "config.yaml").exists():
        held = read_config(path)
        differing = [
            key for key in CONFIG_KEYS if key not in INDIFFERENT and getattr(held, key) != getattr(config, key)
        ]
        if differing:
            what = ", ".join(f"{key} ({getattr(held, key)} there, {getattr(config, key)} asked)" for key in differing)
            raise AuditError(f"{path} holds a run with another configuration: {what}; choose another --out")
    else:
        refuse_foreign(path)
        write_bytes(path / "config.yaml", yaml.safe_dump(asdict(config), sort_keys=False).encode())
    return Run(path, config)


def read_config(path: Path) -> AuditConfig:
    """The configuration of an existing run folder."""
    file = path / "config.yaml"
    try:
        content = file.read_bytes() if file.is_file() else None
    except OSError as error:
        raise AuditError(f"cannot read {file} ({error.strerror}); mend the folder's permissions") from error
    if content is None:
        raise AuditError(f"{path} is not a run folder (no config.yaml); give the folder that `audit --out` made")
    try:
        values = yaml.safe_load(content.decode())
    except (yaml.YAMLError, ValueError) as error:  # ValueError: no UTF-8, or a date such as 2021-99-99
        raise AuditError(f"{file} is not valid YAML; restore it or start a new run") from error
    unknown = sorted(set(values) - set(CONFIG_KEYS)) if isinstance(values, dict) else ["(not a mapping)"]
    if unknown:
        raise AuditError(f"{file} has unknown keys: {', '.join(unknown)}; remove them or start a new run")
    hints = get_type_hints(AuditConfig)
    wrong = [problem for key, value in values.items() for problem in type_problems(value, hints[key], key)]
    if wrong:
        raise AuditError(f"{file}: {'; '.join(wrong)}; restore it or start a new run")
    return AuditConfig(**values)


def existing_run(path: Path) -> Run:
    """An existing run folder with the configuration it holds."""
    return Run(path, resolve(read_config(path)))

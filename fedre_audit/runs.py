"""The run folder: where every stage reads and writes, and the rule that one folder holds one configuration."""

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from fedre_audit.config import CONFIG_KEYS, AuditConfig, config_sha256
from knowledge_forms.errors import AuditError
from knowledge_forms.store import write_bytes

NOT_COMPARED = ("data_root",)


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

    def read_json(self, name: str) -> Any:
        """JSON of `name` in the run folder; AuditError where the stage that writes it has not run."""
        path = self.path / name
        if not path.is_file():
            raise AuditError(f"{path} is missing; run the stage that writes it first (see `audit --help`)")
        try:
            return json.loads(path.read_text())
        except ValueError as error:
            raise AuditError(f"{path} is not valid JSON ({error}); delete it and run its stage again") from error

    def has(self, name: str) -> bool:
        """Whether a stage's last file is there: it is written last and whole, so the stage is complete."""
        return (self.path / name).exists()


def default_path(config: AuditConfig) -> Path:
    """runs/<data set>-<form>-<configuration hash>."""
    name = "".join(letter if letter.isalnum() else "-" for letter in config.dataset.rsplit("/", 1)[-1])
    return Path("runs") / f"{name}-{config.form}-{config_sha256(config)[:10]}"


def open_run(path: Path, config: AuditConfig) -> Run:
    """Start or resume a run folder; AuditError names the keys that differ from what the folder already holds."""
    if (path / "config.yaml").exists():
        held = read_config(path)
        differing = [
            key for key in CONFIG_KEYS if key not in NOT_COMPARED and getattr(held, key) != getattr(config, key)
        ]
        if differing:
            what = ", ".join(f"{key} ({getattr(held, key)} there, {getattr(config, key)} asked)" for key in differing)
            raise AuditError(f"{path} holds a run with another configuration: {what}; choose another --out")
    elif path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise AuditError(f"{path} exists and is not a run folder; choose another --out")
    else:
        write_bytes(path / "config.yaml", yaml.safe_dump(asdict(config), sort_keys=False).encode())
    return Run(path, config)


def read_config(path: Path) -> AuditConfig:
    """The configuration of an existing run folder."""
    file = path / "config.yaml"
    if not file.is_file():
        raise AuditError(f"{path} is not a run folder (no config.yaml); give the folder that `audit --out` made")
    try:
        values = yaml.safe_load(file.read_text())
    except yaml.YAMLError as error:
        raise AuditError(f"{file} is not valid YAML; restore it or start a new run") from error
    unknown = sorted(set(values) - set(CONFIG_KEYS)) if isinstance(values, dict) else ["(not a mapping)"]
    if unknown:
        raise AuditError(f"{file} has unknown keys: {', '.join(unknown)}; remove them or start a new run")
    return AuditConfig(**values)


def existing_run(path: Path) -> Run:
    """An existing run folder with the configuration it holds."""
    return Run(path, read_config(path))

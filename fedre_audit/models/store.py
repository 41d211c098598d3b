"""Client models on disk: `clients/client-000.safetensors` each, and `clients/models.json` saying what they are."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import torch
from numpy.typing import NDArray
from torch import nn

from fedre_audit.models.base import ClientModel, build_model
from knowledge_forms.errors import AuditError
from knowledge_forms.store import read_tensors, write_bytes, write_tensors
from reports.schema import type_problems


class Description(TypedDict):
    """What `models.json` says."""

    models: list[str]
    image_shape: list[int]
    num_classes: int
    feature_width: int
    mapping: str


def state_arrays(model: nn.Module) -> dict[str, NDArray[Any]]:
    """Every parameter and buffer as a NumPy array."""
    return {name: value.detach().cpu().numpy() for name, value in model.state_dict().items()}


def load_arrays(model: nn.Module, arrays: Mapping[str, NDArray[Any]], source: Path) -> None:
    """Put `state_arrays` back; raises AuditError where names or shapes do not fit the model."""
    state = model.state_dict()
    missing = sorted(set(state) ^ set(arrays))
    if missing:
        raise AuditError(f"{source} does not fit its model (differs in '{missing[0]}'); record the run again")
    wrong = sorted(name for name in state if state[name].numel() != arrays[name].size)
    if wrong:
        raise AuditError(f"{source}: '{wrong[0]}' has the wrong size for its model; record the run again")
    # Scalars come back as one-element arrays, hence the reshape.
    model.load_state_dict({name: torch.from_numpy(arrays[name].copy()).reshape(state[name].shape) for name in state})


def save_clients(run_dir: Path, models: Sequence[ClientModel]) -> None:
    """Write all client models of a run; `models.json` comes last, so its presence means all are there."""
    folder = run_dir / "clients"
    for client, model in enumerate(models):
        write_tensors(folder / f"client-{client:03d}.safetensors", state_arrays(model), {"model": model.name})
    first = models[0]
    description: Description = {
        "models": [model.name for model in models],
        "image_shape": list(first.image_shape),
        "num_classes": first.classifier.out_features,
        "feature_width": first.classifier.in_features,
        "mapping": first.mapping,
    }
    write_bytes(folder / "models.json", (json.dumps(description, indent=2) + "\n").encode())


def read_description(path: Path) -> Description:
    """`models.json`; AuditError where it is missing, cut off or not what `save_clients` writes."""
    if not path.is_file():
        raise AuditError(f"{path} does not exist; finish the training of this run first")
    try:
        described: Description = json.loads(path.read_bytes())
    except ValueError as error:
        raise AuditError(f"{path} is not valid JSON ({error}); record the run again") from error
    problems = list(type_problems(described, Description, path.name))
    if not problems:
        sizes = [*described["image_shape"], described["num_classes"], described["feature_width"]]
        if len(sizes) != 5 or min(sizes) < 1:
            problems = ["image_shape must be three sizes; they, num_classes and feature_width at least 1"]
    if problems:
        raise AuditError(f"{path} is damaged ({'; '.join(problems)}); record the run again")
    return described


def load_clients(run_dir: Path) -> list[ClientModel]:
    """The client models of a finished run, in client order, in eval mode, on the CPU."""
    path = run_dir / "clients" / "models.json"
    described = read_description(path)
    channels, height, width = described["image_shape"]
    models = []
    for client, name in enumerate(described["models"]):
        model = build_model(
            name,
            (channels, height, width),
            described["num_classes"],
            described["feature_width"],
            seed=0,
            mapping=described["mapping"],
        )
        source = path.with_name(f"client-{client:03d}.safetensors")
        load_arrays(model, read_tensors(source)[0], source)
        models.append(model.eval())
    return models

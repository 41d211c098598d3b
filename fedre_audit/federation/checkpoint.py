"""The whole state of a federation between two rounds: client tensors, the server's classifier, the next round.

Nothing else is needed: every draw derives from (seed, purpose, round, client).
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from fedre_audit.models.base import ClientModel
from fedre_audit.models.store import load_arrays, state_arrays
from knowledge_forms.base import Classifier
from knowledge_forms.errors import AuditError
from knowledge_forms.store import read_tensors, write_tensors


def save_state(
    path: Path, models: Sequence[ClientModel], server: Classifier | None, next_round: int, config_sha256: str
) -> None:
    """Write `clients/state.safetensors`: keys client-000/<name> and server/weight, server/bias."""
    tensors = {
        f"client-{client:03d}/{name}": value
        for client, model in enumerate(models)
        for name, value in state_arrays(model).items()
    }
    if server is not None:
        tensors |= {"server/weight": server.weight.numpy(), "server/bias": server.bias.numpy()}
    write_tensors(path, tensors, {"next_round": next_round, "config_sha256": config_sha256})


def load_state(path: Path, models: Sequence[ClientModel], config_sha256: str) -> tuple[Classifier | None, int]:
    """Fill the models from a checkpoint; returns the server's classifier and the next round."""
    tensors, metadata = read_tensors(path)
    if metadata.get("config_sha256") != config_sha256:
        raise AuditError(f"{path} was made with another configuration; choose another --out")
    for client, model in enumerate(models):
        prefix = f"client-{client:03d}/"
        own = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
        load_arrays(model, own, path)
    if "server/weight" not in tensors:
        return None, metadata["next_round"]
    weight, bias = (torch.from_numpy(tensors[f"server/{name}"]) for name in ("weight", "bias"))
    return Classifier(weight, bias), metadata["next_round"]

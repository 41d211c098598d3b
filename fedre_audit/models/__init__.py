"""Client models, one file a kind, found by the registries MODELS and FAMILIES."""

from fedre_audit.models.base import (
    FAMILIES,
    MODELS,
    ClientModel,
    as_encoder,
    build_clients,
    build_model,
    check_width,
    evaluating,
)
from fedre_audit.models.store import load_clients, save_clients

__all__ = [
    "FAMILIES",
    "MODELS",
    "ClientModel",
    "as_encoder",
    "build_clients",
    "build_model",
    "check_width",
    "evaluating",
    "load_clients",
    "save_clients",
]

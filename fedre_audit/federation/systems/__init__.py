"""Federated systems, one file each. Importing this package fills the registry SYSTEMS."""

from fedre_audit.federation.systems import fedre, local  # noqa: F401 (registers)
from fedre_audit.federation.systems.base import SYSTEMS, System

__all__ = ["SYSTEMS", "System"]

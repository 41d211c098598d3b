"""Federated systems, one file each, found by the registry SYSTEMS."""

from fedre_audit.federation.systems.base import SYSTEMS, System

__all__ = ["SYSTEMS", "System"]

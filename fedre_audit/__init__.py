"""fedre-audit: what a client leaks when it uploads representations, prototypes or entangled representations.

>>> from fedre_audit import audit, compare
>>> result = audit(form="prototype", clients=4, out="runs/mine")  # doctest: +SKIP
>>> result.verdict, result.report  # doctest: +SKIP
"""

import importlib
from typing import Any

__version__ = "0.1.0"
DOOR = {"audit": "fedre_audit.audit", "compare": "fedre_audit.door", "Recorder": "fedre_audit.record"}
"""Public name -> module that is imported when the name is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in DOOR:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    module = importlib.import_module(DOOR[name])
    return module if name == "audit" else getattr(module, name)

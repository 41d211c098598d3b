"""Strips name their clients in the order of the pictures."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fedre_audit.audit.scoring import ATTACK
from fedre_audit.stages import strips


@pytest.mark.parametrize(
    ("clients", "said"), [([2, 5, 1], "5 (best), 1 (median), 2 (worst)"), ([3, 3, 3], "3"), ([4, 4, 1], "4 (best), 1")]
)
def test_whose_picture_is_whose(clients, said, monkeypatch):
    monkeypatch.setattr(strips, "rank_pictures", lambda *_: [])
    table = SimpleNamespace(client=np.array(clients), values={ATTACK: {"psnr": np.array([10.0, 15.0, 12.0])}})
    scored: Any = SimpleNamespace(table=table, form="raw", attack="ridge", stream=1)
    run: Any = None
    assert strips.strip(run, {}, scored)["client"].startswith(said)

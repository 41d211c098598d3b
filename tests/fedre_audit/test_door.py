"""`from fedre_audit import audit, compare`: light to import, checked like the command line, results in hand."""

import subprocess
import sys

import pytest
import torch
from torch import nn

import fedre_audit
from fedre_audit import audit
from fedre_audit.door import make_config
from fedre_audit.models.base import FAMILIES, MODELS
from knowledge_forms.errors import AuditError

TINY = {"clients": 3, "rounds": 3, "private_images": 150, "auxiliary_images": 100}


def test_the_import_loads_no_torch():
    code = "from fedre_audit import audit, compare; import sys; assert callable(audit) and callable(compare); "
    assert subprocess.run([sys.executable, "-c", code + "assert 'torch' not in sys.modules"]).returncode == 0


def test_the_package_of_that_name_is_the_function_too():
    from fedre_audit.audit.intervals import estimate

    assert callable(estimate)
    assert callable(audit)
    assert callable(fedre_audit.audit)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = fedre_audit.nonsense


def test_every_bad_option_is_named_at_once():
    with pytest.raises(
        AuditError, match=r"2 problems: .*unknown option 'clints'.*--clients many: must be a whole number"
    ):
        audit(clints=3, clients="many")
    with pytest.raises(AuditError, match="--rounds is 0"):
        audit(rounds=0)
    assert make_config({"form": "raw", "attacks": ["ridge"]}).form == "raw"


def test_a_prototype_audit_of_its_own_system_with_absent_clients(tmp_path):
    result = audit(**TINY, form="prototype", own_system=True, participation=0.67, mapping="MP", out=tmp_path / "run")
    assert result.scores["federation"]["system"] == "fedgh"
    assert result.verdict == result.scores["verdict"]["level"]
    assert result.report == tmp_path / "run" / "report.html"
    assert result.report.is_file()


class Flat(nn.Module):
    """Answers every image alike."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = nn.Parameter(torch.ones(16))

    def forward(self, images):
        return 0 * images.flatten(1)[:, :16] + self.answer


def test_a_federation_of_collapsed_encoders_is_audited_and_flagged(tmp_path, monkeypatch):
    monkeypatch.setitem(MODELS._all(), "flat", lambda image_shape: Flat())
    monkeypatch.setitem(FAMILIES._all(), "flat", ("small_cnn", "flat"))
    result = audit(**TINY, family="flat", out=tmp_path / "run")
    flagged = [flag["client"] for flag in result.scores["flags"] if flag["kind"] == "encoder_collapsed"]
    assert flagged == [1]
    assert "answers every image alike" in result.report.read_text()

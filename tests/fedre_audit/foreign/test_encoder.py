"""Foreign encoders: handled, or named clearly."""

import re
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from fedre_audit.foreign.encoder import load_encoder
from fedre_audit.models import as_encoder
from knowledge_forms.errors import AuditError
from tests.fedre_audit.foreign import encoders
from tests.fedre_audit.foreign.encoders import WIDTH

HERE = "tests.fedre_audit.foreign.encoders"


def load(name: str, shape=(1, 28, 28), weights=None, width=WIDTH):
    return load_encoder(f"{HERE}:{name}", weights, 0, shape, 10, width)


@pytest.mark.parametrize(
    ("name", "shape", "said"),
    [
        ("grey28", (1, 28, 28), None),
        ("colour48", (3, 48, 48), None),
        ("pair", (1, 28, 28), "returns 2 things; the first"),
        ("four_d", (1, 28, 28), "flattened"),
        ("dropped", (1, 28, 28), "left in train mode"),
        ("constant", (1, 28, 28), "answers different images alike"),
    ],
)
def test_handled_and_said(name, shape, said):
    model, notes = load(name, shape)
    assert (notes == []) if said is None else any(said in note for note in notes), notes
    images = torch.rand(3, *shape)
    encoder = as_encoder(model)
    assert encoder(images).shape == (3, WIDTH)
    torch.testing.assert_close(encoder(images), encoder(images))


@pytest.mark.parametrize(
    ("name", "shape", "named"),
    [
        ("grey28", (3, 28, 28), "cannot answer images 3x28x28"),
        ("colour48", (3, 32, 32), "cannot answer images 3x32x32"),
        ("dictionary", (1, 28, 28), "returns dict"),
        ("maps", (1, 28, 28), "into 288 numbers, the uploads have 32"),
        ("noisy", (1, 28, 28), "differently each time"),
        ("of_batch", (1, 28, 28), "in another batch"),
        ("not_a_number", (1, 28, 28), "NaN or infinity"),
        ("asserting", (1, 28, 28), "cannot answer images 1x28x28 \\(colour only"),
        ("keyed", (1, 28, 28), "cannot answer images 1x28x28"),
        ("no_module", (1, 28, 28), "returns int"),
        ("nothing", (1, 28, 28), "has no function"),
    ],
)
def test_named_clearly(name, shape, named):
    with pytest.raises(AuditError, match=named):
        load(name, shape)
    with pytest.raises(AuditError, match="cannot import"):
        load_encoder("no.such.module:f", None, 0, shape, 10, WIDTH)


def test_weights_are_filled_in_by_client_and_must_fit(tmp_path):
    trained = encoders.grey28()
    save_file(trained.state_dict(), tmp_path / "w-0.safetensors")
    model, _ = load("grey28", weights=str(tmp_path / "w-{client}.safetensors"))
    images = torch.rand(2, 1, 28, 28)
    torch.testing.assert_close(model.represent(images), trained(images), atol=0, rtol=0)
    save_file({"x": torch.zeros(1)}, tmp_path / "w-0.safetensors")
    with pytest.raises(AuditError, match="does not fit its model"):
        load("grey28", weights=str(tmp_path / "w-{client}.safetensors"))
    with pytest.raises(AuditError, match="does not exist"):
        load("grey28", weights=str(tmp_path / "none.safetensors"))
    assert np.isfinite(model.represent(images).detach().numpy()).all()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def f(:", "importing broken raised SyntaxError: invalid syntax"),
        ("raise KeyError('x')", "importing broken raised KeyError: 'x'"),
        ("import sys; sys.exit(2)", "importing broken raised SystemExit: 2"),
        (
            "def f(): raise FileNotFoundError('w.pt\\n not there')",
            "f raised FileNotFoundError: w.pt not there; mend it",
        ),
        ("def f(a): return a", "f raised TypeError: "),
    ],
)
def test_what_the_factorys_own_code_raises_is_one_sentence_with_its_cause(tmp_path, monkeypatch, code, said):
    (tmp_path / "broken.py").write_text(code + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    with pytest.raises(AuditError, match=re.escape(f"--encoder broken:f: {said}")) as raised:
        load_encoder("broken:f", None, 0, (1, 28, 28), 10, WIDTH)
    assert "\n" not in str(raised.value)
    assert raised.value.__cause__ is not None

"""The server step against a loop written from the formula."""

import numpy as np
import pytest
import torch

from fedre_audit.federation.server import server_step
from knowledge_forms.base import Classifier


@pytest.mark.parametrize(("m", "batch_size", "epochs"), [(10, 32, 1), (10, 4, 1), (7, 3, 2)])
def test_equals_the_closed_form_gradient(m, batch_size, epochs):
    draw = np.random.default_rng(0)
    r, y = draw.normal(size=(m, 6)), draw.dirichlet(np.ones(4), size=m)
    w, b = draw.normal(size=(4, 6)), draw.normal(size=4)
    as_tensor = [torch.from_numpy(a).float() for a in (w, b, r, y)]
    new, loss = server_step(Classifier(*as_tensor[:2]), *as_tensor[2:], lr=0.1, batch_size=batch_size, epochs=epochs)
    total = 0.0
    for _ in range(epochs):
        for start in range(0, m, batch_size):
            rows, soft = r[start : start + batch_size], y[start : start + batch_size]
            logits = rows @ w.T + b
            p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
            total -= (soft * np.log(p)).sum()
            w, b = w - 0.1 * (p - soft).T @ rows, b - 0.1 * (p - soft).sum(0)
    np.testing.assert_allclose(new.weight.numpy(), w, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(new.bias.numpy(), b, rtol=1e-4, atol=1e-5)
    assert loss == pytest.approx(total / (epochs * m), rel=1e-4)


def test_leaves_the_old_classifier_alone():
    old = Classifier(torch.zeros(3, 2), torch.zeros(3))
    new, _ = server_step(old, torch.ones(1, 2), torch.tensor([[1.0, 0.0, 0.0]]), lr=0.5)
    assert not old.weight.any()
    assert new.weight.any()

"""The doubling convolution is torch's transposed convolution: same values, same gradients, one product quicker."""

import pytest
import torch
from torch import nn

from attacks import transposed
from attacks.transposed import DoublingConvolution, weight_gradient


def twins(before, after, dtype=torch.float32):
    torch.manual_seed(0)
    ours = DoublingConvolution(before, after).to(dtype)
    theirs = nn.ConvTranspose2d(before, after, 4, stride=2, padding=1).to(dtype)
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (3, 5, 4, 6), (9, 16, 7, 7)], ids=str)
@pytest.mark.parametrize("channels_last", [False, True])
def test_values_and_gradients_are_torchs(shape, channels_last, monkeypatch):
    ours, theirs = twins(shape[1], 3, torch.float64)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    x = torch.randn(shape, dtype=torch.float64).contiguous(memory_format=layout).requires_grad_()
    found, expected = ours(x), theirs(x)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    slope = torch.randn_like(expected)
    wanted = torch.autograd.grad(expected, [x, *theirs.parameters()], slope)
    for numbers in (transposed.UNFOLDED, 1):  # all at once, and image by image
        monkeypatch.setattr(transposed, "UNFOLDED", numbers)
        given = torch.autograd.grad(found, [x, *ours.parameters()], slope, retain_graph=True)
        for one, other in zip(given, wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_the_weight_gradient_is_that_of_a_naive_loop():
    torch.manual_seed(0)
    x, slope = torch.randn(2, 3, 2, 3), torch.randn(2, 4, 4, 6)
    expected = torch.zeros(3, 4, 4, 4)
    for i, j, ki, kj in torch.cartesian_prod(*map(torch.arange, (2, 3, 4, 4))).tolist():
        row, column = 2 * i + ki - 1, 2 * j + kj - 1
        if 0 <= row < 4 and 0 <= column < 6:
            expected[:, :, ki, kj] += x[:, :, i, j].T @ slope[:, :, row, column]
    torch.testing.assert_close(weight_gradient(x, slope, torch.float32), expected, rtol=1e-5, atol=1e-5)


def test_under_autocast_it_computes_in_bf16_and_sums_gradients_in_float32():
    ours, theirs = twins(32, 16)
    x = torch.randn(8, 32, 8, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, expected = ours(x), theirs(x)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    slope = torch.randn(expected.shape).bfloat16()
    given = torch.autograd.grad(found, list(ours.parameters()), slope)
    rounded = x.bfloat16().float(), slope.float()
    exact = torch.autograd.grad(theirs(rounded[0]), list(theirs.parameters()), rounded[1])
    for one, other in zip(given, exact, strict=True):
        assert one.dtype == torch.float32
        assert float((one - other).norm() / other.norm()) < 0.004  # half a bf16 step

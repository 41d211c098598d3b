"""The shorter way gives torch's own convolution: values, gradients, layout, and only where one position comes out."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from fedre_audit.models import build_model
from fedre_audit.models.single_position import SinglePositionConv2d, as_convolutions, as_matrix_products

CASES = [
    # in, out, kernel, stride, padding, groups, size
    (6, 4, 3, 1, 1, 1, (1, 1)),
    (6, 4, 3, 2, 1, 1, (2, 2)),
    (6, 4, 3, 2, 1, 1, (1, 2)),
    (6, 4, (1, 3), 1, (0, 1), 1, (1, 1)),
    (6, 4, 4, 1, 0, 1, (4, 4)),
    (6, 4, 7, 4, 3, 1, (3, 4)),
    (6, 6, 3, 1, 1, 6, (1, 1)),
    (6, 6, 3, 2, 1, 6, (2, 1)),
    (6, 4, 1, 2, 0, 1, (2, 2)),
    (6, 4, 3, 1, 1, 2, (1, 1)),
    (6, 4, 3, 1, 1, 1, (2, 2)),
    (6, 4, 3, 1, 2, 1, (1, 1)),
]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_and_gradients_are_those_of_the_convolution(case, bias):
    into, out, kernel, stride, padding, groups, size = case
    draw = torch.Generator().manual_seed(0)
    plain = nn.Conv2d(into, out, kernel, stride, padding, groups=groups, bias=bias).double()
    ours = copy.deepcopy(plain)
    as_matrix_products(ours)
    assert isinstance(ours, SinglePositionConv2d)
    x = torch.randn(5, into, *size, generator=draw, dtype=torch.float64)
    found = []
    for layer in (plain, ours):
        image = x.clone().requires_grad_()
        y = layer(image)
        (y * torch.arange(y.numel()).view_as(y)).sum().backward()
        found.append((y.detach(), image.grad, *(parameter.grad for parameter in layer.parameters())))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-12, atol=1e-12)


def test_the_gradient_keeps_the_layout_of_a_channels_last_weight():
    layer = nn.Conv2d(8, 4, 3, padding=1).to(memory_format=torch.channels_last)
    as_matrix_products(layer)
    layer(torch.ones(2, 8, 1, 1)).sum().backward()
    assert layer.weight.grad.stride() == layer.weight.stride()


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_a_network_is_the_same_function_with_fewer_operations(name):
    model = build_model(name, (3, 32, 32), 10, 512, seed=0).eval()
    images = torch.rand(3, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    states = list(model.state_dict())

    def run():
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            return model(images), counter.get_total_flops()

    short, fewer = run()
    as_convolutions(model)
    long, nominal = run()
    torch.testing.assert_close(short, long, rtol=1e-4, atol=1e-5)
    assert fewer < 0.95 * nominal
    assert list(model.state_dict()) == states

"""Filters are those of the paper, and so are the gradients of their gradients."""

import pytest
import torch

from gpu_backend.reference.upfirdn import double, upfirdn
from gpu_backend.training.networks.filters import DOUBLE, HALVE, SMOOTH_DOWN, SMOOTH_UP, Filter, filtered

TAPS = (0.125, 0.375, 0.375, 0.125)


def test_filters_are_those_of_the_paper() -> None:
    x = torch.randn(2, 3, 8, 6)
    torch.testing.assert_close(filtered(x, DOUBLE), double(x, TAPS), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(filtered(x, HALVE), upfirdn(x, TAPS, up=1, pads=(1, 1), gain=1.0)[:, :, ::2, ::2])
    torch.testing.assert_close(filtered(x, SMOOTH_UP), upfirdn(x, TAPS, up=1, pads=(1, 1), gain=4.0))
    torch.testing.assert_close(filtered(x, SMOOTH_DOWN), upfirdn(x, TAPS, up=1, pads=(2, 2), gain=1.0))


@pytest.mark.parametrize("by", [DOUBLE, HALVE, SMOOTH_UP, SMOOTH_DOWN, Filter("same", 0)], ids=str)
def test_gradients_of_any_order_are_right(by: Filter) -> None:
    x = torch.randn(1, 2, 6, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: filtered(x, by), x)
    assert torch.autograd.gradgradcheck(lambda x: filtered(x, by), x)


def test_low_precision_is_rounded_once() -> None:
    x = torch.randn(1, 2, 8, 8).to(torch.bfloat16)
    assert torch.equal(filtered(x, SMOOTH_UP), filtered(x.float(), SMOOTH_UP).to(torch.bfloat16))

"""Convolutions are torch's, with gradients of any order - and without those of weights where nobody wants them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gpu_backend.training.networks.convolution import POINTWISE, SAME, Geometry, convolve, no_weight_gradients

pytestmark = pytest.mark.usefixtures("one_thread")

CASES = {
    "same": (SAME, (2, 3, 4, 4), 3),
    "pointwise": (POINTWISE, (2, 3, 4, 4), 1),
    "down": (Geometry(2), (2, 3, 5, 5), 3),
    "up": (Geometry(2, transposed=True), (2, 4, 3, 3), 3),
}


class Kernels(TorchDispatchMode):
    """Notes the sides of the kernels of all convolutions."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.sides: list[int] = []
        self.weight_gradients = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.ops.aten.convolution.default:
            self.sides.append(args[1].shape[-1])
        if function is torch.ops.aten.convolution_backward.default:
            self.weight_gradients += args[-1][1]
        return function(*args, **(kwargs or {}))


@contextmanager
def kernels() -> Iterator[Kernels]:
    with Kernels() as noted:
        yield noted


@pytest.mark.parametrize("case", CASES)
def test_gradients_of_any_order_are_right(case: str) -> None:
    geometry, shape, kernel = CASES[case]
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(4, 3, kernel, kernel, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(convolve(x, weight, geometry), geometry.apply(x, weight))
    assert torch.autograd.gradcheck(lambda x, w: convolve(x, w, geometry), (x, weight))
    assert torch.autograd.gradgradcheck(lambda x, w: convolve(x, w, geometry), (x, weight))


def penalty(x: Tensor, weight: Tensor) -> Tensor:
    (gradient,) = torch.autograd.grad(convolve(x, weight, SAME).sin().sum(), x, create_graph=True)
    return gradient.square().sum()


def test_no_convolution_has_a_picture_for_a_kernel() -> None:
    x, weight = torch.randn(2, 3, 8, 8, requires_grad=True), torch.randn(4, 3, 3, 3, requires_grad=True)
    with kernels() as noted:
        penalty(x, weight).backward()
    assert set(noted.sides) == {3}


def test_an_inner_gradient_leaves_weights_out_and_the_outer_one_stays_right() -> None:
    x, weight = torch.randn(2, 3, 8, 8, requires_grad=True), torch.randn(4, 3, 3, 3, requires_grad=True)
    (expected,) = torch.autograd.grad(penalty(x, weight), weight)
    with kernels() as noted, no_weight_gradients():
        value = penalty(x, weight)
    assert noted.weight_gradients == 0
    (came,) = torch.autograd.grad(value, weight)
    torch.testing.assert_close(came, expected)

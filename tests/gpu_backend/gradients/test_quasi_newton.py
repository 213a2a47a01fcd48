"""L-BFGS: it finds minima that gradients alone do not, and survives values that are not finite."""

from collections.abc import Callable

import torch
from torch import Tensor

from gpu_backend.gradients.quasi_newton import QuasiNewton


def minimised(function: Callable[[Tensor], Tensor], start: Tensor, steps: int) -> tuple[Tensor, float]:
    search = QuasiNewton(start)
    best, least = start, float("inf")
    for _ in range(steps):
        point = search.point.clone().requires_grad_()
        value = function(point)
        (gradient,) = torch.autograd.grad(value, point)
        if float(value.detach()) < least:
            best, least = point.detach(), float(value.detach())
        search.take(float(value.detach()), gradient)
    return best, least


def test_the_minimum_of_a_long_valley_is_found() -> None:
    scales = torch.logspace(0, 3, 20, dtype=torch.float64)
    wanted = torch.linspace(-1, 1, 20, dtype=torch.float64)
    found, least = minimised(lambda x: (scales * (x - wanted).square()).sum(), torch.zeros(20).double(), 80)
    assert least < 1e-6
    torch.testing.assert_close(found, wanted, atol=1e-3, rtol=0)


def test_a_curved_valley_is_followed() -> None:
    def rosenbrock(x: Tensor) -> Tensor:
        return (100 * (x[1:] - x[:-1].square()).square() + (1 - x[:-1]).square()).sum()

    found, least = minimised(rosenbrock, torch.tensor([-1.2, 1.0], dtype=torch.float64), 120)
    assert least < 1e-6
    torch.testing.assert_close(found, torch.ones(2).double(), atol=1e-2, rtol=0)


def test_a_flat_place_ends_nothing() -> None:
    point, value = minimised(lambda x: 0.0 * x.sum(), torch.ones(3), 5)
    assert value == 0.0
    assert torch.isfinite(point).all()


def test_a_value_that_is_not_finite_is_stepped_back_from() -> None:
    def logarithm(x: Tensor) -> Tensor:
        return (x - x.log()).sum()  # not a number below 0; the minimum is at 1

    found, _ = minimised(logarithm, torch.tensor([0.02, 3.0], dtype=torch.float64), 60)
    torch.testing.assert_close(found, torch.ones(2).double(), atol=1e-3, rtol=0)

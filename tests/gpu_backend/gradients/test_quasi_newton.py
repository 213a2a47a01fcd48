"""L-BFGS: it finds minima that gradients alone do not, and survives values that are not finite."""

from collections.abc import Callable

import torch
from torch import Tensor

from gpu_backend.gradients.quasi_newton import QuasiNewton


def minimised(function: Callable[[Tensor], Tensor], start: Tensor, steps: int) -> tuple[Tensor, float]:
    search = QuasiNewton(start[None])
    best, least = start, float("inf")
    for _ in range(steps):
        point = search.point.clone().requires_grad_()
        value = function(point[0])
        (gradient,) = torch.autograd.grad(value, point)
        if float(value.detach()) < least:
            best, least = point[0].detach(), float(value.detach())
        search.take(value.detach()[None], gradient)
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


def test_functions_that_are_searched_together_do_not_touch_each_other() -> None:
    wanted = torch.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=torch.float64)
    scales = torch.tensor([[1.0, 200.0], [50.0, 0.1]], dtype=torch.float64)

    def searched(places: list[int], steps: int) -> Tensor:
        search = QuasiNewton(torch.zeros(len(places), 2).double())
        for _ in range(steps):
            point = search.point.clone().requires_grad_()
            values = (scales[places] * (point - wanted[places]).square()).sum(1)
            values = torch.where(torch.tensor(places) == 1, values + values.square(), values)
            (gradients,) = torch.autograd.grad(values.sum(), point)
            search.take(values.detach(), gradients)
        return search.point

    together = searched([0, 1], 12)
    torch.testing.assert_close(together[:1], searched([0], 12), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(together[1:], searched([1], 12), atol=1e-6, rtol=1e-6)

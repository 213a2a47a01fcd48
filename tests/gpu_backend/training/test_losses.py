"""Losses, penalties and the moving average against formulas written out by hand."""

import math

import pytest
import torch

from gpu_backend.training.ema import ema_beta, follow
from gpu_backend.training.losses import fake_loss, generator_loss, real_loss
from gpu_backend.training.metrics import DivergedError, Metrics
from gpu_backend.training.regularisers import PathLength, lazy_correction, path_lengths, r1_penalty


def test_losses_are_the_logarithms_of_the_sigmoid() -> None:
    logits = torch.tensor([-2.0, 0.5, 3.0])
    chance = 1 / (1 + torch.exp(-logits))
    torch.testing.assert_close(generator_loss(logits), -chance.log().mean())
    torch.testing.assert_close(real_loss(logits), -chance.log().mean())
    torch.testing.assert_close(fake_loss(logits), -(1 - chance).log().mean())


@pytest.mark.parametrize("scale", [1.0, 1024.0])
def test_r1_is_the_squared_gradient_and_can_be_differentiated(scale: float) -> None:
    # D(x) = a sum(x^2): the gradient is 2 a x, its square 4 a^2 sum(x^2), and the derivative of that by a 8 a sum(x^2).
    a = torch.tensor(0.3, requires_grad=True)
    x = torch.randn(4, 3, 5, 5, requires_grad=True)
    penalty = r1_penalty(x, a * x.square().sum((1, 2, 3)), scale)
    squares = x.detach().square().sum((1, 2, 3))
    torch.testing.assert_close(penalty, 4 * 0.09 * squares)
    (slope,) = torch.autograd.grad(penalty.sum(), a)
    torch.testing.assert_close(slope, 8 * 0.3 * squares.sum())


def test_path_lengths_are_those_of_a_linear_network() -> None:
    # picture = A w: J^T y = A^T y, divided by the root of the number of pixels.
    network = torch.randn(3 * 4 * 4, 6)
    ws = torch.randn(2, 1, 6, requires_grad=True)
    noise = torch.randn(2, 3, 4, 4)
    lengths = path_lengths((ws[:, 0] @ network.t()).reshape(2, 3, 4, 4), ws, noise)
    torch.testing.assert_close(lengths, (noise.reshape(2, -1) @ network / 4).norm(dim=1))


def test_the_mean_path_length_follows_and_the_penalty_is_the_distance_from_it() -> None:
    path = PathLength(torch.device("cpu"))
    penalty = path.penalty(torch.tensor([1.0, 3.0]))
    assert path.mean.item() == pytest.approx(0.02)
    assert penalty.item() == pytest.approx((0.98**2 + 2.98**2) / 2)
    path.penalty(torch.tensor([math.inf, 3.0]))
    assert path.mean.item() == pytest.approx(0.02)


def test_lazy_optimisers_are_slowed_by_the_rule_of_the_paper() -> None:
    rate, betas = lazy_correction(0.002, (0.0, 0.99), 16)
    assert rate == pytest.approx(0.002 * 16 / 17)
    assert betas == (0.0, pytest.approx(0.99 ** (16 / 17)))
    assert lazy_correction(0.002, (0.0, 0.99), 0) == (0.002, (0.0, 0.99))


def test_the_average_ramps_up_with_the_pictures_seen() -> None:
    assert ema_beta(32, 1_000_000, 10_000.0, 0.05) == pytest.approx(0.5 ** (32 / 10_000))
    assert ema_beta(32, 20_000, 10_000.0, 0.05) == pytest.approx(0.5 ** (32 / 1_000))
    assert ema_beta(32, 20_000, 10_000.0, 0.0) == pytest.approx(0.5 ** (32 / 10_000))
    assert ema_beta(32, 0, 10_000.0, 0.05) == 0.0


def test_the_average_moves_parameters_and_copies_buffers() -> None:
    average, network = torch.nn.BatchNorm1d(2), torch.nn.BatchNorm1d(2)
    with torch.no_grad():
        network.weight.fill_(3.0)
    network.running_mean = torch.tensor([7.0, 8.0])
    follow(average, network, 0.75)
    assert average.weight.tolist() == [1.5, 1.5]
    assert average.running_mean is not None
    assert average.running_mean.tolist() == [7.0, 8.0]


def test_metrics_are_averaged_and_a_nan_is_named_with_its_step() -> None:
    metrics = Metrics(frozenset({"the norm"}))
    for step, value in ((1, 2.0), (2, 4.0)):
        metrics.add(step, {"the loss": torch.tensor(value)})
    metrics.add(2, {"the norm": torch.tensor(math.inf)})
    assert metrics.means() == {"the loss": 3.0}
    assert metrics.means() == {}
    metrics.add(3, {"the loss": torch.tensor(1.0)})
    metrics.add(4, {"the penalty": torch.tensor(math.nan), "the loss": torch.tensor(math.nan)})
    with pytest.raises(DivergedError, match="the penalty became nan in step 4"):
        metrics.check()

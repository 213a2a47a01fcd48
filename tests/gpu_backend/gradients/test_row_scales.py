"""Units of a search's variables: they are those of the Jacobian, are measured once, and make searches shorter."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gpu_backend.gradients import row_scales
from gpu_backend.gradients.latents import latent_statistics, sample_w
from gpu_backend.gradients.network import DifferentiableNetwork, differentiable_network
from gpu_backend.gradients.projection import Projection
from gpu_backend.gradients.projection_settings import ProjectionSettings
from gpu_backend.gradients.row_scales import RowScales
from gpu_backend.gradients.time_limit import TimeLimit
from tests.helpers.networks import make_stylegan2


@pytest.fixture
def network() -> DifferentiableNetwork:
    return differentiable_network(make_stylegan2(resolution=16, channel_max=12, channel_base=512, w_dim=16, seed=2))


def axes_of(network: DifferentiableNetwork) -> Tensor:
    return latent_statistics(network, directions=network.spec.w_dim).directions


def test_units_are_one_before_they_are_measured_and_have_a_mean_of_one_afterwards(
    network: DifferentiableNetwork,
) -> None:
    scales = RowScales(network, axes_of(network))
    assert scales.units.unique().tolist() == [1.0]
    assert [done for done, _ in scales.measure()] == list(range(1, 9))
    assert scales.units.shape == (network.spec.num_ws, network.spec.w_dim)
    assert scales.units.log().mean().item() == pytest.approx(0.0, abs=1e-5)
    assert scales.shared_units.shape == (1, network.spec.w_dim)


def test_units_follow_the_jacobian_of_the_picture(
    network: DifferentiableNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_scales, "_PROBES", 200)
    monkeypatch.setattr(row_scales, "PSI", 0.0)
    monkeypatch.setattr(row_scales, "_NEIGHBOURS", 1)
    axes = axes_of(network)
    scales = RowScales(network, axes)
    list(scales.measure())
    mean = network.mean_w.expand(network.spec.num_ws, -1)
    jacobian = torch.autograd.functional.jacobian(lambda rows: network.picture(rows[None]).flatten(), mean)
    along_axes = jacobian @ axes.t()
    exact, shared = along_axes.square().sum(0), along_axes.sum(1, keepdim=True).square().sum(0)
    floor = row_scales.FLOOR
    products = (scales.units * exact.clamp(min=floor * exact.max()).sqrt()).log()
    assert products.std().item() < 0.1, "one over the root of the diagonal of J'J, up to a factor"
    of_all = (scales.shared_units * shared.clamp(min=floor * shared.max()).sqrt()).log()
    assert of_all.std().item() < 0.2
    assert of_all.mean().item() == pytest.approx(products.mean().item(), abs=0.1), "with the same factor"


def test_the_last_variables_move_all_rows_alike(network: DifferentiableNetwork) -> None:
    scales = RowScales(network, axes_of(network))
    coordinates = torch.randn(2, network.spec.num_ws, network.spec.w_dim, generator=torch.Generator().manual_seed(1))
    variables = scales.variables(coordinates)
    variables[:, -1] = 0.5
    assert scales.coordinates(variables).equal(coordinates), "before units are measured, rows move alone"
    list(scales.measure())
    variables = scales.variables(coordinates)
    torch.testing.assert_close(scales.coordinates(variables), coordinates)
    variables[:, -1] = 0.5
    moved = scales.coordinates(variables) - coordinates
    torch.testing.assert_close(moved, (0.5 * scales.shared_units).expand_as(moved))


def test_a_network_is_measured_once_and_what_is_limited_is_measured_again(network: DifferentiableNetwork) -> None:
    axes = axes_of(network)
    assert len(list(RowScales(network, axes).measure(TimeLimit(1e6)))) == 8
    first = RowScales(network, axes)
    assert len(list(first.measure())) == 8, "a limited measurement is not shared"
    again = RowScales(network, axes)
    assert list(again.measure()) == []
    torch.testing.assert_close(again.units, first.units)
    torch.testing.assert_close(again.shared_units, first.shared_units)


def test_without_time_for_four_passes_units_stay_one(network: DifferentiableNetwork) -> None:
    times = iter(range(100))
    scales = RowScales(network, axes_of(network))
    assert list(scales.measure(TimeLimit(3.0, lambda: float(next(times))))) == []
    assert scales.units.unique().tolist() == [1.0]
    scales = RowScales(network, axes_of(network))
    assert [wanted for _, wanted in scales.measure(TimeLimit(5.0, lambda: float(next(times))))] == [5] * 5


def test_measured_units_bring_known_pictures_nearer_in_as_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    network = differentiable_network(make_stylegan2(resolution=32, channel_max=12, channel_base=512, w_dim=16, seed=2))
    with torch.no_grad():
        rows = sample_w(network, 4, seed=7)[:, None].expand(-1, network.spec.num_ws, -1)
        known = network.picture(rows).clamp(-1, 1).numpy()

    def decibels() -> float:
        projection = Projection(network, known, ProjectionSettings(steps=60, candidates=16))
        while not projection.step().is_done:
            pass
        return float(np.mean(projection.psnr()))

    scaled = decibels()
    monkeypatch.setattr(row_scales, "logarithms", torch.zeros_like)
    row_scales._MEASURED.clear()
    assert scaled > decibels() + 1.0


def test_rows_that_also_move_together_come_nearer_from_an_encoders_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    network = differentiable_network(make_stylegan2(resolution=32, channel_max=12, channel_base=512, w_dim=16, seed=3))
    with torch.no_grad():
        w, others = sample_w(network, 4, seed=7), sample_w(network, 4, seed=8)
        known = network.picture(w[:, None].expand(-1, network.spec.num_ws, -1)).numpy()
    encoder: Any = SimpleNamespace(encode=lambda pictures: w + 0.3 * (others - w), scales=None)

    def loss() -> float:
        projection = Projection(network, known, ProjectionSettings(steps=40, candidates=8), encoder)
        while not projection.step().is_done:
            pass
        return projection.report.loss

    together = loss()
    measure = RowScales.measure

    def measured_alone(scales: RowScales, *arguments: Any) -> Iterator[tuple[int, int]]:
        yield from measure(scales, *arguments)
        scales.shared_units = torch.zeros_like(scales.shared_units)

    monkeypatch.setattr(RowScales, "measure", measured_alone)
    assert together < 0.7 * loss()


def test_units_are_measured_by_the_passes_of_the_search(
    network: DifferentiableNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Passes:
        runs = 0
        terms = None
        minimiser = network.minimiser

        def features(self, ws: Tensor, block: int) -> Tensor:
            return network.features(ws, block)

        def picture(self, ws: Tensor, resolution: int | None = None) -> Tensor:
            self.runs += 1
            return usual(ws, resolution)

    usual, passes = network.picture, Passes()
    scales = RowScales(network, axes_of(network))
    monkeypatch.setattr(network, "picture", lambda *_: pytest.fail("what torch keeps may not fit"))
    list(scales.measure(passes=passes))
    assert passes.runs == 8
    assert scales.is_measured


def test_gradients_of_variables_are_those_of_autograd(network: DifferentiableNetwork) -> None:
    scales = RowScales(network, axes_of(network))
    list(scales.measure())
    shape = 2, network.spec.num_ws + 1, network.spec.w_dim
    free = torch.from_numpy(np.random.default_rng(4).standard_normal(shape)).to(scales.units).requires_grad_()
    coordinates = scales.coordinates(free)
    (wanted,) = torch.autograd.grad(coordinates.sin().sum(), free)
    torch.testing.assert_close(scales.gradients(coordinates.detach().cos()), wanted)

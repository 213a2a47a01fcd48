"""Scales that are learnt once: they follow the Jacobian of the picture, and bring searches nearer in a few steps."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend.gradients import scale_learning
from gpu_backend.gradients.latents import sample_w
from gpu_backend.gradients.network import DifferentiableNetwork, differentiable_network
from gpu_backend.gradients.projection import Projection
from gpu_backend.gradients.projection_settings import ProjectionSettings
from gpu_backend.gradients.row_scales import RowScales
from gpu_backend.gradients.scale_learning import ScaleLearner
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.search_scales import SearchScales
from tests.helpers.networks import make_stylegan2


def small_network(resolution: int, seed: int = 2) -> DifferentiableNetwork:
    return differentiable_network(
        make_stylegan2(resolution=resolution, channel_max=12, channel_base=512, w_dim=16, seed=seed)
    )


@pytest.fixture(scope="module")
def network() -> DifferentiableNetwork:
    return small_network(16)


def learnt(network: DifferentiableNetwork, probes: int) -> SearchScales:
    learner = ScaleLearner(network)
    while len(learner.gradients) < probes:
        learner.probe()
    return learner.scales()


def scales_of(network: DifferentiableNetwork, found: SearchScales) -> RowScales:
    return RowScales(network, network.tensor(found.axes), found)


def test_directions_make_the_picture_curve_alike_where_the_diagonal_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    network = small_network(8)
    monkeypatch.setattr(scale_learning, "PSI", 0.0)
    found = learnt(network, 200)
    num_ws, w_dim = network.spec.num_ws, network.spec.w_dim
    assert found.probes == 200
    assert found.rows.shape == (num_ws, w_dim)
    assert np.log(found.rows).mean() == pytest.approx(0.0, abs=1e-3)
    assert 1 <= len(found.factors) < num_ws * w_dim
    assert (np.diff(found.factors) >= 0.0).all(), "the one along which the picture changes most comes first"
    mean = network.mean_w.expand(num_ws, -1)
    jacobian = torch.autograd.functional.jacobian(lambda rows: network.picture(rows[None]).flatten(), mean)
    along = jacobian @ network.tensor(found.axes).t()

    def largest(scales: RowScales) -> float:
        """The largest eigenvalue of J'J in the variables of rows, over their mean."""
        variables = torch.eye(num_ws * w_dim).view(-1, num_ws, w_dim)
        coordinates = scales.coordinates(torch.nn.functional.pad(variables, (0, 0, 0, 1)))
        changes = coordinates.flatten(1) @ along.flatten(1).t()
        eigenvalues = torch.linalg.eigvalsh(changes @ changes.t())
        return float(eigenvalues[-1] / eigenvalues.mean())

    diagonal = replace(found, directions=found.directions[:0], factors=found.factors[:0])
    assert largest(scales_of(network, found)) < 0.6 * largest(scales_of(network, diagonal))


def test_variables_of_learnt_scales_become_their_coordinates_and_gradients_those_of_autograd(
    network: DifferentiableNetwork,
) -> None:
    found = learnt(network, 100)
    assert len(found.factors)
    scales = scales_of(network, found)
    assert list(scales.measure()) == [], "nothing is left to measure"
    shape = 2, network.spec.num_ws + 1, network.spec.w_dim
    free = torch.from_numpy(np.random.default_rng(4).standard_normal(shape)).float().requires_grad_()
    coordinates = scales.coordinates(free)
    (wanted,) = torch.autograd.grad(coordinates.sin().sum(), free)
    torch.testing.assert_close(scales.gradients(coordinates.detach().cos()), wanted)
    again = scales.coordinates(scales.variables(coordinates.detach()))
    torch.testing.assert_close(again, coordinates.detach(), rtol=1e-3, atol=1e-3)


def test_the_same_passes_give_the_same_scales_however_many_are_done_at_once(
    network: DifferentiableNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = learnt(network, 20)
    monkeypatch.setattr(scale_learning, "pictures_together", lambda network: 10)
    together = learnt(network, 20)
    np.testing.assert_allclose(together.rows, alone.rows, rtol=2e-3)
    np.testing.assert_allclose(together.factors, alone.factors, rtol=1e-3)


def test_a_search_with_learnt_scales_comes_nearer_in_a_few_steps() -> None:
    network = small_network(32)
    found = learnt(network, 100)
    with torch.no_grad():
        w, others = sample_w(network, 4, seed=7), sample_w(network, 4, seed=8)
        known = network.picture(w[:, None].expand(-1, network.spec.num_ws, -1)).clamp(-1, 1).numpy()

    def decibels(scales: SearchScales | None) -> float:
        encoder: Any = SimpleNamespace(encode=lambda pictures: w + 0.3 * (others - w), scales=scales)
        projection = Projection(network, known, ProjectionSettings(steps=8, candidates=8), encoder)
        stages = set()
        while not projection.step().is_done:
            stages.add(projection.report.stage)
        assert ("scales" in stages) == (scales is None)
        return float(np.mean(projection.psnr()))

    assert decibels(found) > decibels(None) + 0.5


def test_scales_of_gradients_that_are_not_finite_are_refused(network: DifferentiableNetwork) -> None:
    learner = ScaleLearner(network)
    learner.gradients = [torch.full((network.spec.num_ws, network.spec.w_dim), torch.nan)] * 16
    with pytest.raises((Refusal, RuntimeError)):
        learner.scales()

"""Projection on a GPU: a captured step computes what the calls of its kernels do."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend.cuda.driver.probe import probe
from gpu_backend.gradients.latents import sample_w
from gpu_backend.gradients.network import DifferentiableNetwork, differentiable_network
from gpu_backend.gradients.own_kernels import OwnKernels
from gpu_backend.gradients.projection import Projection, pictures_together
from gpu_backend.gradients.projection_settings import ProjectionSettings
from gpu_backend.gradients.scale_learning import ScaleLearner
from gpu_backend.gradients.step_graph import StepGraph
from gpu_backend.model.search_scales import SearchScales
from tests.helpers.networks import make_stylegan2

pytestmark = pytest.mark.gpu


def learnt_scales(network: DifferentiableNetwork, probes: int) -> SearchScales:
    learner = ScaleLearner(network)
    while len(learner.gradients) < probes:
        learner.probe()
    return learner.scales()


@pytest.mark.parametrize("with_scales", [False, True], ids=["measured", "learnt"])
@pytest.mark.parametrize("own_kernels", [False, True], ids=["torch", "own"])
def test_a_captured_search_finds_what_single_calls_find(
    monkeypatch: pytest.MonkeyPatch, with_scales: bool, own_kernels: bool
) -> None:
    network = differentiable_network(make_stylegan2(resolution=32, w_dim=16, conv_clamp=256.0), device="cuda")
    if own_kernels:
        network.own_kernels = OwnKernels(probe().gpus[0])
    with torch.no_grad():
        w, others = sample_w(network, 2, 77), sample_w(network, 2, 78)
        targets = network.picture(w[:, None].expand(-1, network.spec.num_ws, -1)).clamp(-1, 1).cpu().numpy()
    encoder: Any = None
    if with_scales:
        scales = learnt_scales(network, 128)
        assert len(scales.factors)
        encoder = SimpleNamespace(encode=lambda pictures: w + 0.3 * (others - w), scales=scales)
    assert network.can_be_captured
    assert pictures_together(network) > 1

    def found() -> tuple[float, ...]:
        projection = Projection(network, targets, ProjectionSettings(steps=40, candidates=16), encoder)
        while not projection.step().is_done:
            pass
        return projection.psnr()

    captured = found()
    monkeypatch.setattr(StepGraph, "__call__", lambda self: self._function())
    np.testing.assert_allclose(captured, found(), atol=2.0)


def test_scales_by_own_kernels_are_those_of_a_processor() -> None:
    model = make_stylegan2(resolution=32, w_dim=16, conv_clamp=256.0)
    network = differentiable_network(model, device="cuda")
    network.own_kernels = OwnKernels(probe().gpus[0])
    found, exact = learnt_scales(network, 64), learnt_scales(differentiable_network(model), 64)
    np.testing.assert_allclose(np.sort(found.rows.ravel()), np.sort(exact.rows.ravel()), rtol=0.05)
    assert abs(len(found.factors) - len(exact.factors)) <= 1
    np.testing.assert_allclose(found.factors[:3], exact.factors[:3], rtol=0.05)


def test_a_function_is_captured_after_its_first_calls_and_goes_on_in_place() -> None:
    total = torch.zeros(4, device="cuda")

    def add() -> torch.Tensor:
        return total.add_(1.0)

    step = StepGraph(add, captured=True)
    for count in range(1, 9):
        assert step() is total
        assert total.tolist() == [count] * 4

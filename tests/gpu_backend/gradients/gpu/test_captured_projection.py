"""Projection on a GPU: a captured step computes what the calls of its kernels do."""

import numpy as np
import pytest
import torch

from gpu_backend.gradients.latents import sample_w
from gpu_backend.gradients.network import differentiable_network
from gpu_backend.gradients.projection import Projection, pictures_together
from gpu_backend.gradients.projection_settings import ProjectionSettings
from gpu_backend.gradients.step_graph import StepGraph
from tests.helpers.networks import make_stylegan2

pytestmark = pytest.mark.gpu


def test_a_captured_search_finds_what_single_calls_find(monkeypatch: pytest.MonkeyPatch) -> None:
    network = differentiable_network(make_stylegan2(resolution=32, w_dim=16, conv_clamp=256.0), device="cuda")
    with torch.no_grad():
        rows = sample_w(network, 2, 77)[:, None].expand(-1, network.spec.num_ws, -1)
        targets = network.picture(rows).clamp(-1, 1).cpu().numpy()
    assert network.can_be_captured
    assert pictures_together(network) > 1

    def found() -> tuple[float, ...]:
        projection = Projection(network, targets, ProjectionSettings(steps=40, candidates=16))
        while not projection.step().is_done:
            pass
        return projection.psnr()

    captured = found()
    monkeypatch.setattr(StepGraph, "__call__", lambda self: self._function())
    np.testing.assert_allclose(captured, found(), atol=2.0)


def test_a_function_is_captured_after_its_first_calls_and_goes_on_in_place() -> None:
    total = torch.zeros(4, device="cuda")

    def add() -> torch.Tensor:
        return total.add_(1.0)

    step = StepGraph(add, captured=True)
    for count in range(1, 9):
        assert step() is total
        assert total.tolist() == [count] * 4

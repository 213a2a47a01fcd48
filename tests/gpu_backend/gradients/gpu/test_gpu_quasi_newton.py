"""L-BFGS by own kernels: their twins on the CPU, and the kernels on a GPU, go where torch goes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.gradients.gpu.open_network import GpuGradients, packed_network
from gpu_backend.gradients.gpu.passes import GpuPasses
from gpu_backend.gradients.network import differentiable_network
from gpu_backend.gradients.own_kernels import OwnKernels
from gpu_backend.gradients.quasi_newton import HISTORY, MOST_HALVINGS, Minimiser, QuasiNewton
from tests.helpers.fake_gpu import FAKE_GPU
from tests.helpers.gradient_twins import TwinDriver, twin_kernels
from tests.helpers.networks import make_stylegan2

_FAILURES = range(9, 10 + MOST_HALVINGS)
"""Steps whose value of the second sample is no number: until its search gives up the direction."""


def followed(make: Callable[[Tensor], Minimiser], start: Tensor, steps: int) -> tuple[list[Tensor], Tensor]:
    """Return the points of a search with a curved and a noisy part for each sample, and the last values."""
    generator = torch.Generator().manual_seed(1)
    size = start[0].numel()
    factor, all_wanted = (torch.randn((count, size), generator=generator).to(start).double() for count in (size, 3))
    wanted = all_wanted[: len(start)]
    search, points, values = make(start), [], torch.empty(0)
    for step in range(steps):
        free = search.point.clone().requires_grad_()
        # In fp64: torch multiplies one row and several in different orders.
        apart = free.flatten(1).double() - wanted
        values = (apart @ factor).square().sum(1) / size + 0.1 * apart.pow(4).sum(1) + (3.0 * apart).sin().sum(1)
        (gradients,) = torch.autograd.grad(values.sum(), free)
        values = values.detach().float()
        if step in _FAILURES:
            values[1] = torch.nan
            gradients[1, 0, 0] = torch.nan
        search.take(values, gradients)
        points.append(search.point.clone())
    return points, values


def assert_goes_where_torch_goes(passes: GpuPasses, start: Tensor) -> None:
    steps = 2 * HISTORY + 15  # the ring is full twice
    points, values = followed(passes.minimiser, start, steps)
    wanted, wanted_values = followed(QuasiNewton, start, steps)
    assert points[0].shape == start.shape
    for point, other in zip(points[:20], wanted, strict=False):
        torch.testing.assert_close(point, other, atol=2e-4, rtol=1e-3)
    # Later, roundings lead to other minima of the sines, as deep.
    np.testing.assert_allclose(values.cpu(), wanted_values.cpu(), rtol=1e-2)
    alone, _ = followed(passes.minimiser, start[:1], 8)
    torch.testing.assert_close(alone[-1][0], points[7][0], atol=1e-5, rtol=1e-5)


def test_twins_go_where_torch_goes() -> None:
    network = differentiable_network(make_stylegan2(resolution=16, channel_max=20, channel_base=320, w_dim=12))
    gpu = GpuGradients(packed_network(network, 16), TwinDriver().as_driver(), twin_kernels(4), FAKE_GPU)
    assert_goes_where_torch_goes(GpuPasses(gpu, network.device), torch.zeros(3, 5, 60))


def test_a_flat_place_ends_nothing() -> None:
    network = differentiable_network(make_stylegan2(resolution=16, channel_max=20, channel_base=320, w_dim=12))
    gpu = GpuGradients(packed_network(network, 16), TwinDriver().as_driver(), twin_kernels(4), FAKE_GPU)
    search = GpuPasses(gpu, network.device).minimiser(torch.ones(1, 3))
    for _ in range(3):
        search.take(torch.zeros(1), torch.zeros(1, 3))
    assert search.point.tolist() == [[1.0, 1.0, 1.0]]


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(3, 5, 60), (2, 3, 514)])
def test_kernels_go_where_torch_goes(gpu: Gpu, shape: tuple[int, ...]) -> None:
    network = differentiable_network(make_stylegan2(resolution=32, w_dim=16, conv_clamp=256.0), device="cuda")
    passes = OwnKernels(gpu).passes(network, 1, draft_side=0, draft_samples=1)
    assert passes is not None
    assert_goes_where_torch_goes(passes, torch.zeros(shape, device="cuda"))

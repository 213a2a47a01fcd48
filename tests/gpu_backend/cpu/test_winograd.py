"""Winograd's convolution against the direct sum, at ugly channel counts and every place of the border."""

import contextlib
import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.cpu.team import Team
from gpu_backend.cpu.weight_stack import WeightStack
from gpu_backend.cpu.winograd import WinogradConvolution, strip_of, transform_weight
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey
from tests.helpers.networks import make_stylegan2, rows_of
from tests.helpers.stylegan1 import make_stylegan1


class Copy:
    """An epilogue that keeps what it is given."""

    def finish(self, raw: torch.Tensor, first_row: int, out: torch.Tensor) -> None:
        out.view(raw.shape).copy_(raw)


def largest_error(side: int, inputs: int, outputs: int, *, pad: int = 1, cuts: tuple[int, ...] = ()) -> float:
    """How far it is from the sum in float64, for an output of that side made in parts of rows."""
    generator = torch.Generator().manual_seed(side)
    weight = torch.randn(outputs, inputs, 3, 3, generator=generator)
    before = side + 2 - 2 * pad
    x, style = torch.randn(before, before, inputs, generator=generator), torch.randn(inputs, generator=generator)
    out = torch.full((side, side, outputs), float("nan"))
    edges = (0, *cuts, side)
    for rows in itertools.pairwise(edges):
        winograd = WinogradConvolution(WeightStack(transform_weight(weight), 64), side, rows, pad)
        winograd.attach(torch.full((winograd.scratch_floats,), float("nan")))
        winograd.run(x, style, Copy(), out)  # type: ignore[arg-type]
    scaled = (x * style).permute(2, 0, 1)[None].double()
    expected = functional.conv2d(scaled, weight.double(), padding=pad)[0].permute(1, 2, 0).numpy()
    return float(np.abs(out.numpy() - expected).max() / expected.std())


def test_the_lanes_of_a_team_transform_weights_to_the_same_bytes_as_one_thread() -> None:
    weight = torch.randn(5, 43, 3, 3, generator=torch.Generator().manual_seed(3))
    team = Team(3)
    try:
        with torch.inference_mode():
            assert torch.equal(transform_weight(weight, team), transform_weight(weight))
    finally:
        team.close()


@pytest.mark.parametrize(
    ("side", "inputs", "outputs"), [(4, 5, 3), (8, 7, 9), (16, 64, 64), (32, 3, 130), (64, 33, 17)]
)
def test_it_equals_the_direct_convolution(side: int, inputs: int, outputs: int) -> None:
    assert largest_error(side, inputs, outputs) < 1e-4


@pytest.mark.parametrize("pad", [0, 1, 2])
@pytest.mark.parametrize(("side", "cuts"), [(6, ()), (38, (20,)), (54, (16, 32)), (21, (8,)), (40, (12, 28))])
def test_sides_that_are_no_multiple_of_the_tile_and_other_borders(side: int, cuts: tuple[int, ...], pad: int) -> None:
    assert largest_error(side, 5, 3, pad=pad, cuts=cuts) < 1e-4


def test_strips_have_tiles_enough_for_their_weights_and_else_fit_the_cache() -> None:
    assert strip_of((0, 64), 16, 256, 256) == 8
    assert strip_of((0, 64), 16, 255, 256) == 4
    assert strip_of((0, 64), 16, 255, 256, 4) == 8  # for four threads
    assert strip_of((128, 256), 64, 64, 64) == 2
    assert strip_of((0, 1024), 256, 64, 64) == 1
    assert strip_of((0, 20), 5, 8, 8) == 5


@pytest.mark.parametrize("make", [make_stylegan1, make_stylegan2])
@pytest.mark.parametrize("lanes", [6, 16])
def test_many_lanes_give_the_picture_of_one(make: Any, lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_backend.cpu.executor.division_of", lambda threads: (threads, 1))
    model = make(resolution=64, channels={32: 64, 64: 64})
    ws = rows_of(model, 2)
    pictures = []
    for count in (1, lanes):
        with contextlib.closing(CpuExecutor(model.weights, threads=count)) as executor:
            bound: Any = executor.bind(build_plan(model.spec, PlanKey("id", "synthesis", 2, 64)))
            pictures.append(bound.run({"ws": ws}, outputs=("image",))["image"].copy())
    assert np.abs(pictures[1] - pictures[0]).max() <= 3e-5 * np.abs(pictures[0]).max()

"""Up-convolutions by evaluation and interpolation, however lanes and strips divide them, against the direct sum."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import gpu_backend.cpu.winograd_up_conv as kernel
from gpu_backend import Model
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.cpu.kernel import Kernel
from gpu_backend.cpu.modulated_up_conv import UpConv
from gpu_backend.cpu.team import Team
from gpu_backend.cpu.weight_stack import WeightStack
from gpu_backend.cpu.winograd_up_conv import UpInputTiles, UpOutputTiles, suits_winograd, transform_up_weight
from gpu_backend.ops.upfirdn import resampling_matrix
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey
from gpu_backend.reference.stylegan1 import run_stylegan1
from gpu_backend.reference.synthesis import run_synthesis
from tests.helpers.networks import make_stylegan2, rows_of
from tests.helpers.stylegan1 import make_stylegan1


class Copy:
    """An epilogue that keeps what it is given."""

    def replay_key(self) -> str:
        return "always"

    def begin(self, sample: int) -> None:
        """Nothing depends on the sample."""

    def finish(self, raw: torch.Tensor, first_row: int, out: torch.Tensor) -> None:
        out.view(raw.shape).copy_(raw)


@pytest.fixture
def executors() -> Iterator[list[CpuExecutor]]:
    """Executors to close after the test."""
    opened: list[CpuExecutor] = []
    yield opened
    for executor in opened:
        executor.close()


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "MIN_SIDE", 4)
    monkeypatch.setattr(kernel, "MIN_CHANNELS", 1)


def kernels_of(bound: Any) -> list[Kernel]:
    return [getattr(kernel, "_inner", kernel) for kernel in bound._kernels]


def largest_errors(
    side: int, inputs: int, outputs: int, taps: tuple[float, ...] = (0.125, 0.375, 0.375, 0.125), group: int = 1
) -> tuple[float, float]:
    """How far a layer, and the same sum in float32, are from the sum in float64."""
    generator = torch.Generator().manual_seed(side)
    weight, style = torch.randn(outputs, inputs, 3, 3, generator=generator), torch.randn(inputs, generator=generator)
    x = torch.randn(side, side, inputs, generator=generator)
    tiles = side // 4
    into = UpInputTiles(inputs, tiles)
    v = torch.full(into.shape(tiles), float("nan"))
    into.run(into.views(x, v), style)
    out_of = UpOutputTiles(WeightStack(transform_up_weight(weight), tiles**2), (0, tiles), tiles, taps, 0.0, group)
    shapes = (*((size,) for size in out_of.sizes(tiles)), *out_of.shapes())
    out_of.attach(v.view(-1), *(torch.full(shape, float("nan")) for shape in shapes))
    out = torch.full((2 * side, 2 * side, outputs), float("nan"))
    out_of.run(0, tiles, Copy(), out)

    def direct(dtype: torch.dtype) -> np.ndarray:
        matrix = torch.from_numpy(resampling_matrix(2 * side + 1, 2 * side, taps, up=1, left=1, gain=2.0)).to(dtype)
        scaled = (x * style).to(dtype).permute(2, 0, 1)[None]
        t = functional.conv_transpose2d(scaled, weight.to(dtype).transpose(0, 1), stride=2)[0]
        return (matrix @ t @ matrix.T).permute(1, 2, 0).numpy()

    expected = direct(torch.float64)
    found, plain = (np.abs(y - expected).max() / expected.std() for y in (out.numpy(), direct(torch.float32)))
    return float(found), float(plain)


@pytest.mark.parametrize("taps", [(0.125, 0.375, 0.375, 0.125), (0.1, 0.2, 0.3, 0.4)])
@pytest.mark.parametrize(("side", "inputs", "outputs", "group"), [(4, 5, 3, 1), (8, 7, 9, 8), (20, 3, 130, 2)])
def test_it_equals_the_direct_sum(side: int, inputs: int, outputs: int, group: int, taps: tuple[float, ...]) -> None:
    assert largest_errors(side, inputs, outputs, taps, group)[0] < 1e-5


@pytest.mark.parametrize(("inputs", "outputs"), [(64, 64), (512, 128)])
def test_its_rounding_errors_are_those_of_the_direct_sum_within_a_small_factor(inputs: int, outputs: int) -> None:
    found, plain = largest_errors(16, inputs, outputs)
    assert found < 6 * plain


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("splits_channels", [False, True])
@pytest.mark.parametrize("make", [make_stylegan1, make_stylegan2])
@pytest.mark.usefixtures("everywhere")
def test_pictures_equal_the_reference_however_lanes_divide_layers(
    make: Any, splits_channels: bool, threads: int, executors: list[CpuExecutor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "CHANNEL_SPLIT_MAX_SIDE", 1024 if splits_channels else 0)
    monkeypatch.setattr(kernel, "_STRIP_TILES", 40)  # strips of several rows, and of one; the last has fewer
    taps = {"fir": (1, 2, 3, 4)} if make is make_stylegan2 else {"blurs_bias": True}
    model: Model = make(resolution=128, channels={32: 5, 64: 7, 128: 3}, **taps)
    ws = rows_of(model, 2)
    executors.append(CpuExecutor(model.weights, threads=threads))
    bound = executors[0].bind(build_plan(model.spec, PlanKey("id", "synthesis", 2, 128)))
    wanted = kernel.ChannelUpConv if splits_channels else kernel.RowUpConv
    assert sum(isinstance(step, wanted) for step in kernels_of(bound)) == 5
    found = bound.run({"ws": ws}, outputs=("image",))["image"].transpose(0, 3, 1, 2)
    weights = {name: torch.from_numpy(array).double() for name, array in model.weights.items()}
    synthesis: Any = run_stylegan1 if make is make_stylegan1 else run_synthesis
    expected = synthesis(model.spec, weights, torch.from_numpy(ws).double(), None).numpy()
    assert np.abs(found - expected).max() <= 3e-5 * np.abs(expected).max()


def test_the_lanes_of_a_team_transform_weights_to_the_same_bytes_as_one_thread() -> None:
    weight = torch.randn(5, 43, 3, 3, generator=torch.Generator().manual_seed(3))
    team = Team(3)
    try:
        with torch.inference_mode():
            assert torch.equal(transform_up_weight(weight, team), transform_up_weight(weight))
    finally:
        team.close()


@pytest.mark.parametrize(
    "options", [{"fir": (1, 2, 1)}, {"fir": (1, 2, 3, 3, 2, 1)}, {"channels": {16: 63, 32: 63}}, {"resolution": 16}]
)
def test_other_filters_and_small_layers_are_direct(options: dict[str, Any], executors: list[CpuExecutor]) -> None:
    def kinds(**options: Any) -> set[type]:
        model = make_stylegan2(**{"resolution": 32, "channels": {16: 64, 32: 64}, **options})
        executors.append(CpuExecutor(model.weights, threads=1))
        bound = executors[-1].bind(build_plan(model.spec, PlanKey("id", "synthesis", 1, model.spec.resolution)))
        steps = zip(bound.plan.steps, bound._kernels, strict=True)  # type: ignore[union-attr]
        pairs = [(step.attributes, kernel) for step, kernel in steps if step.op == "modulated_up_conv"]
        assert [suits_winograd(attributes) for attributes, _ in pairs] == [not isinstance(k, UpConv) for _, k in pairs]
        return {type(kernel) for _, kernel in pairs}

    assert kinds() == {UpConv, kernel.ChannelUpConv}
    assert kinds(**options) == {UpConv}


def test_strips_are_of_nearly_equal_size() -> None:
    assert [kernel.strip_of(rows, 32) for rows in (1, 4, 5, 8, 9)] == [1, 4, 3, 4, 3]
    assert [kernel.strip_of(rows, 32, 2) for rows in (1, 4, 5, 8, 9)] == [1, 4, 5, 8, 5]

"""A layer on show: statistics of channels and of the whole, bytes, flags and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.tap_display import tap_display
from gpu_backend.cuda.schedule import Built, Region
from gpu_backend.ops.tap_display import TapDisplay
from gpu_backend.plan.plan import Step
from tests.helpers.conv_cases import run_built
from tests.helpers.kernel_checks import assert_arguments_fit

# channels, as they lie in memory, side, batch, multiprocessors; some take several stretches, slabs, or both
CASES = [
    (1, 1, 8, 1, 2),
    (3, 3, 4, 1, 132),
    (3, 3, 260, 2, 132),
    (5, 8, 36, 3, 4),
    (16, 16, 64, 1, 40),
    (40, 40, 52, 2, 8),
    (81, 88, 84, 1, 132),
    (300, 304, 20, 2, 16),
    (512, 512, 64, 1, 132),
]
PLACES = (2, 0, 1)


def step_of(channels: int, side: int) -> Step:
    outputs = ("pixels", "flags", "statistics", "values")
    return Step("synthesis.display", "tap_display", TapDisplay(channels, side), ("x", "tap"), outputs)


def built_for(channels: int, stride: int, side: int, batch: int, multiprocessors: int, half: bool = False) -> Built:
    x = Region("x", (batch, side, side, stride), "float16" if half else "float32", "scratch")
    return tap_display(step_of(channels, side), x, batch, multiprocessors)


def layer_of(channels: int, stride: int, side: int, batch: int, half: bool) -> NDArray[Any]:
    """Channels far from 0 among them; what lies beside the layer is larger than all of it."""
    random = np.random.default_rng(channels)
    x = np.full((batch, side, side, stride), 3e4, np.float16 if half else np.float32)
    spread, mean = random.uniform(0.1, 2.0, channels), random.choice([0.0, 0.5, 50.0], channels)
    x[..., :channels] = mean + spread * random.standard_normal((batch, side, side, channels))
    return x


def run(case: tuple[int, int, int, int, int], half: bool, numbers: tuple[float, ...], x: NDArray[Any]) -> Any:
    batch = x.shape[0]
    inputs = {"x": x, "tap": np.array(numbers, np.float32), "flags": np.full(batch, 7, np.uint32)}
    return run_built(built_for(*case, half), inputs)


def assert_figures(found: NDArray[Any], part: NDArray[Any]) -> None:
    values = part.reshape(len(part), -1).astype(np.float64)
    expected = np.transpose([values.mean(1), values.std(1), values.min(1), values.max(1)])
    # The mean may be far larger than what is spread around it.
    np.testing.assert_allclose(found[:, 0], expected[:, 0], rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(found[:, 1], expected[:, 1], rtol=2e-5)
    np.testing.assert_array_equal(found[:, 2:], expected[:, 2:].astype(np.float32))


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("half", [False, True], ids=["fp32", "fp16"])
def test_figures_and_numbers_are_the_layers_own(case: tuple[int, int, int, int, int], half: bool, gpu: Gpu) -> None:
    channels, stride, side, batch, _ = case
    x = layer_of(channels, stride, side, batch, half)
    places = tuple(place % channels for place in PLACES)
    found = run(case, half, (*places, 0.5, 1), x)
    for row, place in enumerate(places):
        assert_figures(found["statistics"][:, row], x[..., place])
    assert_figures(found["statistics"][:, 3], x[..., :channels])
    np.testing.assert_array_equal(found["values"], x[..., places[0]].astype(np.float32))
    assert not found["flags"].any()


@pytest.mark.gpu
@pytest.mark.parametrize("is_normalized", [0, 1])
@pytest.mark.parametrize("gain", [1.0, 0.2, 1e10, 1e-10])
def test_bytes_are_those_of_the_rule(is_normalized: int, gain: float, gpu: Gpu) -> None:
    x = layer_of(40, 40, 52, 2, half=True)
    x[0, 0, 0, 1] = -70.0  # the largest magnitude of its channel
    found = run((40, 40, 52, 2, 8), True, (*PLACES, gain, is_normalized), x)
    chosen = x[..., PLACES].astype(np.float64)
    if is_normalized:
        chosen /= np.abs(chosen).max((1, 2), keepdims=True)
    expected = np.floor(np.clip(chosen * gain * 127.5 + 128, 0, 255))
    assert np.abs(found["pixels"][..., 2::-1] - expected).max() <= 1
    assert (found["pixels"][..., 3] == 255).all()


@pytest.mark.gpu
def test_a_channel_of_zeros_is_grey(gpu: Gpu) -> None:
    found = run((5, 8, 36, 1, 4), False, (0, 1, 2, 1, 1), np.zeros((1, 36, 36, 8), np.float32))
    assert (found["pixels"][..., :3] == 128).all()
    assert not found["statistics"].any()


@pytest.mark.gpu
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("place", "flags"), [(1, [0, 1]), (4, [0, 0])])
def test_a_number_that_is_not_finite_is_reported_where_it_is_shown(
    wrong: float, place: int, flags: list[int], gpu: Gpu
) -> None:
    x = layer_of(5, 8, 36, 2, half=False)
    x[1, 3, 5, place] = wrong
    found = run((5, 8, 36, 2, 4), False, (*PLACES, 1, 1), x)
    assert found["flags"].tolist() == flags
    assert not np.isfinite(found["statistics"][1, 3]).all()
    assert np.isfinite(found["statistics"][0]).all()
    is_shown = np.isfinite(found["statistics"][1, :3]).all(1)
    assert is_shown.tolist() == [True, True, place != 1]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_arguments_fit_and_stretches_cover_every_pixel(case: tuple[int, int, int, int, int]) -> None:
    channels, stride, side, batch, _ = case
    built = built_for(*case)
    outer = Region("x", (batch, side, side, stride), "float32", "scratch"), Region("tap", (5,), "float32", "input")
    flags = Region("flags", (batch,), "uint32", "output")
    for launch in built.launches:
        assert_arguments_fit(launch, (*built.regions, *outer, flags), built.constants)
    measure, show = built.launches
    stretches, slabs, samples = measure.grid
    stretch, lanes = (int(str(measure.arguments[name])) for name in ("stretch", "lanes"))
    assert (stretches - 1) * stretch < side**2 <= stretches * stretch
    assert lanes in (1, 2, 4, 8, 16, 32)
    slab = lanes * int(dict(measure.recipe.defines)["WIDE"])
    assert (slabs - 1) * slab < stride <= slabs * slab
    assert (samples, show.grid[1]) == (batch, batch)
    assert [int(str(show.arguments[name])) for name in ("stretches", "stretch", "slabs", "slab")] == [
        stretches,
        stretch,
        slabs,
        slab,
    ]
    assert measure.nbytes == 4 * batch * side**2 * channels

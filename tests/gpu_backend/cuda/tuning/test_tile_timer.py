from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gpu_backend.cuda.compiling.compiler import CompiledKernel
from gpu_backend.cuda.errors import KernelError
from gpu_backend.cuda.tiles.table import TileTable
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.cuda.tuning.isolated_conv import IsolatedConvs
from gpu_backend.cuda.tuning.tile_timer import LAUNCHES, REPLAYS, DeviceTileTimer, difference
from gpu_backend.errors import DeviceMemoryError
from gpu_backend.ops.kernels.conv_tile import ConvShape, ConvTile
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from tests.helpers.fake_gpu import FakeDriver, FakeKernel
from tests.helpers.networks import make_stylegan2

TARGET = Target("sm_80", 108, 166912, TileTable.load("sm_80", 108, 166912))
MODEL = make_stylegan2(resolution=8, channel_base=128, channel_max=12)
L2_NBYTES = 20_000


class Kernels:
    """Convolutions that copy their input's first number, and write what toRGB should get if nothing is wrong."""

    def __init__(self) -> None:
        self.weights_seen: set[int] = set()
        self.raw_factor = 1.0
        self.parts_factor = 1.0

    def plain(self, driver: FakeDriver, **arguments: Any) -> None:
        self._run(driver, arguments, 1.0)

    def fused(self, driver: FakeDriver, **arguments: Any) -> None:
        self.weights_seen.add(arguments["weight"])
        self._run(driver, arguments, self.raw_factor)
        rgb_weight, rgb_style, parts = (arguments.get(f"rgb_{name}") for name in ("weight", "style", "parts"))
        batch, side, cout = arguments["batch"], arguments["side"], arguments["cout"]
        if parts and arguments["y_raw"]:
            assert rgb_weight
            assert rgb_style
            raw = self._raw(driver, arguments).astype(np.float32) / self.raw_factor
            weight = driver.view(rgb_weight, (3, cout), "float32")
            style = driver.view(rgb_style, (cout,), "float32")
            picture = np.einsum("bhwo,io,o->bhwi", raw, weight, style) * self.parts_factor
            driver.view(parts, (batch, side, side, 3), "float32")[...] = picture

    def _run(self, driver: FakeDriver, arguments: dict[str, Any], factor: float) -> None:
        if arguments["y"] or arguments["y_raw"]:
            cout = arguments["cout"]
            ramp = np.arange(cout, dtype=np.float32) * factor
            first = driver.view(arguments["x"], (1,), "float16")[0]
            self._raw(driver, arguments)[...] = ramp + np.float32(first) * factor

    def _raw(self, driver: FakeDriver, arguments: dict[str, Any]) -> Any:
        batch, side, cout = arguments["batch"], arguments["side"], arguments["cout"]
        return driver.view(arguments["y_raw"] or arguments["y"], (batch, side, side, cout), "float16")


@pytest.fixture
def kernels() -> Kernels:
    return Kernels()


@pytest.fixture
def driver(kernels: Kernels) -> FakeDriver:
    stems = ("modulated_conv", "modulated_up_conv")
    made = {stem: FakeKernel(kernels.fused, 7.0) for stem in stems}
    return FakeDriver({**made, **{f"plain_{stem}": FakeKernel(kernels.plain, 50.0) for stem in stems}})


@pytest.fixture
def timer(driver: FakeDriver) -> Iterator[DeviceTileTimer]:
    plan = build_synthesis_plan(MODEL.spec, "model", precision="fp16")
    made = DeviceTileTimer(driver, IsolatedConvs([plan], MODEL.weights, TARGET), compiled, L2_NBYTES)
    yield made
    made.close()
    made.close()
    assert driver.is_empty


def compiled(recipe: KernelRecipe) -> CompiledKernel:
    return CompiledKernel(recipe.digest.encode(), 32, 0, 0)


CONV = ConvShape("conv", 8, 16, 16, 1)
UP = ConvShape("up_conv", 8, 16, 16, 1)


def tile_of(shape: ConvShape) -> ConvTile:
    return TARGET.tiles.choose(shape)


@pytest.mark.parametrize("shape", [CONV, UP], ids=["conv", "up_conv"])
def test_a_launch_is_timed_among_many_without_what_the_events_take(timer: DeviceTileTimer, shape: ConvShape) -> None:
    timer.prepare(shape, [tile_of(shape)])
    assert timer.time_us(shape, tile_of(shape)) == pytest.approx(7.0, rel=0.02)


def test_weights_take_turns_so_that_they_do_not_stay_in_the_cache(
    timer: DeviceTileTimer, driver: FakeDriver, kernels: Kernels
) -> None:
    timer.time_us(CONV, tile_of(CONV))
    assert 2 <= len(kernels.weights_seen) <= L2_NBYTES * 3 // 2 // (9 * 16 * 16 * 2)
    assert driver.replays == 1 + REPLAYS
    assert driver.launches == LAUNCHES
    assert not driver.graphs


def test_a_right_tile_has_no_problem(timer: DeviceTileTimer) -> None:
    for shape in (CONV, UP):
        assert timer.problem(shape, tile_of(shape)) == ""


def test_a_wrong_result_is_reported(timer: DeviceTileTimer, kernels: Kernels) -> None:
    kernels.raw_factor = 1.01
    for shape in (CONV, UP):
        assert timer.problem(shape, tile_of(shape)).startswith("off by ")


def test_a_wrong_share_of_the_picture_is_reported(timer: DeviceTileTimer, kernels: Kernels) -> None:
    kernels.parts_factor = 1.01
    assert timer.problem(CONV, tile_of(CONV)).startswith("toRGB: off by ")
    assert timer.problem(UP, tile_of(UP)) == ""


def test_a_tile_that_does_not_fit_is_an_error_when_it_is_timed_and_no_other_suffers(timer: DeviceTileTimer) -> None:
    too_large = ConvTile(16, 16, 64, 32, 3, 2, 2)
    timer.prepare(CONV, [too_large, tile_of(CONV)])
    assert timer.time_us(CONV, tile_of(CONV)) > 0
    with pytest.raises(KernelError, match="does not fit"):
        timer.time_us(CONV, too_large)


def test_a_kernel_that_does_not_compile_or_spills_is_an_error(driver: FakeDriver) -> None:
    def refused(recipe: KernelRecipe) -> CompiledKernel:
        raise KernelError("no")

    def spilling(recipe: KernelRecipe) -> CompiledKernel:
        return CompiledKernel(b"code", 255, 8, 0)

    plan = build_synthesis_plan(MODEL.spec, "model", precision="fp16")
    for compiler, why in ((refused, "no"), (spilling, "it spills 8 bytes")):
        timer = DeviceTileTimer(driver, IsolatedConvs([plan], MODEL.weights, TARGET), compiler, L2_NBYTES)
        timer.prepare(CONV, [tile_of(CONV)])
        with pytest.raises(KernelError, match=why):
            timer.time_us(CONV, tile_of(CONV))
        timer.close()


@pytest.mark.parametrize("after", range(13))
def test_memory_that_ends_anywhere_leaves_nothing_behind(
    timer: DeviceTileTimer, driver: FakeDriver, after: int
) -> None:
    driver.full_after = after
    with pytest.raises(DeviceMemoryError):
        timer.time_us(CONV, tile_of(CONV))
    driver.full_after = -1
    assert timer.time_us(CONV, tile_of(CONV)) == pytest.approx(7.0, rel=0.02)


@pytest.mark.parametrize("after", range(2))
def test_a_timer_that_cannot_be_made_leaves_nothing_behind(driver: FakeDriver, after: int) -> None:
    plan = build_synthesis_plan(MODEL.spec, "model", precision="fp16")
    driver.full_after = after
    with pytest.raises(DeviceMemoryError):
        DeviceTileTimer(driver, IsolatedConvs([plan], MODEL.weights, TARGET), compiled, L2_NBYTES)
    assert driver.is_empty


def test_differences_are_judged_by_the_largest_number() -> None:
    expected = np.array([100.0, 0.01], np.float32)
    assert difference(expected + np.float32(0.1), expected) == ""
    assert difference(expected + np.float32(1), expected) == "off by 1 where numbers go up to 100"
    assert difference(np.array([math.nan, 0], np.float32), expected) == "not all numbers are finite"

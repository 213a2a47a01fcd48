"""The convolution of wide pictures with few channels: launches on the CPU, and the kernel on a GPU against torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend.cuda.compiling.compilation import compile_kernels
from gpu_backend.cuda.driver.arguments import Value
from gpu_backend.cuda.driver.interface import Driver, LoadedKernel
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.gradients.gpu.convs import choice
from gpu_backend.gradients.gpu.convs.choice import ConvChoice
from gpu_backend.gradients.gpu.convs.launch import ConvLaunch
from gpu_backend.gradients.gpu.kernels import up_conv_kernel
from gpu_backend.gradients.gpu.placed import PlacedConv
from gpu_backend.gradients.gpu.sequence import KernelSequence
from gpu_backend.ops.kernels.recipe import KernelRecipe
from tests.helpers.gradient_twins import TwinDriver
from tests.helpers.placed_convs import placed_conv

CASES = {
    "one strip": (40, 32, 32, 1),
    "three channels more than a strip's, two samples": (67, 64, 64, 2),
    "rows that no warpgroup has": (130, 40, 56, 1),
    "few channels": (130, 8, 16, 1),
    "more strips than warpgroups at once, three samples": (700, 8, 8, 3),
}
"""Side, channels read and written, and samples."""
ENDS = ("layer", "layer without a next one", "way back", "gradient", "joined", "joined at the first block")
RUNS = [(case, end) for case in CASES for end in ENDS if CASES[case][0] % 2 == 0 or not end.startswith("joined")]
"""Of a discriminator's block the side is even."""


def layer_of(side: int, inputs: int, outputs: int) -> PlacedConv:
    """Return a layer with random weights, placed nowhere."""
    bias = np.random.default_rng(1).standard_normal(outputs).astype(np.float32)
    return placed_conv(side, inputs, outputs, is_up=False, bias=bias)


def launch_of(layer: PlacedConv, end: str, samples: int, driver: Driver) -> ConvLaunch:
    """Return the launch of a convolution, or of its adjoint, with one of `ENDS`."""
    choice = ConvChoice({up_conv_kernel(1)}, 132, driver.tensor_map)
    if end.startswith("layer"):
        found = choice.to_layer_end(layer, samples)
    else:
        taken = {"way back": choice.through_layer, "gradient": choice.to_gradient}.get(end)
        found = taken(layer, samples) if taken else choice.to_join(layer, samples, 4)
    assert found is not None
    assert found.kernel.stem == "gradient_streaming_conv"
    return found


class Arrays:
    """Arrays on a device; those that are written have numbers around them, which must stay."""

    def __init__(self, driver: Driver) -> None:
        self._driver, self._written = driver, {}  # type: ignore[var-annotated]
        self._addresses: list[int] = []

    def add(self, array: np.ndarray[Any, Any]) -> np.uint64:
        """Return the address of a copy."""
        array = np.ascontiguousarray(array)
        address = self._driver.reserve(array.nbytes)
        self._driver.upload(address, array)
        self._addresses.append(address)
        return np.uint64(address)

    def room(self, name: str, shape: tuple[int, ...], dtype: Any = np.float16) -> np.uint64:
        """Return the address of an array that is written."""
        whole = np.full(math.prod(shape) + 1024, np.nan, dtype)
        address = self.add(whole)
        self._written[name] = (int(address), whole, shape)
        return address + np.uint64(512 * whole.itemsize)

    def found(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return what was written, and free everything."""
        results = {}
        for name, (address, whole, shape) in self._written.items():
            self._driver.download(whole, address)
            results[name] = whole[512:-512].reshape(shape).astype(np.float64)
            assert np.isnan(whole[:512]).all()
            assert np.isnan(whole[-512:]).all()
            assert not np.isnan(results[name]).any(), np.argwhere(np.isnan(results[name]))[:8]
        for address in self._addresses:
            self._driver.release(address)
        return results


def check_results(
    driver: Driver, kernels: Mapping[KernelRecipe, LoadedKernel], launch: ConvLaunch, case: str, end: str
) -> None:
    """Compare a case with torch in fp64."""
    side, inputs, outputs, samples = CASES[case]
    layer, random, arrays = layer_of(side, inputs, outputs), np.random.default_rng(2), Arrays(driver)
    is_forward = end.startswith("layer")
    channels, written = (inputs, outputs) if is_forward else (outputs, inputs)
    shape, unit = (samples, side, side, written), 0.25 / math.sqrt(inputs)

    def numbers(*size: int, dtype: Any = np.float16) -> np.ndarray[Any, Any]:
        return random.standard_normal(size).astype(dtype)

    x = numbers(samples, side, side, channels)
    weight = layer.packed.forward.astype(np.float64).reshape(3, 3, outputs, inputs).transpose(2, 3, 0, 1)
    source = torch.from_numpy(x.astype(np.float64)).permute(0, 3, 1, 2)
    product = torch.nn.functional.conv2d if is_forward else torch.nn.functional.conv_transpose2d
    sums = unit * product(source, torch.from_numpy(weight), padding=1).permute(0, 2, 3, 1).numpy()
    arguments: dict[str, Value] = {"unit": unit}
    wanted: dict[str, np.ndarray[Any, Any]] = {}
    totals: dict[str, np.ndarray[Any, Any]] = {}
    if is_forward:
        demod, style = random.uniform(0.5, 2.0, (2, samples, written + 3)).astype(np.float32)
        noise, gain, clamp = numbers(side, side, dtype=np.float32), math.sqrt(2.0), 3.0
        v = sums * demod[:, None, None, :written] + noise[..., None] + layer.packed.bias
        wanted["z"] = (np.where(v > 0.0, v, 0.2 * v) * gain).clip(-clamp, clamp)
        arguments |= {"gain": gain, "clamp": clamp, "demod_count": written + 3, "style_count": written + 3}
        arguments |= {"demod": arrays.add(demod), "noise": arrays.add(noise), "bias": arrays.add(layer.packed.bias)}
        if end == "layer":
            wanted["to"] = wanted["z"] * style[:, None, None, :written]
            arguments["style"] = arrays.add(style)
    elif end == "gradient":
        wanted["out"] = sums
    elif end == "way back":
        demod, style = random.uniform(0.5, 2.0, (2, samples, written + 3)).astype(np.float32)
        noise, bias = numbers(side, side, dtype=np.float32), numbers(written, dtype=np.float32)
        gain, clamp, rows = math.sqrt(2.0), 1.5, launch.rows
        z = numbers(*shape)
        slopes = np.where(z > 0, gain, 0.2 * gain)
        dv = np.where(np.abs(z) < clamp, sums * style[:, None, None, :written] * slopes, 0.0)
        wanted["to"] = dv * demod[:, None, None, :written]
        totals["style_sums"] = (z * sums).sum((1, 2))
        before = z / slopes - bias - noise[..., None]
        totals["demod_sums"] = (dv * before).sum((1, 2)) / demod[:, :written]
        arguments |= {"gain": gain, "clamp": clamp, "demod_count": written + 3, "style_count": written + 3}
        arguments |= {"demod": arrays.add(demod), "noise": arrays.add(noise), "bias": arrays.add(bias)}
        arguments |= {"style": arrays.add(style), "z": arrays.add(z), "sum_count": rows * written}
        arguments |= {name: arrays.room(name, (samples, rows, written), np.float32) for name in totals}
    else:
        half = numbers(samples, side // 2, side // 2, written)
        taps = np.array([0.125, 0.25, 0.5, 0.625], np.float32)
        signs = random.integers(0, 256, (samples, side, side, written // 8), dtype=np.uint8)
        kernel = torch.from_numpy(np.outer(taps, taps).astype(np.float64)).expand(written, 1, 4, 4)
        spread = torch.nn.functional.conv_transpose2d(
            torch.from_numpy(half.astype(np.float64)).permute(0, 3, 1, 2), kernel.flip(2, 3), stride=2, groups=written
        )[:, :, 1 : side + 1, 1 : side + 1]
        v = sums + spread.permute(0, 2, 3, 1).numpy()
        arguments |= {"from": arrays.add(half), "filter": arrays.add(taps), "left": 2, "level": 2.0}
        arguments |= {"signs": arrays.add(signs), "scale": arrays.add(np.full(samples, 0.75, np.float32))}
        arguments |= dict.fromkeys(("map", "wanted", "numbers"))
        if end == "joined":
            maps, others = numbers(*shape), numbers(*shape)
            factors = numbers(samples, side, side, 2, dtype=np.float32)
            v = v + 1.5 * (factors[..., :1] * maps + factors[..., 1:] * others.astype(np.float64))
            arguments |= {"map": arrays.add(maps), "wanted": arrays.add(others), "numbers": arrays.add(factors)}
            wanted["out"] = v
        bits = np.unpackbits(signs, axis=-1, bitorder="little")
        wanted["u"] = v * np.where(bits > 0, 1.0, 0.2)
    arguments |= {name: arrays.room(name, shape) for name in wanted}
    packed = layer.packed.forward if is_forward else layer.packed.backward
    launch.enqueue(KernelSequence(driver, kernels), int(arrays.add(x)), int(arrays.add(packed)), 0, arguments)
    for name, found in arrays.found().items():
        if name in totals:
            np.testing.assert_allclose(found.sum(1), totals[name], rtol=2e-3, atol=2e-4 * np.abs(totals[name]).max())
            continue
        error = np.abs(found - wanted[name])
        worst = np.unravel_index(error.argmax(), error.shape)
        assert error.max() < 1e-3 * np.abs(wanted[name]).max(), f"{name}: largest error at {worst}"


@pytest.fixture(autouse=True)
def _small_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_LEAST_STREAMED", 1)


@pytest.mark.parametrize(("case", "end"), RUNS)
def test_the_twin_has_the_results_of_torch(case: str, end: str) -> None:
    driver = TwinDriver().as_driver()
    side, inputs, outputs, samples = CASES[case]
    launch = launch_of(layer_of(side, inputs, outputs), end, samples, driver)
    kernel = LoadedKernel(launch.kernel, None, launch.kernel.stem, 0, 0, 0)
    check_results(driver, {launch.kernel: kernel}, launch, case, end)


@pytest.mark.gpu
@pytest.mark.parametrize(("case", "end"), RUNS)
def test_the_kernel_has_the_results_of_torch(gpu: Gpu, case: str, end: str) -> None:
    from gpu_backend.cuda.driver.gpu_driver import GpuDriver

    if gpu.compile_architecture != "sm_90a":
        pytest.skip("the kernel is for Hopper")
    side, inputs, outputs, samples = CASES[case]
    driver = GpuDriver(gpu.index)
    driver.enter()
    launch = launch_of(layer_of(side, inputs, outputs), end, samples, driver)
    compiled = compile_kernels((launch.kernel,), gpu.compile_architecture)
    assert not compiled.failures
    try:
        kernel = driver.load(compiled.kernels[launch.kernel].cubin, launch.kernel)
        check_results(driver, {launch.kernel: kernel}, launch, case, end)
    finally:
        driver.close()


def test_narrow_and_small_layers_are_for_other_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    choice = ConvChoice({up_conv_kernel(1)}, 132, TwinDriver().as_driver().tensor_map)
    for side, channels, samples, is_streamed in (
        (512, 64, 1, True),
        (256, 64, 1, True),
        (128, 64, 4, True),
        (128, 64, 3, False),
        (512, 72, 1, False),
    ):
        assert (choice.to_gradient(layer_of(side, channels, channels), samples) is not None) == is_streamed
    without = ConvChoice(set(), 132, TwinDriver().as_driver().tensor_map)
    assert without.to_gradient(layer_of(512, 64, 64), 1) is None


@pytest.mark.parametrize("samples", [1, 2, 16, 200])
@pytest.mark.parametrize(("side", "channels"), [(256, 64), (512, 64), (1024, 32), (1000, 48)])
@pytest.mark.parametrize("end", ENDS)
def test_strips_cover_the_picture_in_as_few_waves_as_they_can(end: str, side: int, channels: int, samples: int) -> None:
    launch = launch_of(layer_of(side, channels, channels), end, samples, TwinDriver().as_driver())
    warpgroups, rows = int(dict(launch.kernel.defines)["WARPGROUPS"]), launch.arguments["strip_rows"]
    assert isinstance(rows, int)
    strips = -(-side // 64) * -(-side // rows)
    assert launch.grid == (-(-strips // warpgroups), 1, samples)
    assert launch.threads == 128 * warpgroups
    # A way back leaves as many rows of sums a sample for any number of samples beside each other.
    assert launch.grid[0] * (min(samples, 2) if end == "way back" else samples) <= 132 or rows == side
    assert launch.shared_nbytes <= (227 << 10) - 1024

"""Times convolutions on the GPU: many launches in one captured graph, between two events, over random activations.

The launches of a graph take turns over copies of the weights that together do not fit the second-level cache, as the
weights of a whole network do not; activations stay where the kernel before would have left them.
"""

from __future__ import annotations

import contextlib
import math
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.compiling.compiler import CompiledKernel
from gpu_backend.cuda.driver.arguments import PackedArguments, pack_arguments
from gpu_backend.cuda.driver.interface import Driver, Event, LoadedKernel
from gpu_backend.cuda.errors import KernelError
from gpu_backend.cuda.schedule import Address, Constant, Region
from gpu_backend.cuda.tuning.isolated_conv import IsolatedConv, IsolatedConvs
from gpu_backend.ops.kernels.conv_tile import ConvShape, ConvTile
from gpu_backend.ops.kernels.e4m3 import ACTIVATION_SCALE, E4M3, to_e4m3
from gpu_backend.ops.kernels.recipe import KernelRecipe

LAUNCHES = 20
"""Launches of a graph."""

REPLAYS = 5
"""Timed replays, after one that warms up; the median counts."""

TOLERANCE = 4e-3
"""Largest difference from the plain kernel, as a share of the largest number: fp16 has 2^-11 of the number itself."""

BF16X3_TOLERANCE = 2e-4
"""The same of products in bf16x3, which exceed it without their low parts."""

_MOST_COPIES_NBYTES = 256 << 20
_PERIOD = (1 << 20) + 7
_OUTPUT = "tuning/output"


class _Compiling:
    """Implements `gpu_backend.cuda.tuning.tile_search.Preparation`.

    `take` gets the results once, on the thread that waits.
    """

    def __init__(
        self,
        recipes: Sequence[KernelRecipe],
        compiled: Callable[[KernelRecipe], bytes | KernelError],
        take: Callable[[Mapping[KernelRecipe, bytes | KernelError]], None],
        threads: int,
    ) -> None:
        self._team = ThreadPoolExecutor(threads, thread_name_prefix="compiling tiles")
        self._results = {recipe: self._team.submit(compiled, recipe) for recipe in recipes}
        self._take = take

    @property
    def is_done(self) -> bool:
        """Whether every kernel is compiled."""
        return all(result.done() for result in self._results.values())

    def wait(self) -> None:
        """Wait for every kernel; what an interrupt leaves is not begun."""
        try:
            results, self._results = {recipe: item.result() for recipe, item in self._results.items()}, {}
        except BaseException:
            self.stop()
            raise
        self._take(results)
        self._team.shutdown()

    def stop(self) -> None:
        """Compile no further kernel, and wait for running compilations. May be called twice."""
        self._team.shutdown(cancel_futures=True)


class DeviceTileTimer:
    """Implements `gpu_backend.cuda.tuning.tile_search.TileTimer` on a device that its thread has entered.

    `compiled` compiles a recipe, on any thread, and raises KernelError; `spare_cores` are left to other work.
    """

    def __init__(
        self,
        driver: Driver,
        convs: IsolatedConvs,
        compiled: Callable[[KernelRecipe], CompiledKernel],
        l2_nbytes: int,
        *,
        spare_cores: int = 0,
    ) -> None:
        self._driver = driver
        self._threads = max(1, (os.cpu_count() or 1) - spare_cores)
        self._convs = convs
        self._compiler = compiled
        self._l2_nbytes = l2_nbytes
        self._compiled: dict[KernelRecipe, bytes | KernelError] = {}
        self._kernels: dict[KernelRecipe, LoadedKernel] = {}
        self._memory: dict[tuple[str, tuple[int, ...], str], int] = {}
        self._constants: dict[str, int] = {}
        self._cut: dict[ConvTile, IsolatedConv] = {}
        self._shape: ConvShape | None = None
        self._expected: NDArray[np.float32] | None = None
        self._compiling: _Compiling | None = None
        self._events: list[Event] = []
        try:
            self._events.extend(driver.make_event() for _ in range(2))
        except BaseException:
            self.close()
            raise

    def prepare(self, shape: ConvShape, tiles: Sequence[ConvTile]) -> _Compiling:
        """Begin to compile what these tiles need, all at once."""
        self._turn_to(shape)
        recipes: dict[KernelRecipe, None] = {}
        for tile in tiles:
            with contextlib.suppress(KernelError):
                recipes[self._conv(shape, tile).launch.recipe] = None
        wanted = [recipe for recipe in recipes if recipe not in self._compiled]
        self._stop_compiling()
        self._compiling = _Compiling(wanted, self._compile, self._compiled.update, self._threads)
        return self._compiling

    def time_us(self, shape: ConvShape, tile: ConvTile) -> float:
        """Return the time of a launch within a run of launches."""
        self._turn_to(shape)
        conv = self._conv(shape, tile)
        kernel = self._loaded(conv.launch.recipe)
        weight = self._weight_of(conv).make()
        copies = min(LAUNCHES, max(1, self._l2_nbytes * 3 // 2 // weight.nbytes), _MOST_COPIES_NBYTES // weight.nbytes)
        places: list[int] = []
        try:
            places.extend(self._uploaded(weight) for _ in range(max(1, copies)))
            packed = [self._packed(conv, place) for place in places]
            return self._measured_us(conv, kernel, packed)
        finally:
            for place in places:
                self._driver.release(place)

    def problem(self, shape: ConvShape, tile: ConvTile) -> str:
        """Return how the result differs from the plain kernel's; empty if it is correct."""
        self._turn_to(shape)
        if self._expected is None:
            self._expected = self._output(self._convs.plain(shape), shape)
        conv = self._conv(shape, tile)
        found = self._output(conv, shape)
        tolerance = BF16X3_TOLERANCE if shape.operands == "bf16x3" else TOLERANCE
        sentence = difference(found, self._expected, tolerance)
        if not sentence and "rgb_parts" in conv.launch.arguments:
            expected_rgb = self._expected_rgb(conv, self._expected)
            sentence = difference(self._rgb_parts(conv, shape.batch), expected_rgb, tolerance)
            sentence = sentence and f"toRGB: {sentence}"
        return sentence

    def close(self) -> None:
        """Free everything. Waits for kernels that are being compiled. May be called twice."""
        self._stop_compiling()
        self._forget_shape()
        for kernel in self._kernels.values():
            self._driver.unload(kernel)
        self._kernels.clear()
        for event in self._events:
            self._driver.release_event(event)
        self._events.clear()

    def _measured_us(self, conv: IsolatedConv, kernel: LoadedKernel, packed: Sequence[PackedArguments]) -> float:
        start, end = self._events
        launch = conv.launch

        def work() -> None:
            self._driver.record(start)
            for number in range(LAUNCHES):
                arguments = packed[number % len(packed)]
                self._driver.launch(kernel, launch.grid, launch.block, launch.shared_nbytes, arguments)
            self._driver.record(end)

        graph = self._driver.capture(work)
        try:
            times = []
            for _ in range(1 + REPLAYS):
                self._driver.replay(graph)
                self._driver.wait(end)
                times.append(self._driver.elapsed_ms(start, end))
        finally:
            self._driver.release_graph(graph)
        return statistics.median(times[1:]) * 1e3 / LAUNCHES

    def _output(self, conv: IsolatedConv, shape: ConvShape) -> NDArray[np.float32]:
        """Run once and return the output, real channels only.

        A convolution stores it before the next layer's style; an up-convolution stores it with that style only.
        """
        attributes = conv.step.attributes
        extents = (shape.batch, shape.side, shape.side, shape.cout)
        given = self._region(conv, "x").dtype
        region = Region(_OUTPUT, extents, "float16" if given == E4M3 else given, "output")
        arguments = dict(conv.launch.arguments)
        arguments["y_raw" if shape.kind == "conv" else "y"] = Address(_OUTPUT, "region")
        named = {argument.name for argument in arguments.values() if isinstance(argument, Address)}
        regions = (*(item for item in conv.regions if item.name in named), region)
        changed = replace(conv, launch=replace(conv.launch, arguments=arguments), regions=regions)
        self._run_once(changed)
        output = np.empty(region.shape, region.dtype)
        self._driver.download(output, self._placed(region, changed))
        return output[..., : attributes.out_channels].astype(np.float32)

    def _rgb_parts(self, conv: IsolatedConv, batch: int) -> NDArray[np.float32]:
        """Return the picture that the last run left, the sum of all parts."""
        region = self._region(conv, "rgb_parts")
        parts = np.empty(region.shape, np.float32)
        self._driver.download(parts, self._placed(region, conv))
        side = conv.step.attributes.resolution
        return np.asarray(parts.reshape(-1, batch, side, side, region.shape[-1]).sum(0), np.float32)

    def _expected_rgb(self, conv: IsolatedConv, raw: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the picture that the block's output gives: sum over channels of weight, style and output."""
        weight_at, style_at = (
            conv.launch.arguments["rgb_weight"],
            conv.launch.arguments["rgb_style"],
        )
        assert isinstance(weight_at, Address)
        assert isinstance(style_at, Address)
        constant = next(item for item in conv.constants if item.key == weight_at.name)
        channels = raw.shape[-1]
        image_channels = self._region(conv, "rgb_parts").shape[-1]
        weight = np.asarray(constant.make(), np.float32).reshape(image_channels, -1)[:, :channels]
        styles = self._made_up(self._region(conv, "rgb_style"), conv)
        first = style_at.offset // 4
        scaled = weight[None] * styles[:, None, first : first + channels]
        return np.asarray(np.einsum("bhwo,bio->bhwi", raw, scaled, optimize=True), np.float32)

    def _run_once(self, conv: IsolatedConv) -> None:
        kernel = self._loaded(conv.launch.recipe)
        place = self._uploaded(self._weight_of(conv).make())
        try:
            launch = conv.launch
            packed = self._packed(conv, place)
            self._driver.launch(kernel, launch.grid, launch.block, launch.shared_nbytes, packed)
            self._driver.record(self._events[1])
            self._driver.wait(self._events[1])
        finally:
            self._driver.release(place)

    def _packed(self, conv: IsolatedConv, weight_at: int) -> PackedArguments:
        weight = self._weight_of(conv).key
        regions = {region.name: self._placed(region, conv) for region in conv.regions}
        for constant in conv.constants:
            if constant.key != weight and constant.key not in self._constants:
                self._constants[constant.key] = self._uploaded(constant.make())
        constants = {**self._constants, weight: weight_at}
        return pack_arguments(conv.launch.recipe, conv.launch.arguments, regions, constants, self._driver.tensor_map)

    def _placed(self, region: Region, conv: IsolatedConv) -> int:
        """Return a region's address; its content is generated on first use."""
        key = (region.name, region.shape, region.dtype)
        if key not in self._memory:
            self._memory[key] = self._uploaded(self._made_up(region, conv))
        return self._memory[key]

    def _made_up(self, region: Region, conv: IsolatedConv) -> NDArray[Any]:
        """Return numbers for a region: normal activations, styles and the like about 1, zeros where counters are.

        They depend on the first argument that takes the region, so that the fused and the plain kernel get the same.
        """
        if region.role == "zeroed" or (np.dtype(region.dtype).kind != "f" and region.dtype != E4M3):
            return np.zeros(region.shape, region.dtype)
        arguments = conv.launch.arguments.items()
        names = (name for name, one in arguments if isinstance(one, Address) and one.name == region.name)
        name = next(names)
        generator = np.random.default_rng(list(name.encode()))
        count = min(math.prod(region.shape), _PERIOD)
        is_x = name == "x"
        few = generator.standard_normal(count, np.float32) if is_x else generator.uniform(0.5, 1.5, count)
        stored: NDArray[Any]
        if region.dtype == E4M3:
            stored = to_e4m3(few.astype(np.float32) * np.float32(ACTIVATION_SCALE))
        else:
            stored = few.astype(region.dtype)
        numbers = np.resize(stored, region.shape)
        if is_x:
            numbers[..., conv.step.attributes.in_channels :] = 0
        return numbers

    def _region(self, conv: IsolatedConv, name: str) -> Region:
        argument = conv.launch.arguments[name]
        assert isinstance(argument, Address)
        return next(region for region in conv.regions if region.name == argument.name)

    def _weight_of(self, conv: IsolatedConv) -> Constant:
        argument = conv.launch.arguments["weight"]
        assert isinstance(argument, Address)
        return next(constant for constant in conv.constants if constant.key == argument.name)

    def _uploaded(self, array: NDArray[Any]) -> int:
        place = self._driver.reserve(max(array.nbytes, 1))
        try:
            self._driver.upload(place, np.ascontiguousarray(array))
        except BaseException:
            self._driver.release(place)
            raise
        return place

    def _loaded(self, recipe: KernelRecipe) -> LoadedKernel:
        if recipe not in self._kernels:
            if recipe not in self._compiled:
                self._compiled[recipe] = self._compile(recipe)
            cubin = self._compiled[recipe]
            if isinstance(cubin, KernelError):
                raise cubin
            self._kernels[recipe] = self._driver.load(cubin, recipe)
        return self._kernels[recipe]

    def _conv(self, shape: ConvShape, tile: ConvTile) -> IsolatedConv:
        if tile not in self._cut:
            self._cut[tile] = self._convs.fused(shape, tile)
        return self._cut[tile]

    def _compile(self, recipe: KernelRecipe) -> bytes | KernelError:
        try:
            kernel = self._compiler(recipe)
        except KernelError as error:
            return error
        return KernelError(f"it spills {kernel.spill_nbytes} bytes") if kernel.spill_nbytes else kernel.cubin

    def _stop_compiling(self) -> None:
        if self._compiling is not None:
            self._compiling.stop()
            self._compiling = None

    def _turn_to(self, shape: ConvShape) -> None:
        if shape != self._shape:
            self._forget_shape()
            self._shape = shape

    def _forget_shape(self) -> None:
        for place in (*self._memory.values(), *self._constants.values()):
            self._driver.release(place)
        self._memory.clear()
        self._constants.clear()
        self._cut.clear()
        self._expected = None


def difference(found: NDArray[np.float32], expected: NDArray[np.float32], tolerance: float = TOLERANCE) -> str:
    """Return how two results differ; empty if within the tolerance."""
    if not np.isfinite(found).all():
        return "not all numbers are finite"
    largest = float(np.abs(expected).max())
    error = float(np.abs(found - expected).max())
    return f"off by {error:.3g} where numbers go up to {largest:.3g}" if error > tolerance * largest else ""

"""What every layer gave, for somebody who wants to look into the network: one run, launch by launch.

Layers do not leave their outputs behind in a run. A convolution, or the filtered activation after it, runs once more
for its output before the next layer's style and without a resnet's skip, a StyleGAN1's normalisation for its output
whether or not a picture rides along, a toRGB once more without the picture before it and its gain; a skip, which stays
small on the GPU, is doubled here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.arguments import PackedArguments, pack_arguments
from gpu_backend.cuda.driver import Driver, LoadedKernel
from gpu_backend.cuda.launches.filtered_lrelu import NEXT_STYLE
from gpu_backend.cuda.memory_pool import MemoryPool
from gpu_backend.cuda.schedule import Address, Argument, Launch, Region, Schedule
from gpu_backend.cuda.style_layout import pad8
from gpu_backend.ops.skip_conv import SkipConv
from gpu_backend.ops.upfirdn import doubling_left_pad, resampling_matrix
from gpu_backend.plan.plan import Step

_Y, _Y_RAW, _NEXT_STYLE, _SKIP = 2, 3, 5, 12
_FILTERED = 1
_NORMALIZED = 1
_PREVIOUS, _IMAGE, _PIXELS, _FLAGS, _GAIN = 4, 6, 7, 8, 11
"""Places among the arguments of convolutions, filtered activations, normalisations and ``to_rgb``."""

_CONVOLUTIONS = frozenset(
    {"modulated_conv", "modulated_up_conv", "plain_modulated_conv", "plain_modulated_up_conv"},
)
_FILTERS = frozenset({"filtered_lrelu", "plain_filtered_lrelu"})
_ADAIN = ("adain_input", "adain_conv", "adain_up_conv")
_BORROWED, _BORROWED_SKIP = "observed", "observed/skip"
"""Names for memory that a run does not have."""


def observe_layers(
    driver: Driver,
    pool: MemoryPool,
    schedule: Schedule,
    kernels: Sequence[LoadedKernel],
    regions: Mapping[str, int],
    constants: Mapping[str, int],
) -> dict[str, NDArray[np.float32]]:
    """Run a schedule and return layer name -> what it gave, (batch, channels, height, width), in execution order.

    Inputs are on the device. `kernels` are those of the launches, one for each.
    """
    observer = _Observer(driver, pool, schedule, regions, constants)
    observed: dict[str, NDArray[np.float32]] = {}
    for launch, kernel in zip(schedule.launches, kernels, strict=True):
        found = observer.run(launch, kernel)
        if found is not None:
            observed[launch.layer] = found
    order = [step.layer for step in schedule.plan.steps]
    return {layer: observed[layer] for layer in dict.fromkeys(order) if layer in observed}


class _Observer:
    def __init__(
        self,
        driver: Driver,
        pool: MemoryPool,
        schedule: Schedule,
        places: Mapping[str, int],
        constants: Mapping[str, int],
    ) -> None:
        self._driver = driver
        self._pool = pool
        self._places = places
        self._constants = constants
        self._regions: dict[str, Region] = {region.name: region for region in schedule.regions}
        self._steps: dict[tuple[str, str], Step] = {(step.layer, step.op): step for step in schedule.plan.steps}

    def run(self, launch: Launch, kernel: LoadedKernel) -> NDArray[np.float32] | None:
        normal = next((self._steps[launch.layer, op] for op in _ADAIN if (launch.layer, op) in self._steps), None)
        if normal is not None:
            return self._normalized(launch, kernel, normal)
        if launch.recipe.stem in _CONVOLUTIONS:
            skip = self._steps.get((launch.layer, "skip_conv"))
            return self._convolution(launch, kernel) if skip is None else self._skip(launch, kernel, skip)
        if launch.recipe.stem in _FILTERS:
            return self._filtered(launch, kernel)
        if launch.recipe.stem == "to_rgb":
            return self._to_rgb(launch, kernel)
        self._start(launch, kernel, launch.arguments, {})
        return None

    def _convolution(self, launch: Launch, kernel: LoadedKernel) -> NDArray[np.float32]:
        stem = launch.recipe.stem.removeprefix("plain_")
        step = self._steps.get((launch.layer, stem)) or self._steps[launch.layer, "fourier_features"]
        shape, channels = self._stored(step, launch)
        skip = launch.arguments[_SKIP]
        zeros: NDArray[Any] | None = None
        if isinstance(skip, Address):  # of another layer; its kernel has no way to leave it out
            region = self._regions[skip.name]
            zeros = np.zeros(region.shape, region.dtype)
        # A fused up-convolution stores one of the two: the kernel is compiled for that.
        is_fused_up = launch.recipe.stem == "modulated_up_conv"
        unstyled = {_Y: _BORROWED, _NEXT_STYLE: None} if is_fused_up else {_Y_RAW: _BORROWED}
        values = self._borrow(launch, kernel, shape, self._dtype(launch.arguments[0]), unstyled, zeros)
        self._start(launch, kernel, launch.arguments, {})
        return _channels_first(values[..., :channels])

    def _filtered(self, launch: Launch, kernel: LoadedKernel) -> NDArray[np.float32]:
        shape, channels = self._stored(self._steps[launch.layer, "filtered_lrelu"], launch)
        unstyled = {_FILTERED: _BORROWED, NEXT_STYLE: None}
        values = self._borrow(launch, kernel, shape, self._dtype(launch.arguments[0]), unstyled)
        self._start(launch, kernel, launch.arguments, {})
        return _channels_first(values[..., :channels])

    def _normalized(self, launch: Launch, kernel: LoadedKernel, step: Step) -> NDArray[np.float32] | None:
        self._start(launch, kernel, launch.arguments, {})
        if launch.recipe.stem not in ("adain_input", "adain", "plain_adain"):
            return None
        batch, side, _, channels = step.attributes.output_shape(self._regions["styles"].shape[0])
        dtype = "float16" if dict(launch.recipe.defines)["HALF"] == "1" else "float32"
        shape = batch, side, side, pad8(channels)
        values = self._borrow(launch, kernel, shape, dtype, {_NORMALIZED: _BORROWED})
        return _channels_first(values[..., :channels])

    def _stored(self, step: Step, launch: Launch) -> tuple[tuple[int, ...], int]:
        """Return the shape of a step's output as it is stored, and how many channels of it there are."""
        batch, side, _, channels = step.attributes.output_shape(self._batch(launch))
        return (batch, side, side, pad8(channels)), channels

    def _skip(self, launch: Launch, kernel: LoadedKernel, step: Step) -> NDArray[np.float32]:
        settings: SkipConv = step.attributes
        self._start(launch, kernel, launch.arguments, {})
        small = launch.arguments[_Y]
        assert isinstance(small, Address)
        side = settings.resolution // 2
        shape = (self._batch(launch), side, side, pad8(settings.out_channels))
        values = self._fetch(shape, self._dtype(small), self._places[small.name])
        return doubled(_channels_first(values[..., : settings.out_channels]), settings.taps) * np.float32(settings.gain)

    def _to_rgb(self, launch: Launch, kernel: LoadedKernel) -> NDArray[np.float32]:
        image = launch.arguments[_IMAGE]
        assert isinstance(image, Address)
        alone = {_PREVIOUS: None, _IMAGE: _BORROWED, _PIXELS: None, _FLAGS: None, _GAIN: np.float32(1)}
        values = self._borrow(launch, kernel, self._regions[image.name].shape, "float32", alone)
        self._start(launch, kernel, launch.arguments, {})
        return _channels_first(values)

    def _borrow(
        self,
        launch: Launch,
        kernel: LoadedKernel,
        shape: tuple[int, ...],
        dtype: str,
        changes: Mapping[int, str | np.float32 | None],
        skip: NDArray[Any] | None = None,
    ) -> NDArray[Any]:
        """Start a launch with other arguments, one of which is memory for what comes back."""
        arguments = list(launch.arguments)
        for place, given in changes.items():
            arguments[place] = Address(given, "region") if isinstance(given, str) else given
        borrowed: dict[str, int] = {}
        try:
            borrowed[_BORROWED] = self._pool.reserve(int(np.prod(shape)) * np.dtype(dtype).itemsize)
            if skip is not None:
                arguments[_SKIP] = Address(_BORROWED_SKIP, "region")
                borrowed[_BORROWED_SKIP] = self._pool.reserve(skip.nbytes)
                self._driver.upload(borrowed[_BORROWED_SKIP], skip)
            self._start(launch, kernel, arguments, borrowed)
            return self._fetch(shape, dtype, borrowed[_BORROWED])
        finally:
            for address in borrowed.values():
                self._pool.release(address)

    def _start(
        self, launch: Launch, kernel: LoadedKernel, arguments: Sequence[Argument], borrowed: Mapping[str, int]
    ) -> None:
        packed: PackedArguments = pack_arguments(
            arguments, {**self._places, **borrowed}, self._constants, self._driver.tensor_map
        )
        self._driver.launch(kernel, launch.grid, launch.block, launch.shared_nbytes, packed)

    def _fetch(self, shape: tuple[int, ...], dtype: str, address: int) -> NDArray[Any]:
        array = np.empty(shape, dtype)
        self._driver.download(array, address)
        return array

    def _dtype(self, argument: Argument) -> str:
        assert isinstance(argument, Address)
        return self._regions[argument.name].dtype

    def _batch(self, launch: Launch) -> int:
        source = launch.arguments[0]
        assert isinstance(source, Address)
        return self._regions[source.name].shape[0]


def doubled(x: NDArray[np.float32], taps: Sequence[float]) -> NDArray[np.float32]:
    """U(x) of (batch, channels, height, width): twice the side, gain 4."""
    height, width = x.shape[-2:]
    left = doubling_left_pad(len(taps))
    rows, columns = (resampling_matrix(size, 2 * size, taps, up=2, left=left, gain=2.0) for size in (height, width))
    return np.asarray(rows @ x @ columns.T, np.float32)


def _channels_first(values: NDArray[Any]) -> NDArray[np.float32]:
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2).astype(np.float32))

"""A launch of a convolution, and what launches of all kernels have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gpu_backend.cuda.driver.arguments import EncodeMap, Value
from gpu_backend.cuda.schedule import Address, TensorMap
from gpu_backend.gradients.gpu.kernels import CONV_COLUMNS, GradientKernel
from gpu_backend.gradients.gpu.placed import PlacedConv
from gpu_backend.gradients.gpu.sequence import KernelSequence
from gpu_backend.ops.kernels.recipe import KernelRecipe

DEPTH = 64
"""Input channels of a box of TMA."""
ROW_NBYTES = 2 * DEPTH
HOPPER_THREADS, WARPGROUP = 256, 128
_REDUCE_THREADS = 128
_NO_END: Mapping[str, Value] = {
    **dict.fromkeys(("style", "demod", "noise", "bias", "z", "to", "style_sums", "demod_sums")),
    **dict.fromkeys(("style_count", "demod_count", "sum_count"), 0),
    **dict.fromkeys(("unit", "gain"), 1.0),
    "clamp": np.inf,
}
"""What a convolution on Hopper takes where it goes on with its sums, for none of it."""


@dataclass(frozen=True, slots=True, eq=False)
class ConvLaunch:
    """A launch of a convolution without its arrays.

    Attributes
    ----------
    slices
        Parts of K whose sums are not added up.
    arguments
        All but x, weight, sums, and what becomes of the sums elsewhere.
    maps
        Parameter -> what TMA copies of the array that the map's address names, as `enqueue` does.
    encode
        Makes these; `Driver.tensor_map`.
    rows
        Of style_sums and demod_sums that it leaves, if it does.
    """

    kernel: KernelRecipe
    grid: tuple[int, int, int]
    threads: int
    slices: int
    arguments: Mapping[str, Value]
    shared_nbytes: int
    encode: EncodeMap
    maps: Mapping[str, TensorMap] = field(default_factory=dict)
    rows: int = 0

    def enqueue(
        self,
        sequence: KernelSequence,
        x: int,
        weight: int,
        to: int,
        end: Mapping[str, Value] | None = None,
        *,
        halved: int = 0,
    ) -> None:
        """Enqueue it with the addresses of its arrays, and with what becomes of its sums elsewhere.

        `to` is that of its sums, or of fp16 results.
        """
        arrays = {"x": x, "weight": weight, "sums": to, "t": to, "out": to, "halved": halved}
        maps = {key: np.void(self.encode(arrays[made.address.name], made)) for key, made in self.maps.items()}
        taken = self.kernel.parameters.names or ()
        places = {name: np.uint64(address) for name, address in arrays.items() if name in taken}
        arguments: dict[str, Value] = {**maps, **places, **self.arguments, **(end or {})}
        sequence.launch(self.kernel, self.grid, (self.threads, 1, 1), arguments, shared_nbytes=self.shared_nbytes)


def add_slices(sequence: KernelSequence, sums: int, numbers: int, slices: int) -> None:
    """Enqueue the sum of slices of so many numbers, a multiple of four, into the first."""
    quads = numbers // 4
    sequence.launch(
        GradientKernel("gradient_reduce"),
        (-(-quads // _REDUCE_THREADS), 1, 1),
        (_REDUCE_THREADS, 1, 1),
        {"sums": np.uint64(sums), "quads": quads, "slices": slices},
    )


def columns_and_stages(kernel: KernelRecipe) -> tuple[int, int]:
    """Return the channels of a kernel's tile, and how many stages of weights it holds in shared memory."""
    macros = dict(kernel.defines)
    return int(macros["COLUMNS"]), int(macros["STAGES"])


def no_end(kernel: KernelRecipe) -> dict[str, Value]:
    """Return what a kernel takes for the end of its sums, for none."""
    return {name: _NO_END[name] for name in kernel.parameters.names or () if name in _NO_END}


def weight_map(layer: PlacedConv, inputs: int, outputs: int, columns: int) -> TensorMap:
    """Return how TMA copies the weights of one tap of a tile of so many channels."""
    return TensorMap(Address("weight", "region"), (inputs, outputs, len(layer.packed.forward), 1), (DEPTH, columns, 1))


def channels_of(layer: PlacedConv, *, is_backward: bool) -> tuple[int, int]:
    """Return the channels that a convolution, or its adjoint, reads and writes."""
    return (layer.outputs, layer.inputs) if is_backward else (layer.inputs, layer.outputs)


def geometry_arguments(layer: PlacedConv, *, is_backward: bool) -> dict[str, Value]:
    """Return what gradient_conv and discriminator_conv take of a convolution's geometry, or of its adjoint's."""
    inputs, outputs = channels_of(layer, is_backward=is_backward)
    geometry = layer.backward if is_backward else layer.forward
    return {
        "parities": np.uint64(layer.backward_parities if is_backward else layer.forward_parities),
        "in_side": geometry.in_side,
        "cin": inputs,
        "cout": outputs,
        "in_stride": geometry.in_stride,
        "out_stride": geometry.out_stride,
        "out_side": geometry.out_side,
    }


def columns_of(outputs: int, tiles: tuple[int, ...] = CONV_COLUMNS) -> int:
    """Return the channels of the narrowest tile that holds all of them, or of the widest tile."""
    return min((columns for columns in tiles if columns >= outputs), default=max(tiles))

"""A network whose arrays lie on a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_backend.gradients.gpu.memory import DeviceArrays
from gpu_backend.gradients.gpu.packed_network import PackedNetwork
from gpu_backend.gradients.gpu.weights import (
    ConvGeometry,
    PackedConv,
    conv_geometry,
    padded,
    skip_geometry,
    up_geometry,
)
from gpu_backend.model.spec import LayerKind, LayerSpec
from gpu_backend.ops.bias_act import BiasAct

COLOURS = 3
"""Of a picture."""
_GEOMETRIES: dict[LayerKind, Callable[..., ConvGeometry]] = {
    "conv": conv_geometry,
    "up_conv": up_geometry,
    "skip": skip_geometry,
}


@dataclass(frozen=True, slots=True, eq=False)
class PlacedConv:
    """One convolution on the device, or a resnet's skip; addresses unless said otherwise.

    Attributes
    ----------
    packed
        Of a skip, with its gain.
    inputs, outputs
        Channels, padded.
    source
        Side of its input.
    noise
        0 for none.
    x
        Its input, times its style; of a skip, the block's input.
    z
        The layer's output; of a skip, that of its block, which is the sum of the last layer's and the skip's.
    """

    spec: LayerSpec
    act: BiasAct
    packed: PackedConv
    inputs: int
    outputs: int
    source: int
    forward_weight: int
    backward_weight: int
    bias: int
    noise: int
    forward: ConvGeometry
    forward_parities: int
    backward: ConvGeometry
    backward_parities: int
    x: int
    z: int

    @property
    def is_up(self) -> bool:
        """Whether it doubles the side."""
        return self.spec.kind == "up_conv"

    @property
    def is_skip(self) -> bool:
        """Whether it is the skip of a resnet's block."""
        return self.spec.kind == "skip"

    @property
    def clamp(self) -> float:
        """Bound of its activations; infinite for none."""
        return np.inf if self.act.clamp is None else self.act.clamp

    @property
    def stored_clamp(self) -> float:
        """The bound as fp16 activations have it."""
        return float(np.float16(self.clamp))


@dataclass(frozen=True, slots=True, eq=False)
class PlacedToRgb:
    """A toRGB layer on the device; addresses unless said otherwise.

    Attributes
    ----------
    planes
        What it adds to the picture, before its clamp, (samples, 3, side, side).
    picture, gradient
        The picture so far, and the gradient of it, shaped alike.
    """

    spec: LayerSpec
    weight: int
    bias: int
    planes: int
    picture: int
    gradient: int

    @property
    def clamp(self) -> float:
        """Bound of what it adds; infinite for none."""
        return np.inf if self.spec.conv_clamp is None else self.spec.conv_clamp * self.spec.gain


class PlacedNetwork:
    """The layers up to a side, their tables, and arrays of all layers; addresses unless said otherwise.

    Parameters
    ----------
    arrays
        Own the memory.
    samples, few_side, more_samples
        As of `GpuNetwork`.

    Attributes
    ----------
    layers, rgbs
        Convolutions and toRGB layers in order.
    skips
        Place of a block's last layer in `layers` -> the skip that is added to its output.
    table
        Where each layer's numbers lie in `styles`, `demods` and `partials`; toRGB layers come last.
    ws, ws_gradient
        Rows of w and their gradient, (samples, num_ws, w_dim) fp32.
    filter
        Taps, flipped, since the filter is a correlation, with the gain of 2 an axis.
    """

    def __init__(
        self,
        arrays: DeviceArrays,
        packed: PackedNetwork,
        samples: int,
        few_side: int,
        more_samples: int,
    ) -> None:
        self._arrays, self._packed = arrays, packed
        self._samples, self._few_side, self._more_samples = samples, few_side, more_samples
        spec = packed.spec
        self.layers = [self._placed(layer) for layer in packed.of_kind("conv", "up_conv")]
        self.skips: dict[int, PlacedConv] = {}
        for layer in packed.of_kind("skip"):
            # The block before has its sum already.
            x = self.output(self.last(layer.resolution // 2))
            self.skips[self.last(layer.resolution)] = self._placed(layer, x=x)
        self.table = table = packed.table
        most = self._more_samples
        self.table_at = arrays.upload(table.layers)
        self.affine, self.affine_bias = arrays.upload(table.affine), arrays.upload(table.affine_bias)
        self.half_affine, self.squares = arrays.upload(table.half_affine), arrays.upload(table.squares)
        self.styles, self.demods = (arrays.empty(4 * most * count) for count in (table.styles, table.demods))
        self.partials = arrays.empty(4 * most * table.sums)
        self.ws, self.ws_gradient = (arrays.empty(4 * most * spec.num_ws * spec.w_dim) for _ in range(2))
        self.constants = arrays.upload(np.broadcast_to(packed.constant, (most, *packed.constant.shape)))
        self.constant_size = packed.constant.size
        self.filter = arrays.upload(2.0 * np.array(spec.resample_filter[::-1], np.float32))
        self.rgbs = [self._placed_rgb(layer) for layer in packed.of_kind("to_rgb")]

    def last(self, block: int) -> int:
        """Return the place of a block's last convolution."""
        return max(index for index, layer in enumerate(self.layers) if layer.spec.resolution == block)

    def output(self, index: int) -> int:
        """Return what the layers after a convolution read: its activations, or the sum with its block's skip."""
        return self.skips[index].z if index in self.skips else self.layers[index].z

    def skip_after(self, index: int) -> PlacedConv | None:
        """Return the skip that reads a convolution's output."""
        return self.skips.get(index + 2)

    def most_samples(self, block: int) -> int:
        """Return how many samples a block's arrays hold."""
        return self._more_samples if block <= self._few_side else self._samples

    def rgbs_up_to(self, side: int) -> list[PlacedToRgb]:
        """Return the toRGB layers whose pictures make that of a side."""
        return [rgb for rgb in self.rgbs if rgb.spec.resolution <= side]

    def rgb_after(self, index: int) -> PlacedToRgb | None:
        """Return the toRGB layer that reads a convolution's output."""
        side = self.layers[index].spec.resolution
        return next((rgb for rgb in self.rgbs if rgb.spec.resolution == side and index == self.last(side)), None)

    def row_table(self, block: int, layers: NDArray[np.int32], *, of_picture: bool) -> NDArray[np.int32]:
        """Return gradient_rows' table of the layers up to a block, (num_ws, most layers of a row of w, LAYER_INTS).

        Where a row of w has fewer layers, zeros follow.

        Parameters
        ----------
        layers
            The table of all layers.
        of_picture
            With toRGB layers.
        """
        rgbs = [rgb.spec for rgb in self.rgbs_up_to(block)] if of_picture else []
        convs = [layer.spec for layer in self.layers[: self.last(block) + 1]]
        of_rows: list[list[NDArray[np.int32]]] = [[] for _ in range(self._packed.spec.num_ws)]
        for layer in [*convs, *rgbs]:
            of_rows[layer.w_index].append(layers[self.table.rows[layer.name]])
        found = np.zeros((len(of_rows), max(map(len, of_rows)), layers.shape[1]), np.int32)
        for row, of_row in zip(found, of_rows, strict=True):
            if of_row:
                row[: len(of_row)] = of_row
        return found

    def demods_at(self, layer: LayerSpec) -> np.uint64:
        """Return where a layer's demodulation factors are."""
        return np.uint64(self.demods + 4 * self._row(layer, 3))

    def styles_at(self, layer: LayerSpec) -> int:
        """Return where a layer's styles are."""
        return self.styles + 4 * self._row(layer, 2)

    def sums_at(self, layer: LayerSpec, column: int) -> np.uint64:
        """Return where the partial sums are that a column of the table names."""
        return np.uint64(self.partials + 4 * self._row(layer, column))

    def _row(self, layer: LayerSpec, column: int) -> int:
        return int(self.table.layers[self.table.rows[layer.name], column])

    def _placed_rgb(self, layer: LayerSpec) -> PlacedToRgb:
        arrays = self._arrays
        weight, bias = self._packed.rgbs[layer.name]
        nbytes = 4 * self.most_samples(layer.resolution) * COLOURS * layer.resolution**2
        return PlacedToRgb(
            spec=layer,
            weight=arrays.upload(weight),
            bias=arrays.upload(bias),
            planes=arrays.empty(nbytes),
            picture=arrays.empty(nbytes),
            gradient=arrays.empty(nbytes),
        )

    def _placed(self, layer: LayerSpec, *, x: int | None = None) -> PlacedConv:
        """Place a layer; its input too, unless that is `x`."""
        arrays, samples = self._arrays, self.most_samples(layer.resolution)
        packed, noise = self._packed.convs[layer.name], self._packed.noise.get(layer.name)
        source = layer.resolution // (1 if layer.kind == "conv" else 2)
        geometry = _GEOMETRIES[layer.kind]
        forward, backward = geometry(source, backward=False), geometry(source, backward=True)
        inputs, outputs = padded(layer.in_channels), padded(layer.out_channels)
        return PlacedConv(
            spec=layer,
            act=BiasAct.of_layer(layer.activation, layer.gain, layer.conv_clamp),
            packed=packed,
            inputs=inputs,
            outputs=outputs,
            source=source,
            forward_weight=arrays.upload(packed.forward),
            backward_weight=arrays.upload(packed.backward),
            bias=arrays.upload(packed.bias),
            noise=0 if noise is None else arrays.upload(noise),
            forward=forward,
            forward_parities=arrays.upload(forward.parities),
            backward=backward,
            backward_parities=arrays.upload(backward.parities),
            x=arrays.empty(2 * samples * inputs * source**2) if x is None else x,
            z=arrays.empty(2 * samples * outputs * layer.resolution**2),
        )

"""A StyleGAN2 on a GPU up to a block, forward with what the way back needs, and backward to the rows of w.

Per layer, with the style s, x = s * z of the layer before, and T the transposed convolution or the convolution::

    y = T(x),   v = d * filter(y) + noise + bias,   z = clamp(lrelu(v) gain)               forward
    u = dz * slope * d,   g = T^T(filter^T(u)),   dz of the layer before = s * g            backward
    ds = sum over pixels of (z of the layer before) * g  -  s * sum_o e_o Q_o,   e = dd d^3,   dw = A^T ds

Activations are fp16, gradients bf16, sums and everything small fp32. Arrays of pictures are [row][column][channel].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.driver.arguments import PackedArguments, Value
from gpu_backend.cuda.driver.interface import Driver, LoadedKernel
from gpu_backend.gradients.gpu.kernels import GradientKernel
from gpu_backend.gradients.gpu.memory import DeviceArrays
from gpu_backend.gradients.gpu.weights import (
    ConvGeometry,
    PackedConv,
    activation_blocks,
    conv_geometry,
    pack_conv,
    padded,
    pixels_per_block,
    style_table,
    up_geometry,
)
from gpu_backend.model.spec import LayerSpec, StyleGAN2Spec
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.upfirdn import doubling_left_pad, up_conv_left_pad

_CONV_ROWS, _CONV_COLUMNS, _CONV_DEPTH, _CONV_THREADS = 128, 128, 64, 128
_CONV_SHARED_NBYTES = 3 * (_CONV_ROWS + _CONV_COLUMNS) * _CONV_DEPTH * 2
_MOST_SLICES = 32


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """One convolution on the device; addresses unless said otherwise."""

    spec: LayerSpec
    act: BiasAct
    packed: PackedConv
    inputs: int
    outputs: int
    source: int
    """Side of its input."""
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
        return self.spec.kind == "up_conv"


class GpuNetwork:
    """The layers up to a side, on one device.

    Parameters
    ----------
    kernels
        Those of `kernels_of_step`, loaded; they belong to the caller.
    weights
        Official state-dict names to arrays.
    noise
        Layer name -> (side, side), strength included; a layer left out gets none.
    side
        The last layers' resolution.
    multiprocessors
        Of the device.
    """

    def __init__(
        self,
        driver: Driver,
        kernels: Mapping[KernelRecipe, LoadedKernel],
        spec: StyleGAN2Spec,
        weights: Mapping[str, NDArray[np.float32]],
        noise: Mapping[str, NDArray[np.float32]],
        side: int,
        multiprocessors: int,
    ) -> None:
        self._driver, self._kernels, self.spec = driver, kernels, spec
        self._multiprocessors = multiprocessors
        self._arrays = DeviceArrays(driver)
        try:
            self._place(weights, noise, side)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free the memory. May be called twice."""
        self._arrays.close()

    def features(self, block: int) -> tuple[int, int, int]:
        """Return a block's last activations: their address, channels and channels with padding."""
        layer = self._layers[self._last(block)]
        return layer.z, layer.spec.out_channels, layer.outputs

    def forward(self, block: int, *, with_pictures: bool = False) -> None:
        """Enqueue the layers up to a block, from the rows at `ws`."""
        self._styles(len(self._table.layers) if with_pictures else len(self._layers))
        last = self._last(block)
        for index, layer in enumerate(self._layers[: last + 1]):
            following = self._layers[index + 1] if index < last else None
            slices = self._convolve(layer, layer.forward, layer.forward_parities, is_backward=False)
            side, taps = layer.spec.resolution, len(self.spec.resample_filter)
            if layer.is_up and slices > 1:
                quads = layer.forward.out_side**2 * layer.outputs // 4
                self.launch(
                    GradientKernel("gradient_reduce"),
                    (-(-quads // 128), 1, 1),
                    (128, 1, 1),
                    {"sums": np.uint64(self._sums), "quads": quads, "slices": slices},
                )
            work = side * (side // 4 if layer.is_up else side) * layer.outputs // 4
            self.launch(
                GradientKernel("gradient_layer", (("TAPS", str(taps if layer.is_up else 0)),)),
                (-(-work // 128), 1, 1),
                (128, 1, 1),
                {
                    "sums": np.uint64(self._sums),
                    "filter": np.uint64(self._filter),
                    "demod": np.uint64(self._demods + 4 * self._row(index, 3)),
                    "noise": np.uint64(layer.noise),
                    "bias": np.uint64(layer.bias),
                    "next_style": None if following is None else np.uint64(self._styles_at(index + 1)),
                    "z": np.uint64(layer.z),
                    "x": None if following is None else np.uint64(following.x),
                    "slices": slices,
                    "side": side,
                    "channels": layer.outputs,
                    "left": up_conv_left_pad(taps),
                    "unit": layer.packed.unit,
                    "gain": layer.act.gain,
                    "clamp": np.inf if layer.act.clamp is None else layer.act.clamp,
                },
            )

    def backward(self, block: int, gradient: int) -> None:
        """Enqueue the way back from the gradient of a block's activations, fp32, to `ws_gradient`."""
        last = self._last(block)
        slices = 1
        for index in range(last, -1, -1):
            layer, is_last = self._layers[index], index == last
            side = layer.spec.resolution
            self._activate(
                gradient if is_last else self._sums,
                None if is_last else index + 1,
                layer.z,
                side,
                layer.outputs,
                slices,
                layer=index,
            )
            if layer.is_up:
                work = (side + 1) * -(-(side + 1) // 4) * layer.outputs // 4
                self.launch(
                    GradientKernel("gradient_filter", (("TAPS", str(len(self.spec.resample_filter))),)),
                    (-(-work // 256), 1, 1),
                    (256, 1, 1),
                    {
                        "u": np.uint64(self._u),
                        "filter": np.uint64(self._filter),
                        "t": np.uint64(self._t),
                        "side": side,
                        "channels": layer.outputs,
                        "left": up_conv_left_pad(len(self.spec.resample_filter)),
                    },
                )
            slices = self._convolve(layer, layer.backward, layer.backward_parities, is_backward=True)
        first = self._layers[0]
        self._activate(self._sums, 0, self._constant, first.source, first.inputs, slices, layer=None)
        self._style_gradients(last + 1)

    def picture(self, side: int) -> int:
        """Enqueue the picture of a side after `forward`; return its address, (3, side, side) fp32."""
        before: int | None = None
        taps = len(self.spec.resample_filter)
        for number, layer in enumerate(self._rgbs):
            if layer.resolution > side:
                break
            address, _, channels = self.features(layer.resolution)
            weight, bias, picture = self._rgb_arrays[number]
            pixels = layer.resolution**2
            self.launch(
                GradientKernel("gradient_picture"),
                (-(-pixels // 8), 1, 1),
                (256, 1, 1),
                {
                    "z": np.uint64(address),
                    "style": np.uint64(self._styles_at(len(self._layers) + number)),
                    "weight": np.uint64(weight),
                    "bias": np.uint64(bias),
                    "filter": np.uint64(self._filter),
                    "before": None if before is None else np.uint64(before),
                    "picture": np.uint64(picture),
                    "side": layer.resolution,
                    "channels": channels,
                    "taps": taps,
                    "left": doubling_left_pad(taps),
                    "clamp": np.inf if layer.conv_clamp is None else layer.conv_clamp * layer.gain,
                },
            )
            before = picture
        assert before is not None
        return before

    def launch(
        self,
        recipe: KernelRecipe,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: Mapping[str, Value],
        shared_nbytes: int = 0,
    ) -> None:
        """Enqueue a kernel. Arguments go by the names of its parameters, pointers as np.uint64 or None."""
        packed = PackedArguments(recipe.parameters, arguments)
        self._driver.launch(self._kernels[recipe], grid, block, shared_nbytes, packed)

    def _place(
        self, weights: Mapping[str, NDArray[np.float32]], noise: Mapping[str, NDArray[np.float32]], side: int
    ) -> None:
        arrays, spec = self._arrays, self.spec
        convs = [layer for layer in spec.layers if layer.kind in ("conv", "up_conv") and layer.resolution <= side]
        self._rgbs = [layer for layer in spec.layers if layer.kind == "to_rgb" and layer.resolution <= side]
        packed = [
            pack_conv(weights[f"synthesis.{layer.name}.weight"], weights[f"synthesis.{layer.name}.bias"])
            for layer in convs
        ]
        self._layers = [
            self._placed(layer, conv, noise.get(layer.name)) for layer, conv in zip(convs, packed, strict=True)
        ]
        self._table = style_table(convs, self._rgbs, packed, weights)
        table = self._table
        self._table_at = arrays.upload(table.layers)
        self._affine, self._affine_bias = arrays.upload(table.affine), arrays.upload(table.affine_bias)
        self._squares = arrays.upload(table.squares)
        self._styles_address, self._style_gradients_at = (arrays.empty(4 * table.styles) for _ in range(2))
        self._demods, self._demod_gradients = (arrays.empty(4 * table.demods) for _ in range(2))
        self._partials = arrays.empty(4 * table.sums)
        self.ws, self.ws_gradient = (arrays.empty(4 * spec.num_ws * spec.w_dim) for _ in range(2))
        const = weights["synthesis.b4.const"]
        inputs = padded(const.shape[0])
        whole = np.zeros((*const.shape[1:], inputs), np.float16)
        whole[..., : const.shape[0]] = const.transpose(1, 2, 0)
        self._constant, self._constant_size = arrays.upload(whole), whole.size
        # Flipped, since the filter is a correlation, with the gain of 2 an axis.
        self._filter = arrays.upload(2.0 * np.array(spec.resample_filter[::-1], np.float32))
        numbers = max(
            self._slices(layer, geometry, is_backward=bool(way))
            * geometry.out_side**2
            * (layer.inputs if way else layer.outputs)
            for layer in self._layers
            for way, geometry in enumerate((layer.forward, layer.backward))
        )
        self._sums = arrays.empty(4 * numbers)
        self._u = arrays.empty(2 * max(layer.outputs * layer.spec.resolution**2 for layer in self._layers))
        self._t = arrays.empty(2 * max(layer.outputs * (layer.spec.resolution + 1) ** 2 for layer in self._layers))
        self._rgb_arrays: list[tuple[int, int, int]] = []
        for layer in self._rgbs:
            weight = weights[f"synthesis.{layer.name}.weight"][:, :, 0, 0]
            whole_weight = np.pad(weight, ((0, 0), (0, padded(layer.in_channels) - layer.in_channels)))
            bias = weights[f"synthesis.{layer.name}.bias"]
            self._rgb_arrays.append(
                (
                    arrays.upload(whole_weight.astype(np.float32)),
                    arrays.upload(bias.astype(np.float32)),
                    arrays.empty(4 * 3 * layer.resolution**2),
                )
            )

    def _placed(self, layer: LayerSpec, packed: PackedConv, noise: NDArray[np.float32] | None) -> _Layer:
        arrays = self._arrays
        source = layer.resolution // (2 if layer.kind == "up_conv" else 1)
        geometry: Callable[..., ConvGeometry] = up_geometry if layer.kind == "up_conv" else conv_geometry
        forward, backward = geometry(source, backward=False), geometry(source, backward=True)
        inputs, outputs = padded(layer.in_channels), padded(layer.out_channels)
        return _Layer(
            spec=layer,
            act=BiasAct.of_layer(layer.activation, layer.gain, layer.conv_clamp),
            packed=packed,
            inputs=inputs,
            outputs=outputs,
            source=source,
            forward_weight=arrays.upload(packed.forward),
            backward_weight=arrays.upload(packed.backward),
            bias=arrays.upload(packed.bias),
            noise=0 if noise is None else arrays.upload(noise.astype(np.float32)),
            forward=forward,
            forward_parities=arrays.upload(forward.parities),
            backward=backward,
            backward_parities=arrays.upload(backward.parities),
            x=arrays.empty(2 * inputs * source**2),
            z=arrays.empty(2 * outputs * layer.resolution**2),
        )

    def _last(self, block: int) -> int:
        """Return the place of a block's last convolution."""
        return max(index for index, layer in enumerate(self._layers) if layer.spec.resolution == block)

    def _row(self, index: int, column: int) -> int:
        return int(self._table.layers[index, column])

    def _styles_at(self, index: int) -> int:
        return self._styles_address + 4 * self._row(index, 2)

    def _slices(self, layer: _Layer, geometry: ConvGeometry, *, is_backward: bool) -> int:
        """Return into how many parts K is cut so that the device is full."""
        inputs, outputs = (layer.outputs, layer.inputs) if is_backward else (layer.inputs, layer.outputs)
        tiles = [-(-pixels // _CONV_ROWS) * -(-outputs // _CONV_COLUMNS) for pixels in geometry.pixels]
        taps = [int(count) for count in geometry.parities[:, 0]]
        # Parities differ in their taps: as many tiles as would do the same work with the most taps.
        even = sum(count * tap for count, tap in zip(tiles, taps, strict=True)) / max(taps)
        steps = max(taps) * -(-inputs // _CONV_DEPTH)
        return max(1, min(int(2 * self._multiprocessors / even), steps // 2, _MOST_SLICES))

    def _convolve(self, layer: _Layer, geometry: ConvGeometry, parities: int, *, is_backward: bool) -> int:
        """Enqueue a convolution or its adjoint into the sums; return the number of slices."""
        inputs, outputs = (layer.outputs, layer.inputs) if is_backward else (layer.inputs, layer.outputs)
        slices = self._slices(layer, geometry, is_backward=is_backward)
        source = (self._t if layer.is_up else self._u) if is_backward else layer.x
        self.launch(
            GradientKernel("gradient_conv", (("BFLOAT", str(int(is_backward))),)),
            (
                -(-max(geometry.pixels) // _CONV_ROWS),
                -(-outputs // _CONV_COLUMNS),
                len(geometry.parities) * slices,
            ),
            (_CONV_ROWS, 1, 1),
            {
                "x": np.uint64(source),
                "weight": np.uint64(layer.backward_weight if is_backward else layer.forward_weight),
                "sums": np.uint64(self._sums),
                "parities": np.uint64(parities),
                "in_side": geometry.in_side,
                "cin": inputs,
                "cout": outputs,
                "in_stride": geometry.in_stride,
                "out_stride": geometry.out_stride,
                "out_side": geometry.out_side,
                "slices": slices,
            },
            shared_nbytes=_CONV_SHARED_NBYTES,
        )
        return slices

    def _activate(
        self, gradient: int, following: int | None, z: int, side: int, channels: int, slices: int, *, layer: int | None
    ) -> None:
        """Enqueue gradient_activation; `layer` None is the network's constant."""
        own = None if layer is None else self._layers[layer]
        pixels = side * side
        clamp = None if own is None else own.act.clamp
        self.launch(
            GradientKernel("gradient_activation"),
            (activation_blocks(pixels), -(-channels // 128), 1),
            (32, 8, 1),
            {
                "g": np.uint64(gradient),
                "style": None if following is None else np.uint64(self._styles_at(following)),
                "z": np.uint64(z),
                "noise": None if own is None else np.uint64(own.noise),
                "bias": None if own is None else np.uint64(own.bias),
                "demod": None if layer is None else np.uint64(self._demods + 4 * self._row(layer, 3)),
                "u": None if own is None else np.uint64(self._u),
                "style_sums": None if following is None else np.uint64(self._partials + 4 * self._row(following, 7)),
                "demod_sums": None if layer is None else np.uint64(self._partials + 4 * self._row(layer, 9)),
                "slices": slices,
                "pixels": pixels,
                "channels": channels,
                "pixels_per_block": pixels_per_block(pixels),
                "gain": 1.0 if own is None else own.act.gain,
                "clamp": np.inf if clamp is None else float(np.float16(clamp)),
            },
        )

    def _styles(self, layers: int) -> None:
        widest = int(self._table.layers[:, 0].max())
        self.launch(
            GradientKernel("gradient_styles"),
            (-(-widest // 8), layers, 1),
            (256, 1, 1),
            {
                "ws": np.uint64(self.ws),
                "affine": np.uint64(self._affine),
                "affine_bias": np.uint64(self._affine_bias),
                "table": np.uint64(self._table_at),
                "styles": np.uint64(self._styles_address),
                "w_dim": self.spec.w_dim,
            },
        )
        widest = int(self._table.layers[:, 1].max())
        self.launch(
            GradientKernel("gradient_demod"),
            (-(-widest // 8), len(self._layers), 1),
            (256, 1, 1),
            {
                "styles": np.uint64(self._styles_address),
                "squares": np.uint64(self._squares),
                "table": np.uint64(self._table_at),
                "demods": np.uint64(self._demods),
                "constant": np.uint64(self._constant),
                "x": np.uint64(self._layers[0].x),
                "constant_size": self._constant_size,
            },
        )

    def _style_gradients(self, layers: int) -> None:
        """Enqueue what turns partial sums into `ws_gradient`."""
        table, w_dim = self._table, self.spec.w_dim
        widest = int(table.layers[:layers, :2].max())
        self.launch(
            GradientKernel("gradient_sums"),
            (-(-widest // 32), layers, 1),
            (32, 16, 1),
            {
                "sums": np.uint64(self._partials),
                "demods": np.uint64(self._demods),
                "table": np.uint64(self._table_at),
                "style_gradients": np.uint64(self._style_gradients_at),
                "demod_gradients": np.uint64(self._demod_gradients),
            },
        )
        self.launch(
            GradientKernel("gradient_demod_adjoint"),
            (-(-widest // 32), layers, 1),
            (32, 16, 1),
            {
                "styles": np.uint64(self._styles_address),
                "squares": np.uint64(self._squares),
                "demod_gradients": np.uint64(self._demod_gradients),
                "table": np.uint64(self._table_at),
                "style_gradients": np.uint64(self._style_gradients_at),
            },
        )
        self.launch(
            GradientKernel("gradient_affine_adjoint"),
            (-(-w_dim // 32), self.spec.num_ws, 1),
            (32, 16, 1),
            {
                "style_gradients": np.uint64(self._style_gradients_at),
                "affine": np.uint64(self._affine),
                "table": np.uint64(self._table_at),
                "ws_gradient": np.uint64(self.ws_gradient),
                "w_dim": w_dim,
                "layers": layers,
            },
        )

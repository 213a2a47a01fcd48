"""A StyleGAN2 on a GPU up to a block or a picture, forward with what the way back needs, and backward to the rows of w.

Per layer, with the style s, x = s * z of the layer before, and T the transposed convolution or the convolution::

    y = T(x),   v = d * filter(y) + noise + bias,   z = clamp(lrelu(v) gain)               forward
    u = dz * slope * d,   g = T^T(filter^T(u)),   dz of the layer before = s * g            backward
    ds = sum over pixels of (z of the layer before) * g  -  s * sum_o e_o Q_o,   e = dd d^3,   dw = A^T ds

Activations and their gradients are fp16, sums and everything small fp32. Arrays of activations are
[sample][row][column][channel], pictures [sample][3][row][column].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.driver.arguments import PackedArguments, Value
from gpu_backend.cuda.driver.interface import Driver, LoadedKernel
from gpu_backend.gradients.gpu.conv_choice import ConvChoice, ConvLaunch, tiles_of
from gpu_backend.gradients.gpu.kernels import (
    STRIP_ROWS,
    GradientKernel,
    activation_kernel,
    filter_kernel,
    layer_kernel,
)
from gpu_backend.gradients.gpu.memory import DeviceArrays
from gpu_backend.gradients.gpu.placed import PlacedConv, PlacedToRgb
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

_BUSY_THREADS = 256
"""Of a multiprocessor, that wait for memory often enough to keep it busy."""
_COLOURS = 3


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
    samples
        Most samples of a run to the last layers.
    few_side, more_samples
        The same of a run to a block of at most `few_side`; by default as many.
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
        samples: int = 1,
        few_side: int = 0,
        more_samples: int = 0,
    ) -> None:
        self._driver, self._kernels, self.spec = driver, kernels, spec
        self._multiprocessors = multiprocessors
        self._choice = ConvChoice(kernels, multiprocessors)
        self._samples, self._few_side, self._more_samples = samples, few_side, max(samples, more_samples)
        self._arrays = DeviceArrays(driver)
        try:
            self._place(weights, noise, side)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free the memory. May be called twice."""
        self._arrays.close()

    @property
    def side(self) -> int:
        """The last layers' resolution."""
        return self._layers[-1].spec.resolution

    def features(self, block: int) -> tuple[int, int, int]:
        """Return a block's last activations: their address, channels and channels with padding."""
        layer = self._layers[self._last(block)]
        return layer.z, layer.spec.out_channels, layer.outputs

    def forward(self, block: int, samples: int = 1) -> None:
        """Enqueue the layers up to a block, from the rows at `ws`, (samples, num_ws, w_dim)."""
        if not 0 < samples <= self._most_samples(block):
            raise ValueError(f"block {block} has room for {self._most_samples(block)} samples, not for {samples}")
        self._styles(self._table_rows(block), samples)
        last = self._last(block)
        for index, layer in enumerate(self._layers[: last + 1]):
            following = self._layers[index + 1] if index < last else None
            conv = self._choice.to_layer_end(layer, samples)
            if conv:
                self._launch_conv(conv, layer, self._layer_end(layer, following), is_backward=False)
                continue
            slices = self._convolve(layer, samples, is_backward=False)
            side, taps = layer.spec.resolution, len(self.spec.resample_filter)
            if layer.is_up and slices > 1:
                quads = samples * layer.forward.out_side**2 * layer.outputs // 4
                self.launch(
                    GradientKernel("gradient_reduce"),
                    (-(-quads // 128), 1, 1),
                    (128, 1, 1),
                    {"sums": np.uint64(self._sums), "quads": quads, "slices": slices},
                )
            rows = self._strip_rows(layer, samples) if layer.is_up else 1
            work = side // rows * (side // 4 if layer.is_up else side) * layer.outputs // 4
            self.launch(
                layer_kernel(taps if layer.is_up else 0, rows=rows),
                (-(-work // 128), samples, 1),
                (128, 1, 1),
                {
                    "sums": np.uint64(self._sums),
                    "filter": np.uint64(self._filter),
                    "demod": np.uint64(self._demods + 4 * self._row(layer.spec, 3)),
                    "noise": np.uint64(layer.noise),
                    "bias": np.uint64(layer.bias),
                    "next_style": None if following is None else np.uint64(self._styles_at(following.spec)),
                    "z": np.uint64(layer.z),
                    "x": None if following is None else np.uint64(following.x),
                    "slices": slices,
                    "side": side,
                    "channels": layer.outputs,
                    "left": up_conv_left_pad(taps),
                    "style_count": self._table.styles,
                    "demod_count": self._table.demods,
                    "unit": layer.packed.unit,
                    "gain": layer.act.gain,
                    "clamp": np.inf if layer.act.clamp is None else layer.act.clamp,
                },
            )

    def backward(
        self, block: int, gradient: int, samples: int = 1, *, of_picture: bool = False, unit: float = 1.0
    ) -> None:
        """Enqueue the way back of the last run, to `ws_gradient`.

        Parameters
        ----------
        gradient
            Address of the gradient of a block's activations, shaped as these, or of its picture; fp32.
        unit
            The gradient is divided by it while it is fp16, of which 1 should be a common magnitude.
        """
        last = self._last(block)
        if of_picture:
            self._picture_gradients(block, gradient, samples)
        slices, is_activated = 1, False
        for index in range(last, -1, -1):
            layer, is_last = self._layers[index], index == last
            side = layer.spec.resolution
            own_gradient = None if of_picture else gradient
            if not is_activated:
                self._activate(
                    own_gradient if is_last else self._sums,
                    1.0 / unit if is_last else self._layers[index + 1].packed.unit,
                    1.0 / unit,
                    None if is_last else self._layers[index + 1],
                    layer,
                    self._rgb_after(index) if of_picture else None,
                    slices,
                    samples,
                )
            if layer.is_up:
                rows = self._strip_rows(layer, samples)
                work = -(-(side + 1) // rows) * -(-(side + 1) // 4) * layer.outputs // 4
                self.launch(
                    filter_kernel(len(self.spec.resample_filter), rows=rows),
                    (-(-work // 256), samples, 1),
                    (256, 1, 1),
                    {
                        "u": np.uint64(self._us[0]),
                        "filter": np.uint64(self._filter),
                        "t": np.uint64(self._t),
                        "side": side,
                        "channels": layer.outputs,
                        "left": up_conv_left_pad(len(self.spec.resample_filter)),
                    },
                )
            conv = self._through_layer(index, samples, of_picture=of_picture)
            is_activated = conv is not None
            if conv:
                end = self._way_back(layer, self._layers[index - 1] if index else None)
                self._launch_conv(conv, layer, end, is_backward=True)
                self._us.reverse()
            else:
                slices = self._convolve(layer, samples, is_backward=True)
        if not is_activated:
            self._activate(self._sums, self._layers[0].packed.unit, 1.0, self._layers[0], None, None, slices, samples)
        self._style_gradients(block, samples, unit, of_picture=of_picture)

    def picture(self, side: int, samples: int = 1) -> int:
        """Enqueue the picture of a side after `forward`; return its address, (samples, 3, side, side) fp32."""
        before: int | None = None
        taps = len(self.spec.resample_filter)
        for rgb in self._rgbs_up_to(side):
            address, _, channels = self.features(rgb.spec.resolution)
            self.launch(
                GradientKernel("gradient_picture"),
                (-(-(rgb.spec.resolution**2) // 32), samples, 1),
                (256, 1, 1),
                {
                    "z": np.uint64(address),
                    "style": np.uint64(self._styles_at(rgb.spec)),
                    "weight": np.uint64(rgb.weight),
                    "bias": np.uint64(rgb.bias),
                    "filter": np.uint64(self._filter),
                    "before": None if before is None else np.uint64(before),
                    "planes": np.uint64(rgb.planes),
                    "picture": np.uint64(rgb.picture),
                    "side": rgb.spec.resolution,
                    "channels": channels,
                    "taps": taps,
                    "left": doubling_left_pad(taps),
                    "style_count": self._table.styles,
                    "clamp": rgb.clamp,
                },
                shared_nbytes=4 * _COLOURS * channels,
            )
            before = rgb.picture
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
        packed = [
            pack_conv(weights[f"synthesis.{layer.name}.weight"], weights[f"synthesis.{layer.name}.bias"])
            for layer in convs
        ]
        self._layers = [
            self._placed(layer, conv, noise.get(layer.name)) for layer, conv in zip(convs, packed, strict=True)
        ]
        rgbs = [layer for layer in spec.layers if layer.kind == "to_rgb" and layer.resolution <= side]
        self._table = table = style_table(
            [layer for layer in spec.layers if layer in convs or layer in rgbs], packed, weights
        )
        most = self._more_samples
        self._table_at = arrays.upload(table.layers)
        self._affine, self._affine_bias = arrays.upload(table.affine), arrays.upload(table.affine_bias)
        self._squares = arrays.upload(table.squares)
        self._styles_address, self._style_gradients_at = (arrays.empty(4 * most * table.styles) for _ in range(2))
        self._demods, self._demod_gradients = (arrays.empty(4 * most * table.demods) for _ in range(2))
        self._partials = arrays.empty(4 * most * table.sums)
        self.ws, self.ws_gradient = (arrays.empty(4 * most * spec.num_ws * spec.w_dim) for _ in range(2))
        const = weights["synthesis.b4.const"]
        inputs = padded(const.shape[0])
        whole = np.zeros((*const.shape[1:], inputs), np.float16)
        whole[..., : const.shape[0]] = const.transpose(1, 2, 0)
        self._constants = arrays.upload(np.broadcast_to(whole, (most, *whole.shape)))
        self._constant_size = whole.size
        # Flipped, since the filter is a correlation, with the gain of 2 an axis.
        self._filter = arrays.upload(2.0 * np.array(spec.resample_filter[::-1], np.float32))
        numbers = max(
            self._choice.sums(layer, samples, is_backward=is_backward)
            for layer in self._layers
            for is_backward in (False, True)
            for samples in range(1, self._most_samples(layer.spec.resolution) + 1)
        )
        self._sums = arrays.empty(4 * numbers)
        wide, wider = (
            max(
                self._most_samples(layer.spec.resolution) * layer.outputs * (layer.spec.resolution + margin) ** 2
                for layer in self._layers
            )
            for margin in (0, 1)
        )
        self._us = [arrays.empty(2 * wide) for _ in range(2)]  # what reads the first may write the second
        self._t = arrays.empty(2 * wider)
        self._rgbs = [self._placed_rgb(layer, weights) for layer in rgbs]
        self._back_tables = {
            (block, of_picture, is_alone): arrays.upload(
                self._back_table(block, 1 if is_alone else 2, of_picture=of_picture)
            )
            for block in {layer.resolution for layer in convs}
            for of_picture in (False, True)
            for is_alone in (False, True)
        }

    def _placed_rgb(self, layer: LayerSpec, weights: Mapping[str, NDArray[np.float32]]) -> PlacedToRgb:
        arrays = self._arrays
        weight = weights[f"synthesis.{layer.name}.weight"][:, :, 0, 0]
        whole_weight = np.pad(weight, ((0, 0), (0, padded(layer.in_channels) - layer.in_channels)))
        nbytes = 4 * self._most_samples(layer.resolution) * _COLOURS * layer.resolution**2
        return PlacedToRgb(
            spec=layer,
            weight=arrays.upload(whole_weight.astype(np.float32)),
            bias=arrays.upload(weights[f"synthesis.{layer.name}.bias"].astype(np.float32)),
            planes=arrays.empty(nbytes),
            picture=arrays.empty(nbytes),
            gradient=arrays.empty(nbytes),
        )

    def _placed(self, layer: LayerSpec, packed: PackedConv, noise: NDArray[np.float32] | None) -> PlacedConv:
        arrays, samples = self._arrays, self._most_samples(layer.resolution)
        source = layer.resolution // (2 if layer.kind == "up_conv" else 1)
        geometry: Callable[..., ConvGeometry] = up_geometry if layer.kind == "up_conv" else conv_geometry
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
            noise=0 if noise is None else arrays.upload(noise.astype(np.float32)),
            forward=forward,
            forward_parities=arrays.upload(forward.parities),
            backward=backward,
            backward_parities=arrays.upload(backward.parities),
            x=arrays.empty(2 * samples * inputs * source**2),
            z=arrays.empty(2 * samples * outputs * layer.resolution**2),
        )

    def _last(self, block: int) -> int:
        """Return the place of a block's last convolution."""
        return max(index for index, layer in enumerate(self._layers) if layer.spec.resolution == block)

    def _most_samples(self, block: int) -> int:
        return self._more_samples if block <= self._few_side else self._samples

    def _rgbs_up_to(self, side: int) -> list[PlacedToRgb]:
        return [rgb for rgb in self._rgbs if rgb.spec.resolution <= side]

    def _rgb_after(self, index: int) -> PlacedToRgb | None:
        """Return the toRGB layer that reads a convolution's output."""
        side = self._layers[index].spec.resolution
        return next((rgb for rgb in self._rgbs if rgb.spec.resolution == side and index == self._last(side)), None)

    def _table_rows(self, block: int) -> int:
        """Return the rows of the table of the layers up to a block."""
        return sum(layer.resolution <= block for layer in self.spec.layers if layer.name in self._table.rows)

    def _row(self, layer: LayerSpec, column: int) -> int:
        return int(self._table.layers[self._table.rows[layer.name], column])

    def _styles_at(self, layer: LayerSpec) -> int:
        return self._styles_address + 4 * self._row(layer, 2)

    def _sums_at(self, layer: LayerSpec, column: int) -> np.uint64:
        return np.uint64(self._partials + 4 * self._row(layer, column))

    def _strip_rows(self, layer: PlacedConv, samples: int) -> int:
        """Return the rows that a thread filters: many where their threads still fill the device."""
        most, least = STRIP_ROWS
        threads = samples * layer.spec.resolution**2 * layer.outputs // (4 * 4 * most)
        return most if threads >= _BUSY_THREADS * self._multiprocessors else least

    def _back_table(self, block: int, samples: int, *, of_picture: bool) -> NDArray[np.int32]:
        """Return the table for the sums of a way back: adjoints that go back through layers have a row a block."""
        layers, rows = self._table.layers.copy(), self._table.rows
        for index in range(self._last(block) + 1):
            layer = self._layers[index]
            conv = self._through_layer(index, samples, of_picture=of_picture)
            if conv:
                blocks = tiles_of(layer.source) * conv.slices
                layers[rows[layer.spec.name], 8] = blocks
                if index > 0:
                    layers[rows[self._layers[index - 1].spec.name], 10] = blocks
        return layers

    def _through_layer(self, index: int, samples: int, *, of_picture: bool) -> ConvLaunch | None:
        """Return the launch of an adjoint that goes back through the layer before, unless toRGB has its part there."""
        if of_picture and index > 0 and self._rgb_after(index - 1) is not None:
            return None
        return self._choice.through_layer(self._layers[index], samples)

    def _layer_end(self, layer: PlacedConv, following: PlacedConv | None) -> dict[str, Value]:
        """Return what a convolution needs to end its layer."""
        return {
            "style": None if following is None else np.uint64(self._styles_at(following.spec)),
            "demod": np.uint64(self._demods + 4 * self._row(layer.spec, 3)),
            "noise": np.uint64(layer.noise),
            "bias": np.uint64(layer.bias),
            "z": np.uint64(layer.z),
            "to": None if following is None else np.uint64(following.x),
            "gain": layer.act.gain,
            "clamp": np.inf if layer.act.clamp is None else layer.act.clamp,
            **self._units(layer),
        }

    def _units(self, layer: PlacedConv) -> dict[str, Value]:
        """Return the unit of a convolution's weights, and the numbers of a sample in arrays of all layers."""
        return {
            "unit": layer.packed.unit,
            "style_count": self._table.styles,
            "demod_count": self._table.demods,
            "sum_count": self._table.sums,
        }

    def _way_back(self, layer: PlacedConv, before: PlacedConv | None) -> dict[str, Value]:
        """Return what the adjoint of a convolution needs to go back through the layer before, or to the constant."""
        own: dict[str, Value] = {
            "style": np.uint64(self._styles_at(layer.spec)),
            "style_sums": self._sums_at(layer.spec, 7),
            **self._units(layer),
        }
        if before is None:
            return {"z": np.uint64(self._constants), **own}
        clamp = before.act.clamp
        return {
            **self._layer_end(before, None),
            **own,
            "to": np.uint64(self._us[1]),
            "demod_sums": self._sums_at(before.spec, 9),
            "clamp": np.inf if clamp is None else float(np.float16(clamp)),
        }

    def _convolve(self, layer: PlacedConv, samples: int, *, is_backward: bool) -> int:
        """Enqueue a convolution or its adjoint into the sums; return the number of slices."""
        conv = self._choice.to_sums(layer, samples, is_backward=is_backward)
        self._launch_conv(conv, layer, {}, is_backward=is_backward)
        return conv.slices

    def _launch_conv(self, conv: ConvLaunch, layer: PlacedConv, end: Mapping[str, Value], *, is_backward: bool) -> None:
        """Enqueue a convolution or its adjoint, and what becomes of its sums."""
        source = (self._t if layer.is_up else self._us[0]) if is_backward else layer.x
        self.launch(
            conv.kernel,
            conv.grid,
            (conv.threads, 1, 1),
            {
                "x": np.uint64(source),
                "weight": np.uint64(layer.backward_weight if is_backward else layer.forward_weight),
                "sums": np.uint64(self._sums),
                **conv.arguments,
                **end,
            },
            shared_nbytes=conv.shared_nbytes,
        )

    def _picture_gradients(self, side: int, gradient: int, samples: int) -> None:
        """Enqueue the gradients of the pictures of all blocks, from the last one's."""
        driver, taps = self._driver, len(self.spec.resample_filter)
        rgbs = self._rgbs_up_to(side)
        driver.copy(rgbs[-1].gradient, gradient, 4 * samples * _COLOURS * side**2)
        for rgb, before in zip(rgbs[:0:-1], rgbs[-2::-1], strict=True):
            self.launch(
                GradientKernel("gradient_picture_adjoint"),
                (-(-(before.spec.resolution**2) // 128), _COLOURS * samples, 1),
                (128, 1, 1),
                {
                    "from": np.uint64(rgb.gradient),
                    "filter": np.uint64(self._filter),
                    "to": np.uint64(before.gradient),
                    "side": rgb.spec.resolution,
                    "taps": taps,
                    "left": doubling_left_pad(taps),
                },
            )

    def _activate(
        self,
        gradient: int | None,
        unit: float,
        rgb_unit: float,
        following: PlacedConv | None,
        layer: PlacedConv | None,
        rgb: PlacedToRgb | None,
        slices: int,
        samples: int,
    ) -> None:
        """Enqueue gradient_activation of a layer, None for the network's constant, with toRGB's part if it has one."""
        first = self._layers[0]
        side, channels = (first.source, first.inputs) if layer is None else (layer.spec.resolution, layer.outputs)
        pixels = side * side
        clamp = None if layer is None else layer.act.clamp
        of_rgb: dict[str, Value] = {}
        if rgb is not None:
            of_rgb = {
                "picture_gradient": np.uint64(rgb.gradient),
                "planes": np.uint64(rgb.planes),
                "rgb_weight": np.uint64(rgb.weight),
                "rgb_style": np.uint64(self._styles_at(rgb.spec)),
                "rgb_sums": self._sums_at(rgb.spec, 7),
                "rgb_clamp": rgb.clamp,
                "rgb_unit": rgb_unit,
            }
        self.launch(
            activation_kernel(with_rgb=rgb is not None),
            (activation_blocks(pixels), -(-channels // 128), samples),
            (256, 1, 1),
            {
                "g": None if gradient is None else np.uint64(gradient),
                "style": None if following is None else np.uint64(self._styles_at(following.spec)),
                "z": np.uint64(self._constants if layer is None else layer.z),
                "noise": None if layer is None else np.uint64(layer.noise),
                "bias": None if layer is None else np.uint64(layer.bias),
                "demod": None if layer is None else np.uint64(self._demods + 4 * self._row(layer.spec, 3)),
                "u": None if layer is None else np.uint64(self._us[0]),
                "style_sums": None if following is None else self._sums_at(following.spec, 7),
                "demod_sums": None if layer is None else self._sums_at(layer.spec, 9),
                **of_rgb,
                "slices": slices,
                "pixels": pixels,
                "channels": channels,
                "pixels_per_block": pixels_per_block(pixels),
                "style_count": self._table.styles,
                "demod_count": self._table.demods,
                "sum_count": self._table.sums,
                "unit": unit,
                "gain": 1.0 if layer is None else layer.act.gain,
                "clamp": np.inf if clamp is None else float(np.float16(clamp)),
            },
        )

    def _styles(self, layers: int, samples: int) -> None:
        widest = int(self._table.layers[:, 0].max())
        self.launch(
            GradientKernel("gradient_styles"),
            (-(-widest // 8), layers, samples),
            (256, 1, 1),
            {
                "ws": np.uint64(self.ws),
                "affine": np.uint64(self._affine),
                "affine_bias": np.uint64(self._affine_bias),
                "table": np.uint64(self._table_at),
                "styles": np.uint64(self._styles_address),
                "w_dim": self.spec.w_dim,
                "w_rows": self.spec.num_ws,
                "style_count": self._table.styles,
            },
        )
        widest = int(self._table.layers[:, 1].max())
        self.launch(
            GradientKernel("gradient_demod"),
            (-(-widest // 8), layers, samples),
            (256, 1, 1),
            {
                "styles": np.uint64(self._styles_address),
                "squares": np.uint64(self._squares),
                "table": np.uint64(self._table_at),
                "demods": np.uint64(self._demods),
                "constant": np.uint64(self._constants),
                "x": np.uint64(self._layers[0].x),
                "constant_size": self._constant_size,
                "style_count": self._table.styles,
                "demod_count": self._table.demods,
            },
        )

    def _style_gradients(self, block: int, samples: int, unit: float, *, of_picture: bool) -> None:
        """Enqueue what turns partial sums into `ws_gradient`."""
        table, w_dim, layers = self._table, self.spec.w_dim, self._table_rows(block)
        counts: dict[str, Value] = {"style_count": table.styles, "demod_count": table.demods}
        widest = int(table.layers[:layers, :2].max())
        self.launch(
            GradientKernel("gradient_sums"),
            (-(-widest // 32), layers, samples),
            (32, 32, 1),
            {
                "sums": np.uint64(self._partials),
                "demods": np.uint64(self._demods),
                "table": np.uint64(self._back_tables[block, of_picture, samples == 1]),
                "style_gradients": np.uint64(self._style_gradients_at),
                "demod_gradients": np.uint64(self._demod_gradients),
                **counts,
                "sum_count": table.sums,
            },
        )
        self.launch(
            GradientKernel("gradient_demod_adjoint"),
            (-(-widest // 32), layers, samples),
            (32, 16, 1),
            {
                "styles": np.uint64(self._styles_address),
                "squares": np.uint64(self._squares),
                "demod_gradients": np.uint64(self._demod_gradients),
                "table": np.uint64(self._table_at),
                "style_gradients": np.uint64(self._style_gradients_at),
                **counts,
            },
        )
        self.launch(
            GradientKernel("gradient_affine_adjoint"),
            (-(-w_dim // 32), self.spec.num_ws, samples),
            (32, 16, 1),
            {
                "style_gradients": np.uint64(self._style_gradients_at),
                "affine": np.uint64(self._affine),
                "table": np.uint64(self._table_at),
                "ws_gradient": np.uint64(self.ws_gradient),
                "w_dim": w_dim,
                "layers": layers,
                "style_count": table.styles,
                "with_picture": int(of_picture),
                "unit": unit,
            },
        )

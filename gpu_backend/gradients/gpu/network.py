"""A StyleGAN2 on a GPU up to a block or a picture, forward with what the way back needs, and backward to the rows of w.

Per layer, with the style s, x = s * z of the layer before, and T the transposed convolution or the convolution::

    y = T(x),   v = d * filter(y) + noise + bias,   z = clamp(lrelu(v) gain)               forward
    u = dz * slope * d,   g = T^T(filter^T(u)),   dz of the layer before = s * g            backward
    ds = sum over pixels of (z of the layer before) * g  -  s * sum_o e_o Q_o,   e = dd d^3,   dw = A^T ds

A block of a resnet ends with h = z + its skip, which takes the place of z in what later layers read; dz is the gradient
of h, to which the next block's skip adds its own (`gpu_backend.gradients.gpu.skips`).

Activations and their gradients are fp16, sums and everything small fp32. Arrays of activations are
[sample][row][column][channel], pictures [sample][3][row][column].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.driver.arguments import Value
from gpu_backend.cuda.driver.interface import Driver, LoadedKernel
from gpu_backend.gradients.gpu.convs.choice import ConvChoice
from gpu_backend.gradients.gpu.convs.launch import ConvLaunch, add_slices
from gpu_backend.gradients.gpu.convs.up_convs import PAIR_MARGIN
from gpu_backend.gradients.gpu.kernels import (
    ROW_CLUSTER,
    GradientKernel,
    activation_kernel,
    filter_kernel,
    layer_kernel,
    rows_kernel,
)
from gpu_backend.gradients.gpu.memory import DeviceArrays
from gpu_backend.gradients.gpu.packed_network import PackedNetwork
from gpu_backend.gradients.gpu.pictures import GpuPictures
from gpu_backend.gradients.gpu.placed import PlacedConv, PlacedNetwork, PlacedToRgb
from gpu_backend.gradients.gpu.sequence import KernelSequence
from gpu_backend.gradients.gpu.skips import ResnetSkips
from gpu_backend.gradients.gpu.strips import STRIP_THREADS, StripGrid, strip_grid
from gpu_backend.gradients.gpu.weights import activation_blocks, padded, pixels_per_block
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.upfirdn import up_conv_left_pad

_ROW_THREADS = 512
_THREADS, _PIXELS = 256, 4
"""Of a block of gradient_layer without a filter, and of a thread of it where there is one slice."""
_ROW_GROUP = 64
"""Channels or dimensions that a block of gradient_rows does at once."""


@dataclass(frozen=True, slots=True, eq=False)
class RowUpdate:
    """A step of Adam on rows of w, which gradient_rows does.

    Attributes
    ----------
    rows
        Those that change.
    arguments
        The kernel's parameters ``start``, ``deviation``, ``mean``, ``square``, ``count``, ``shift`` and ``rate``.
    """

    rows: slice
    arguments: Mapping[str, Value]


@dataclass(frozen=True, slots=True, eq=False)
class _Incoming:
    """The gradient of a layer's output, times its style, on the way back.

    Attributes
    ----------
    address
        Of fp16 numbers, or of slices of fp32 sums.
    unit
        What they are multiplied by.
    """

    address: int
    unit: float = 1.0
    slices: int = 1
    is_half: bool = False


_NO_UPDATE: Mapping[str, Value] = {
    **dict.fromkeys(("start", "deviation", "mean", "square", "count", "shift")),
    "rate": 0.0,
}


class GpuNetwork(KernelSequence):
    """The layers up to a side, on one device.

    Parameters
    ----------
    kernels
        Those of `kernels_of_step`, loaded; they belong to the caller.
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
        packed: PackedNetwork,
        multiprocessors: int,
        samples: int = 1,
        few_side: int = 0,
        more_samples: int = 0,
    ) -> None:
        super().__init__(driver, kernels)
        self.spec = packed.spec
        self._multiprocessors = multiprocessors
        self._choice = ConvChoice(kernels, multiprocessors, driver.tensor_map)
        self._arrays = DeviceArrays(driver)
        try:
            self._placed = PlacedNetwork(self._arrays, packed, samples, few_side, max(samples, more_samples))
            self.ws, self.ws_gradient = self._placed.ws, self._placed.ws_gradient
            taps = len(self.spec.resample_filter)
            self._pictures = GpuPictures(driver, self._placed, taps, multiprocessors)
            self._skips = ResnetSkips(self._arrays, self._placed, self._choice, taps, multiprocessors)
            self._make_room()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free the memory. May be called twice."""
        self._arrays.close()

    @property
    def side(self) -> int:
        """The last layers' resolution."""
        return self._placed.layers[-1].spec.resolution

    def features(self, block: int) -> tuple[int, int, int]:
        """Return a block's last activations: their address, channels and channels with padding."""
        last = self._placed.last(block)
        layer = self._placed.layers[last]
        return self._placed.output(last), layer.spec.out_channels, layer.outputs

    def forward(self, block: int, samples: int = 1) -> None:
        """Enqueue the layers up to a block without toRGB, from the rows at `ws`, (samples, num_ws, w_dim)."""
        if not 0 < samples <= (most := self._placed.most_samples(block)):
            raise ValueError(f"block {block} has room for {most} samples, not for {samples}")
        self.break_sequence()
        last = self._placed.last(block)
        self._styles(0, last + 1, samples)
        self._demodulations(last + 1, samples)
        for index, layer in enumerate(self._placed.layers[: last + 1]):
            following = self._placed.layers[index + 1] if index < last else None
            has_skip = index in self._placed.skips
            self._run_layer(layer, None if has_skip else following, samples)
            if has_skip:
                self._skips.forward(self, index, following, samples)

    def backward(
        self,
        block: int,
        gradient: int,
        samples: int = 1,
        *,
        of_picture: bool = False,
        unit: float = 1.0,
        update: RowUpdate | None = None,
    ) -> None:
        """Enqueue the way back of the last run, to `ws_gradient`.

        Parameters
        ----------
        gradient
            Address of the gradient of a block's activations, shaped as these, fp16 and divided by `unit`; or of its
            picture, fp32, which is not copied if `take_picture_gradient` returned it.
        unit
            Gradients are divided by it while they are fp16, of which 1 should be a common magnitude.
        update
            Changes `ws`, of one sample, by the gradient, which is not written then.
        """
        last = self._placed.last(block)
        if of_picture:
            self._pictures.backward(self, block, gradient, samples)
        else:
            self.break_sequence()
        incoming: _Incoming | None = None if of_picture else _Incoming(gradient, is_half=True)
        is_activated = False
        for index in range(last, -1, -1):
            layer, is_last = self._placed.layers[index], index == last
            side = layer.spec.resolution
            if not is_activated:
                self._activate(
                    incoming,
                    1.0 / unit,
                    None if is_last else self._placed.layers[index + 1],
                    layer,
                    self._placed.rgb_after(index) if of_picture else None,
                    self._skips.of_activation(index, last),
                    samples,
                )
            if layer.is_up:
                strips = strip_grid(side + 1, layer.outputs, samples, self._multiprocessors)
                self.launch(
                    filter_kernel(len(self.spec.resample_filter)),
                    (strips.blocks, samples, 1),
                    (STRIP_THREADS, 1, 1),
                    {
                        "u": np.uint64(self._us[0]),
                        "filter": np.uint64(self._placed.filter),
                        "t": np.uint64(self._t),
                        "side": side,
                        "channels": layer.outputs,
                        "rows": strips.rows,
                        "left": up_conv_left_pad(len(self.spec.resample_filter)),
                    },
                )
            conv = self._through_layer(index, samples, of_picture=of_picture)
            is_activated = conv is not None
            if conv:
                end = self._way_back(layer, self._placed.layers[index - 1] if index else None)
                self._launch_conv(conv, layer, end, is_backward=True)
                self._us.reverse()
            else:
                incoming = self._through_conv(layer, samples)
            if index + 1 in self._placed.skips:
                self._skips.backward(self, index + 1, self._t, samples)
        if not is_activated:
            first = self._placed.layers[0]
            self._activate(incoming, 1.0, first, None, None, {}, samples)
        self._row_gradients(block, samples, unit, update, of_picture=of_picture)

    def take_picture_gradient(
        self, side: int, gradient: int, largest: int, least: float, parts: int, samples: int = 1
    ) -> int:
        """Enqueue the gradient of a picture, divided by its largest magnitude; return its address for `backward`.

        Parameters as of `GpuPictures.take_gradient`.
        """
        return self._pictures.take_gradient(self, side, gradient, largest, least, parts, samples)

    def picture(self, side: int, samples: int = 1) -> int:
        """Enqueue the picture of a side after `forward`; return its address, (samples, 3, side, side) fp32."""
        self._styles(len(self._placed.layers), len(self._placed.rgbs_up_to(side)), samples)
        return self._pictures.forward(self, side, samples)

    def _make_room(self) -> None:
        """Allocate what lies between kernels, and upload the tables of the ways back."""
        arrays, layers = self._arrays, self._placed.layers
        numbers = max(
            self._choice.most_sums(layer, self._placed.most_samples(layer.spec.resolution)) for layer in layers
        )
        self._sums = arrays.empty(4 * numbers)
        wide, wider = (
            max(
                self._placed.most_samples(layer.spec.resolution) * layer.outputs * (layer.spec.resolution + margin) ** 2
                for layer in layers
            )
            for margin in (0, 1)
        )
        self._us = [arrays.empty(2 * wide) for _ in range(2)]  # what reads the first may write the second
        self._t = arrays.empty(2 * wider + PAIR_MARGIN)
        back_tables = {
            (block, of_picture, is_alone): self._back_table(block, 1 if is_alone else 2, of_picture=of_picture)
            for block in {layer.spec.resolution for layer in layers}
            for of_picture in (False, True)
            for is_alone in (False, True)
        }
        self._back_tables = {key: (arrays.upload(table), table.shape[1]) for key, table in back_tables.items()}

    def _run_layer(self, layer: PlacedConv, following: PlacedConv | None, samples: int) -> None:
        """Enqueue a layer, and the input of the following one."""
        conv = self._choice.to_layer_end(layer, samples)
        if conv:
            self._launch_conv(conv, layer, self._layer_end(layer, following), is_backward=False)
            return
        side, taps = layer.spec.resolution, len(self.spec.resample_filter)
        demod: dict[str, Value] = {
            "demod": self._placed.demods_at(layer.spec),
            "demod_count": self._placed.table.demods,
            "unit": layer.packed.unit,
        }
        to_filter = self._choice.to_filter(layer, samples)
        if to_filter:
            slices, sums = 1, self._t
            self._launch_conv(to_filter, layer, demod, is_backward=False, to=sums)
        else:
            slices, sums = self._convolve(layer, samples, is_backward=False), self._sums
            if layer.is_up and slices > 1:
                add_slices(self, sums, samples * layer.forward.out_side**2 * layer.outputs, slices)
        if layer.is_up:
            strips, threads = strip_grid(side, layer.outputs, samples, self._multiprocessors), STRIP_THREADS
        else:
            pixels = side * side // (_PIXELS if slices == 1 else 1)
            strips, threads = StripGrid(-(-pixels * layer.outputs // 4 // _THREADS), 1), _THREADS
        self.launch(
            layer_kernel(taps if layer.is_up else 0, reads_half=to_filter is not None),
            (strips.blocks, samples, 1),
            (threads, 1, 1),
            {
                "sums": np.uint64(sums),
                "filter": np.uint64(self._placed.filter),
                **({} if to_filter else demod),
                "noise": np.uint64(layer.noise),
                "bias": np.uint64(layer.bias),
                "next_style": None if following is None else np.uint64(self._placed.styles_at(following.spec)),
                "z": np.uint64(layer.z),
                "x": None if following is None else np.uint64(following.x),
                "slices": slices,
                "side": side,
                "channels": layer.outputs,
                "rows": strips.rows,
                "left": up_conv_left_pad(taps),
                "style_count": self._placed.table.styles,
                "gain": layer.act.gain,
                "clamp": layer.clamp,
            },
        )

    def _back_table(self, block: int, samples: int, *, of_picture: bool) -> NDArray[np.int32]:
        """Return gradient_rows' table after a way back: adjoints that go back through layers leave a row a block."""
        layers, rows = self._placed.table.layers.copy(), self._placed.table.rows
        for index in range(self._placed.last(block) + 1):
            layer = self._placed.layers[index]
            conv = self._through_layer(index, samples, of_picture=of_picture)
            if conv:
                layers[rows[layer.spec.name], 8] = conv.rows
                if index > 0:
                    layers[rows[self._placed.layers[index - 1].spec.name], 10] = conv.rows
        return self._placed.row_table(block, layers, of_picture=of_picture)

    def _through_layer(self, index: int, samples: int, *, of_picture: bool) -> ConvLaunch | None:
        """Return the launch of an adjoint that goes back through the layer before, if that alone reads its output."""
        if index + 1 in self._placed.skips:
            return None
        if of_picture and index > 0 and self._placed.rgb_after(index - 1) is not None:
            return None
        return self._choice.through_layer(self._placed.layers[index], samples)

    def _layer_end(self, layer: PlacedConv, following: PlacedConv | None) -> dict[str, Value]:
        """Return what a convolution needs to end its layer."""
        return {
            "style": None if following is None else np.uint64(self._placed.styles_at(following.spec)),
            "demod": self._placed.demods_at(layer.spec),
            "noise": np.uint64(layer.noise),
            "bias": np.uint64(layer.bias),
            "z": np.uint64(layer.z),
            "to": None if following is None else np.uint64(following.x),
            "gain": layer.act.gain,
            "clamp": layer.clamp,
            **self._units(layer),
        }

    def _units(self, layer: PlacedConv) -> dict[str, Value]:
        """Return the unit of a convolution's weights, and the numbers of a sample in arrays of all layers."""
        return {
            "unit": layer.packed.unit,
            "style_count": self._placed.table.styles,
            "demod_count": self._placed.table.demods,
        }

    def _way_back(self, layer: PlacedConv, before: PlacedConv | None) -> dict[str, Value]:
        """Return what the adjoint of a convolution needs to go back through the layer before, or to the constant."""
        own: dict[str, Value] = {
            "style": np.uint64(self._placed.styles_at(layer.spec)),
            "style_sums": self._placed.sums_at(layer.spec, 7),
            "sum_count": self._placed.table.sums,
            **self._units(layer),
        }
        if before is None:
            return {"z": np.uint64(self._placed.constants), **own}
        return {
            **self._layer_end(before, None),
            **own,
            "to": np.uint64(self._us[1]),
            "demod_sums": self._placed.sums_at(before.spec, 9),
            "clamp": before.stored_clamp,
        }

    def _convolve(self, layer: PlacedConv, samples: int, *, is_backward: bool) -> int:
        """Enqueue a convolution or its adjoint into the sums; return the number of slices."""
        conv = self._choice.to_sums(layer, samples, is_backward=is_backward)
        self._launch_conv(conv, layer, {}, is_backward=is_backward)
        return conv.slices

    def _launch_conv(
        self, conv: ConvLaunch, layer: PlacedConv, end: Mapping[str, Value], *, is_backward: bool, to: int = 0
    ) -> None:
        """Enqueue a convolution or its adjoint, and what becomes of its sums; `to` is 0 for `_sums`."""
        source = (self._t if layer.is_up else self._us[0]) if is_backward else layer.x
        weight = layer.backward_weight if is_backward else layer.forward_weight
        conv.enqueue(self, source, weight, to or self._sums, end)

    def _through_conv(self, layer: PlacedConv, samples: int) -> _Incoming:
        """Enqueue the adjoint of a convolution whose end is a pass by itself; return the gradient of its input."""
        half = self._choice.to_gradient(layer, samples)
        if half:
            to = self._us[1]
            self._launch_conv(half, layer, {"unit": layer.packed.unit}, is_backward=True, to=to)
            return _Incoming(to, is_half=True)
        slices = self._convolve(layer, samples, is_backward=True)
        return _Incoming(self._sums, layer.packed.unit, slices)

    def _activate(
        self,
        incoming: _Incoming | None,
        rgb_unit: float,
        following: PlacedConv | None,
        layer: PlacedConv | None,
        rgb: PlacedToRgb | None,
        of_skips: Mapping[str, Value],
        samples: int,
    ) -> None:
        """Enqueue gradient_activation of a layer, None for the constant, with the parts of toRGB and of skips."""
        first = self._placed.layers[0]
        side, channels = (first.source, first.inputs) if layer is None else (layer.spec.resolution, layer.outputs)
        pixels = side * side
        of_rgb: dict[str, Value] = {}
        if rgb is not None:
            of_rgb = {
                "picture_gradient": np.uint64(rgb.gradient),
                "planes": np.uint64(rgb.planes),
                "rgb_weight": np.uint64(rgb.weight),
                "rgb_style": np.uint64(self._placed.styles_at(rgb.spec)),
                "rgb_sums": self._placed.sums_at(rgb.spec, 7),
                "rgb_clamp": rgb.clamp,
                "rgb_unit": rgb_unit,
            }
        self.launch(
            activation_kernel(
                with_rgb=rgb is not None, with_skip=bool(of_skips), from_half=incoming is not None and incoming.is_half
            ),
            (activation_blocks(pixels, channels), -(-channels // 128), samples),
            (256, 1, 1),
            {
                "g": None if incoming is None else np.uint64(incoming.address),
                "style": None if following is None else np.uint64(self._placed.styles_at(following.spec)),
                "z": np.uint64(self._placed.constants if layer is None else layer.z),
                "noise": None if layer is None else np.uint64(layer.noise),
                "bias": None if layer is None else np.uint64(layer.bias),
                "demod": None if layer is None else self._placed.demods_at(layer.spec),
                "u": None if layer is None else np.uint64(self._us[0]),
                "style_sums": None if following is None else self._placed.sums_at(following.spec, 7),
                "demod_sums": None if layer is None else self._placed.sums_at(layer.spec, 9),
                **of_rgb,
                **of_skips,
                "slices": 1 if incoming is None else incoming.slices,
                "pixels": pixels,
                "channels": channels,
                "pixels_per_block": pixels_per_block(pixels, channels),
                "style_count": self._placed.table.styles,
                "demod_count": self._placed.table.demods,
                "sum_count": self._placed.table.sums,
                "unit": 1.0 if incoming is None else incoming.unit,
                "gain": 1.0 if layer is None else layer.act.gain,
                "clamp": np.inf if layer is None else layer.stored_clamp,
            },
        )

    def _styles(self, first: int, layers: int, samples: int) -> None:
        """Enqueue the styles of so many layers of the table from a row on."""
        table = self._placed.table
        widest = int(table.layers[first : first + layers, 0].max())
        self.launch(
            GradientKernel("gradient_styles"),
            (-(-widest // 8), layers, samples),
            (256, 1, 1),
            {
                "ws": np.uint64(self.ws),
                "affine": np.uint64(self._placed.affine),
                "affine_bias": np.uint64(self._placed.affine_bias),
                "table": np.uint64(self._placed.table_at + first * table.layers[0].nbytes),
                "styles": np.uint64(self._placed.styles),
                "w_dim": self.spec.w_dim,
                "w_rows": self.spec.num_ws,
                "style_count": table.styles,
            },
        )

    def _demodulations(self, layers: int, samples: int) -> None:
        """Enqueue the demodulation of so many layers, and the first one's input."""
        table = self._placed.table
        widest = int(table.layers[:layers, 1].max())
        self.launch(
            GradientKernel("gradient_demod"),
            (-(-widest // 8), layers, samples),
            (256, 1, 1),
            {
                "styles": np.uint64(self._placed.styles),
                "squares": np.uint64(self._placed.squares),
                "table": np.uint64(self._placed.table_at),
                "demods": np.uint64(self._placed.demods),
                "constant": np.uint64(self._placed.constants),
                "x": np.uint64(self._placed.layers[0].x),
                "constant_size": self._placed.constant_size,
                "style_count": table.styles,
                "demod_count": table.demods,
            },
        )

    def _row_gradients(
        self, block: int, samples: int, unit: float, update: RowUpdate | None, *, of_picture: bool
    ) -> None:
        """Enqueue what turns partial sums into `ws_gradient`, or into a step of Adam."""
        table, w_dim = self._placed.table, self.spec.w_dim
        rows = slice(0, self.spec.num_ws) if update is None else update.rows
        layers, depth = self._back_tables[block, of_picture, samples == 1]
        cluster = ROW_CLUSTER if rows_kernel(ROW_CLUSTER) in self._kernels else 1
        widest, w_pitch = max(int(table.layers[:, :2].max()), cluster * _ROW_GROUP), padded(w_dim)
        count, room = rows.stop - rows.start, max(1, self._multiprocessors // cluster)
        # Rather than a second wave, every second cluster does two rows.
        clusters = room if room < count <= room + -(-room // 2) else count
        self.launch(
            rows_kernel(cluster),
            (clusters, samples, cluster),
            (_ROW_THREADS, 1, 1),
            {
                "sums": np.uint64(self._placed.partials),
                "styles": np.uint64(self._placed.styles),
                "demods": np.uint64(self._placed.demods),
                "squares": np.uint64(self._placed.squares),
                "affine": np.uint64(self._placed.half_affine),
                "table": np.uint64(layers),
                "ws_gradient": np.uint64(self.ws_gradient),
                **(_NO_UPDATE if update is None else update.arguments),
                "ws": np.uint64(self.ws),
                "depth": depth,
                "first_row": rows.start,
                "rows": count,
                "w_rows": self.spec.num_ws,
                "w_dim": w_dim,
                "w_pitch": w_pitch,
                "widest": widest,
                "style_count": table.styles,
                "demod_count": table.demods,
                "sum_count": table.sums,
                "unit": unit,
            },
            shared_nbytes=4 * (3 * widest + 4 * w_pitch),
        )

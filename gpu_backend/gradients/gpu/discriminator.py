"""The residual blocks of a StyleGAN2 discriminator on a GPU: forward with what the way back needs, back to pictures.

With B the filter before a halving, S the skip, C0 and C1 the convolutions with their gains, and l the leaky ReLU, a
block that reads x at a side and writes the map m at half of it computes::

    z0 = l(C0(x) + b0),   z1 = l(C1(B(z0)) + b1),   m = z1 + S(B(x))                           forward
    u1 = dm l'(z1),   u0 = l'(z0) B^T(C1^T(u1)),   dx = C0^T(u0) + B^T(S^T(dm)) + gradient of x as a map   backward

Activations and their gradients are fp16, products' sums fp32. Gradients are scaled: by one number a sample, and by
twice as much with each doubling of the side, since a gradient that spreads over more pixels is smaller in each of them.
Arrays are [sample][row][column][channel], pictures [sample][colour][row][column].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpu_backend.cuda.driver.arguments import Value
from gpu_backend.cuda.driver.interface import Driver, LoadedKernel
from gpu_backend.gradients.discriminator_layers import SLOPE
from gpu_backend.gradients.gpu.convs.choice import ConvChoice
from gpu_backend.gradients.gpu.convs.launch import columns_of, geometry_arguments
from gpu_backend.gradients.gpu.convs.up_convs import PAIR_MARGIN
from gpu_backend.gradients.gpu.discriminator_kernels import (
    end_kernel,
    ended_conv_kernel,
    filter_adjoint_kernel,
    rgb_adjoint_kernel,
    rgb_kernel,
    stages_of,
)
from gpu_backend.gradients.gpu.kernels import (
    CONV_COLUMNS,
    CONV_ROWS,
    TURING_CONV_STAGES,
    GradientKernel,
    filter_kernel,
    skip_adjoint_kernel,
)
from gpu_backend.gradients.gpu.memory import DeviceArrays
from gpu_backend.gradients.gpu.packed_discriminator import PackedDiscriminator
from gpu_backend.gradients.gpu.placed import PlacedConv
from gpu_backend.gradients.gpu.sequence import KernelSequence
from gpu_backend.gradients.gpu.strips import STRIP_THREADS, strip_grid
from gpu_backend.gradients.gpu.weights import (
    conv_geometry,
    padded,
    skip_geometry,
    up_geometry,
)
from gpu_backend.model.spec import LayerKind, LayerSpec
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.kernels.recipe import KernelRecipe

TAPS = 4
"""Of the filter, for which the paddings are right."""
_GAIN = 2.0
"""Of gradients where the side doubles."""
_LEAST_WAVES = 1.5
"""Blocks for each multiprocessor from which on a convolution computes all of K in one block."""
_DISTANCE_MAPS = 8
"""Most maps of a launch of discriminator_distance."""
_GEOMETRIES = {"conv": conv_geometry, "up_conv": up_geometry, "skip": skip_geometry}


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """A block on the device; addresses but for the side and channels, which are padded.

    `z0`, `signs` of z1, and `output` are what its layers leave for the way back and for the next block.
    """

    side: int
    inputs: int
    outputs: int
    conv0: PlacedConv
    conv1: PlacedConv
    skip: PlacedConv
    x: int
    z0: int
    signs: int
    output: int


class GpuDiscriminator(KernelSequence):
    """The blocks on one device.

    Parameters
    ----------
    kernels
        Those of `kernels_of_discriminator`, loaded; they belong to the caller.
    multiprocessors
        Of the device.
    samples
        Most samples of a run.
    """

    def __init__(
        self,
        driver: Driver,
        kernels: Mapping[KernelRecipe, LoadedKernel],
        packed: PackedDiscriminator,
        multiprocessors: int,
        samples: int,
    ) -> None:
        super().__init__(driver, kernels)
        self._multiprocessors = multiprocessors
        self._choice = ConvChoice(kernels, multiprocessors, driver.tensor_map)
        self._is_turing = ended_conv_kernel(CONV_COLUMNS[0], TURING_CONV_STAGES, taps=0) in kernels
        self._arrays = DeviceArrays(driver)
        self._packed, self.samples = packed, samples
        self.colours, self.side = len(packed.rgb_weight), packed.sides[0]
        try:
            self._place()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free the memory. May be called twice."""
        self._arrays.close()

    @property
    def maps(self) -> list[tuple[int, int, int, int]]:
        """For each map its address, side, channels and channels with padding, (samples, side, side, padded) fp16."""
        channels = self._packed.channels
        return [(block.output, block.side // 2, channels[block.side // 2], block.outputs) for block in self._blocks]

    @property
    def distance_blocks(self) -> int:
        """How many parts `distances` leaves of each sample."""
        return sum(_distance_blocks(side, channels) for _, side, _, channels in self.maps)

    def forward(self, picture: int, samples: int) -> None:
        """Enqueue the maps of pictures at an address, (samples, colours, side, side) fp32."""
        self.break_sequence()
        first = self._blocks[0]
        self.launch(
            rgb_kernel(self.colours),
            (-(-(first.side**2) * first.inputs // 32 // 256), samples, 1),
            (256, 1, 1),
            {
                "picture": np.uint64(picture),
                "weight": np.uint64(self._rgb_weight),
                "bias": np.uint64(self._rgb_bias),
                "out": np.uint64(first.x),
                "mask": np.uint64(self._first_signs),
                "pixels": first.side**2,
                "channels": first.inputs,
            },
        )
        for block in self._blocks:
            self._convolve(block.conv0, block.x, {"out": block.z0}, samples, is_backward=False, slope=SLOPE)
            self._filter(block, samples)
            strips = strip_grid(block.side // 2, block.inputs, samples, self._multiprocessors, step=2)
            self.launch(
                skip_adjoint_kernel(TAPS),
                (strips.blocks, samples, 1),
                (STRIP_THREADS, 1, 1),
                {
                    "from": np.uint64(block.x),
                    "filter": np.uint64(self._taps),
                    "to": np.uint64(self._halved),
                    "side": block.side,
                    "channels": block.inputs,
                    "rows": strips.rows,
                    "left": TAPS - 2,
                },
            )
            whole = self._choice.to_block_end(block.conv1, samples)
            if whole:
                end = self._block_end(block)
                whole.enqueue(self, self._t, block.conv1.backward_weight, block.output, end, halved=self._halved)
                continue
            self._convolve(block.skip, self._halved, {"out": self._d_output}, samples, is_backward=False)
            # The adjoint of a transposed convolution, as which it is placed, is the convolution.
            ends = {"mask": block.signs, "add": self._d_output, "out": block.output}
            self._convolve(block.conv1, self._t, ends, samples, is_backward=True, slope=SLOPE)

    def distances(self, wanted: Sequence[int], least: float, parts: int, most: int, samples: int) -> None:
        """Enqueue the mean squared distance of the last run's maps from wanted ones, all of unit length at each place.

        Parameters
        ----------
        wanted
            Addresses of maps like `maps`, before they get their length.
        least
            Added to the square of a length.
        parts, most
            Addresses of (samples, blocks) fp32: the sum of the parts is the mean of the maps' distances; the most is
            the largest length of a gradient at a place, times the level of its side.
        """
        self.break_sequence()
        first = 0
        maps = list(zip(self.maps, self._numbers, wanted, strict=True))
        for begin in range(0, len(maps), _DISTANCE_MAPS):
            together = maps[begin : begin + _DISTANCE_MAPS]
            missing = [((0, 0, 0, 0), 0, 0)] * (_DISTANCE_MAPS - len(together))
            of_maps: dict[str, Value] = {}
            for index, ((address, _, _, channels), place, other) in enumerate([*together, *missing]):
                pointers = {"x": address, "wanted": other, "numbers": place}
                of_maps |= {f"{name}{index}": _pointer(value) for name, value in pointers.items()}
                of_maps[f"channels{index}"] = channels
            blocks = sum(_distance_blocks(side, channels) for (_, side, _, channels), *_ in together)
            side = together[0][0][1]
            self.launch(
                GradientKernel("discriminator_distance"),
                (blocks, samples, 1),
                (256, 1, 1),
                {
                    **of_maps,
                    "parts": np.uint64(parts),
                    "most": np.uint64(most),
                    "maps": len(together),
                    "places": side**2,
                    "first": first,
                    "blocks": self.distance_blocks,
                    "least": least,
                    "weight": 1.0 / (side**2 * len(self._blocks)),
                    "level": self._level(side),
                },
            )
            first += blocks

    def backward(self, wanted: Sequence[int], scale: int, to: int, samples: int) -> None:
        """Enqueue the way back of the last `distances` to pictures.

        Parameters
        ----------
        wanted
            As there.
        scale
            Address of (samples,) fp32: what the gradients of each sample are multiplied by while they are fp16.
        to
            Address for the pictures' gradient, shaped as these.
        """
        self.break_sequence()
        last = self._blocks[-1]
        self._end(
            0,
            _end_arguments({"out": self._d_output, "signs": last.signs, "u": self._u1}),
            samples,
            last.side // 2,
            last.outputs,
            self._joined(len(self._blocks), wanted, scale, halved=0),
        )
        for index in range(len(self._blocks) - 1, -1, -1):
            block = self._blocks[index]
            self._convolve(block.conv1, self._u1, {"out": self._t}, samples, is_backward=False, gain=_GAIN)
            self._filter_adjoint(block, samples)
            self._convolve(block.skip, self._d_output, {"out": self._halved}, samples, is_backward=True, gain=_GAIN)
            ends = {"out": self._d_output, "signs": self._blocks[index - 1].signs, "u": self._u1}
            if index == 0:
                # Of the first layer's activations the gradient before leaky ReLU alone is wanted.
                ends = {"signs": self._first_signs, "u": self._t}
            joined = self._joined(index, wanted, scale, halved=self._halved)
            self._convolve(block.conv0, self._u0, ends, samples, is_backward=True, joined=joined)
        first = self._blocks[0]
        self.launch(
            rgb_adjoint_kernel(self.colours),
            (-(-(first.side**2) // 256), samples, 1),
            (256, 1, 1),
            {
                "u": np.uint64(self._t),
                "weight": np.uint64(self._rgb_weight),
                "scale": np.uint64(scale),
                "to": np.uint64(to),
                "pixels": first.side**2,
                "channels": first.inputs,
                "level": self._level(first.side),
            },
            4 * self.colours * first.inputs,
        )

    def _place(self) -> None:
        arrays, samples, packed = self._arrays, self.samples, self._packed
        widest = max(map(padded, packed.channels.values()))
        self._ones = arrays.upload(np.ones(widest, np.float32))
        self._taps = arrays.upload(np.array(packed.taps, np.float32))
        self._rgb_weight, self._rgb_bias = arrays.upload(packed.rgb_weight), arrays.upload(packed.rgb_bias)
        self._blocks: list[_Block] = []
        numbers = samples * padded(packed.channels[self.side]) * self.side**2
        x, self._first_signs = arrays.empty(2 * numbers), arrays.empty(numbers // 8)
        for side in packed.sides:
            half, inputs, outputs = side // 2, padded(packed.channels[side]), padded(packed.channels[side // 2])
            z0 = arrays.empty(2 * samples * side**2 * inputs)
            output = arrays.empty(2 * samples * half**2 * outputs)
            signs = arrays.empty(samples * half**2 * outputs // 8)
            conv0 = self._placed(f"b{side}.conv0", "conv", side)
            conv1 = self._placed(f"b{side}.conv1", "up_conv", half)
            skip = self._placed(f"b{side}.skip", "skip", half)
            self._blocks.append(_Block(side, inputs, outputs, conv0, conv1, skip, x, z0, signs, output))
            x = output
        blocks = self._blocks
        numbers = samples * max((block.side + 1) ** 2 * block.inputs for block in blocks)
        self._t = arrays.empty(2 * numbers + PAIR_MARGIN)
        self._u0 = arrays.empty(2 * samples * max(block.side**2 * block.inputs for block in blocks))
        self._halved = arrays.empty(2 * samples * max((block.side // 2) ** 2 * block.inputs for block in blocks))
        self._u1, self._d_output = (
            arrays.empty(2 * samples * max((block.side // 2) ** 2 * block.outputs for block in blocks))
            for _ in range(2)
        )
        self._numbers = [arrays.empty(8 * samples * side**2) for _, side, *_ in self.maps]
        convs = [conv for block in blocks for conv in (block.conv0, block.conv1, block.skip)]
        self._sums = arrays.empty(4 * max(map(self._most_sums, convs)))

    def _placed(self, name: str, kind: LayerKind, source: int) -> PlacedConv:
        """Place a convolution; one that halves the side as the transposed one whose adjoint it is."""
        arrays, conv = self._arrays, self._packed.convs[name]
        _, outputs, inputs = conv.forward.shape
        forward, backward = conv.forward, conv.backward
        side = source
        if kind == "up_conv":
            forward, backward, side = backward, forward, 2 * source
            inputs, outputs = outputs, inputs
        geometries = [_GEOMETRIES[kind](source, backward=is_backward) for is_backward in (False, True)]
        spec = LayerSpec(name, kind, side, inputs, outputs, 1 if kind == "skip" else 3, -1)
        return PlacedConv(
            spec=spec,
            act=BiasAct.of_layer("linear", 1.0, None),
            packed=conv,
            inputs=inputs,
            outputs=outputs,
            source=source,
            forward_weight=arrays.upload(forward),
            backward_weight=arrays.upload(backward),
            bias=0 if kind == "skip" else arrays.upload(conv.bias),
            noise=0,
            forward=geometries[0],
            forward_parities=arrays.upload(geometries[0].parities),
            backward=geometries[1],
            backward_parities=arrays.upload(geometries[1].parities),
            x=0,
            z=0,
        )

    def _level(self, side: int) -> float:
        """Return what gradients at a side are multiplied by, besides the samples' scales."""
        return _GAIN ** (side.bit_length() - (self.side >> len(self._blocks)).bit_length())

    def _most_sums(self, conv: PlacedConv) -> int:
        """Return the most numbers that a convolution leaves in `_sums`."""
        is_cut = any(
            not self._is_ended(conv, samples, is_backward=is_backward)
            for samples in range(1, self.samples + 1)
            for is_backward in (False, True)
        )
        return self._choice.most_sums(conv, self.samples) if is_cut else 4

    def _is_ended(self, conv: PlacedConv, samples: int, *, is_backward: bool) -> bool:
        """Whether there are blocks enough for a convolution that computes all of K in each, with its end."""
        taps = TAPS if is_backward and not conv.is_up else 0
        is_own = self._choice.to_end(conv, samples, is_backward=is_backward, taps=taps)
        if is_own or self._choice.to_skip(conv, samples, is_backward=is_backward):
            return True
        grid = _grid(conv, samples, is_backward=is_backward)
        return int(np.prod(grid)) >= _LEAST_WAVES * self._multiprocessors

    def _convolve(
        self,
        conv: PlacedConv,
        source: int,
        ends: Mapping[str, int],
        samples: int,
        *,
        is_backward: bool,
        gain: float = 1.0,
        slope: float = 1.0,
        joined: Mapping[str, Value] | None = None,
    ) -> None:
        """Enqueue a convolution of the device, or its adjoint, and its end.

        Parameters
        ----------
        ends
            Addresses of arrays of parts/discriminator_end.cuh.
        gain
            Of the sums, besides the weights' unit.
        slope
            1 leaves out the bias and the activation.
        joined
            Arguments of parts/discriminator_join.cuh.
        """
        bias = conv.bias if slope != 1.0 else 0
        end = _end_arguments(ends, bias=bias, unit=conv.packed.unit * gain, slope=slope)
        weight = conv.backward_weight if is_backward else conv.forward_weight
        outputs = conv.inputs if is_backward else conv.outputs
        geometry = conv.backward if is_backward else conv.forward
        whole = None if is_backward or conv.is_skip or conv.is_up else self._choice.to_layer_end(conv, samples)
        if whole:
            whole.enqueue(self, source, weight, self._sums, self._layer_end(conv, ends["out"]))
            return
        is_plain = not is_backward and slope == 1.0 and not joined and set(ends) == {"out"}
        to_filter = self._choice.to_filter(conv, samples) if is_plain else None
        if to_filter:
            to_filter.enqueue(self, source, weight, ends["out"], {"demod": None, "demod_count": 0, "unit": end["unit"]})
            return
        skip = self._choice.to_skip(conv, samples, is_backward=is_backward)
        if skip:
            skip.enqueue(self, source, weight, ends["out"], {"unit": end["unit"]})
            return
        ended = self._choice.to_end(conv, samples, is_backward=is_backward, taps=TAPS if joined else 0)
        if ended:
            ended.enqueue(self, source, weight, self._sums, {**end, **(joined or {})})
            return
        streamed = self._choice.to_join(conv, samples, TAPS) if joined else None
        if streamed:
            taken = {name: end[name] for name in ("out", "signs", "u", "unit")}
            streamed.enqueue(self, source, weight, self._sums, {**taken, **(joined or {})})
            return
        if self._is_ended(conv, samples, is_backward=is_backward):
            inputs = conv.outputs if is_backward else conv.inputs
            stages, columns = stages_of(inputs, is_turing=self._is_turing), columns_of(outputs)
            self.launch(
                ended_conv_kernel(columns, stages, taps=TAPS if joined else 0),
                _grid(conv, samples, is_backward=is_backward),
                (128, 1, 1),
                {
                    "x": np.uint64(source),
                    "weight": np.uint64(weight),
                    **end,
                    **(joined or {}),
                    **geometry_arguments(conv, is_backward=is_backward),
                    "samples": samples,
                },
                stages.nbytes(columns),
            )
            return
        cut = self._choice.to_sums(conv, samples, is_backward=is_backward)
        cut.enqueue(self, source, weight, self._sums)
        self._end(cut.slices, end, samples, geometry.out_side, outputs, joined)

    def _end(
        self,
        slices: int,
        end: Mapping[str, Value],
        samples: int,
        side: int,
        channels: int,
        joined: Mapping[str, Value] | None,
    ) -> None:
        """Enqueue the end of the sums."""
        groups = samples * side**2 * channels // 8
        self.launch(
            end_kernel(TAPS if joined else 0),
            (-(-groups // 128), 1, 1),
            (128, 1, 1),
            {
                "sums": np.uint64(self._sums),
                **end,
                **(joined or {}),
                "slices": slices,
                "groups": groups,
                "side": side,
                "channels": channels,
            },
        )

    def _joined(self, index: int, wanted: Sequence[int], scale: int, *, halved: int) -> dict[str, Value]:
        """Return arguments of parts/discriminator_join.cuh for the input of the block at `index`, or the last output.

        It is a map but for the first block's. `halved` is the address of the gradient of the filtered input, or 0.
        """
        x, side = self.maps[index - 1][:2] if index else (0, self.side)
        return {
            "from": _pointer(halved),
            "filter": np.uint64(self._taps),
            "map": _pointer(x),
            "wanted": _pointer(wanted[index - 1] if index else 0),
            "numbers": _pointer(self._numbers[index - 1] if index else 0),
            "scale": np.uint64(scale),
            "left": TAPS - 2,
            "level": self._level(side),
        }

    def _layer_end(self, conv: PlacedConv, out: int) -> dict[str, Value]:
        """Return what a convolution on Hopper needs to end the layer of a block's first one."""
        return {
            "demod": np.uint64(self._ones),
            "bias": np.uint64(conv.bias),
            "z": np.uint64(out),
            "unit": conv.packed.unit,
        }

    def _block_end(self, block: _Block) -> dict[str, Value]:
        """Return what the second convolution needs to end its block with the skip."""
        return {
            "skip_weight": np.uint64(block.skip.forward_weight),
            "bias": np.uint64(block.conv1.bias),
            "mask": np.uint64(block.signs),
            "slope": SLOPE,
            "unit": block.conv1.packed.unit,
            "skip_unit": block.skip.packed.unit,
        }

    def _filter(self, block: _Block, samples: int) -> None:
        """Enqueue the filter of the activations of a block's first convolution, to `_t`."""
        strips = strip_grid(block.side + 1, block.inputs, samples, self._multiprocessors)
        self.launch(
            filter_kernel(TAPS),
            (strips.blocks, samples, 1),
            (STRIP_THREADS, 1, 1),
            {
                "u": np.uint64(block.z0),
                "filter": np.uint64(self._taps),
                "t": np.uint64(self._t),
                "side": block.side,
                "channels": block.inputs,
                "rows": strips.rows,
                "left": TAPS - 3,
            },
        )

    def _filter_adjoint(self, block: _Block, samples: int) -> None:
        """Enqueue its adjoint from `_t`, and the way back through the activation before it, to `_u0`."""
        strips = strip_grid(block.side, block.inputs, samples, self._multiprocessors)
        self.launch(
            filter_adjoint_kernel(TAPS),
            (strips.blocks, samples, 1),
            (STRIP_THREADS, 1, 1),
            {
                "t": np.uint64(self._t),
                "filter": np.uint64(self._taps),
                "z": np.uint64(block.z0),
                "u": np.uint64(self._u0),
                "side": block.side,
                "channels": block.inputs,
                "rows": strips.rows,
                "left": TAPS - 3,
            },
        )


def _grid(conv: PlacedConv, samples: int, *, is_backward: bool) -> tuple[int, int, int]:
    """Return the blocks of discriminator_conv."""
    geometry, outputs = (conv.backward, conv.inputs) if is_backward else (conv.forward, conv.outputs)
    rows = -(-samples * max(geometry.pixels) // CONV_ROWS)
    return rows, -(-outputs // columns_of(outputs)), len(geometry.parities)


def _distance_blocks(side: int, channels: int) -> int:
    """Return the blocks of discriminator_distance of a map."""
    lanes = 32 if channels > 128 else 16 if channels > 64 else 8
    return -(-(side**2) * lanes // 1024)


def _end_arguments(
    arrays: Mapping[str, int], *, bias: int = 0, unit: float = 1.0, slope: float = 1.0
) -> dict[str, Value]:
    """Return arguments of parts/discriminator_end.cuh; arrays that are left out are null."""
    pointers = {name: _pointer(arrays.get(name, 0)) for name in ("mask", "add", "out", "signs", "u")}
    return {"bias": _pointer(bias), **pointers, "unit": unit, "slope": slope}


def _pointer(address: int) -> np.uint64 | None:
    return np.uint64(address) if address else None

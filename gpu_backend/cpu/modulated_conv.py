"""Convolution with or without a style: Winograd for large layers, packed direct convolution for small ones.

The choice depends only on sizes, never on a measurement, so that equal requests give equal bytes in every process.
Milliseconds for each layer without epilogue on two AVX-512 cores, direct / Winograd:

    16 x 16 x 512  5.2 / 3.0     32 x 32 x 512  20.4 / 8.2     64 x 64 x 256  20.8 / 9.2
    128 x 128 x 128  21.2 / 12.3     256 x 256 x 64  21.2 / 17.4
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from gpu_backend.cpu.chunks import Chunk, chunks_of
from gpu_backend.cpu.convolution import Convolution, make_convolution
from gpu_backend.cpu.epilogue import Epilogue, LayerEnd, MakeEnd, strip_rows
from gpu_backend.cpu.kernel import BumpAllocator, Kernel, Site, allocated_floats
from gpu_backend.cpu.team import CHANNEL_SPLIT_MAX_SIDE, layer_parts, spans
from gpu_backend.cpu.weight_stack import WeightStack
from gpu_backend.cpu.winograd import (
    MIN_TILES_OF_LARGE,
    TILE,
    InputTiles,
    OutputTiles,
    WinogradConvolution,
    transform_weight,
)
from gpu_backend.ops.adain_conv import AdainConv
from gpu_backend.ops.modulated_conv import ModulatedConv
from gpu_backend.ops.modulated_up_conv import ModulatedUpConv
from gpu_backend.plan.plan import Step

MIN_WINOGRAD_SIDE = 16
MIN_WINOGRAD_CHANNELS = 64


Attributes = ModulatedConv | AdainConv


def suits_winograd(attributes: Attributes) -> bool:
    """Return whether the layer is large enough for Winograd's transforms to pay off."""
    return (
        attributes.kernel == 3
        and attributes.resolution >= MIN_WINOGRAD_SIDE
        and min(attributes.in_channels, attributes.out_channels) >= MIN_WINOGRAD_CHANNELS
    )


def make_convolution_kernel(step: Step, site: Site, make_end: MakeEnd = Epilogue) -> Kernel:
    """Return the kernel that suits the layer's size."""
    if not suits_winograd(step.attributes):
        return DirectConv(step, site, make_end)
    is_small = step.attributes.resolution <= CHANNEL_SPLIT_MAX_SIDE
    return (SharedWinogradConv if is_small else WinogradConv)(step, site, make_end)


class WinogradConv(Kernel):
    """Winograd convolution of a large layer; the lanes divide its rows."""

    def __init__(self, step: Step, site: Site, make_end: MakeEnd = Epilogue) -> None:
        attributes: Attributes = step.attributes
        self._x, self._style, self._out, self._team = *_ends(step, site), site.team
        side, channels = attributes.resolution, (0, attributes.out_channels)
        self._lanes: list[tuple[WinogradConvolution, LayerEnd]] = []
        for rows, _ in layer_parts(side, attributes.out_channels, site.team.lanes):
            if rows[0] < rows[1]:
                weights = _transformed(step, site, channels)
                convolution = WinogradConvolution(weights, side, rows, attributes.pad, width=site.team.width)
                self._lanes.append((convolution, make_end(step, site, rows, channels)))
        self.scratch_floats = sum(convolution.scratch_floats for convolution, _ in self._lanes)

    def attach(self, scratch: Tensor) -> None:
        carver = BumpAllocator(scratch)
        for convolution, _ in self._lanes:
            convolution.attach(carver.take(convolution.scratch_floats))

    def run(self) -> None:
        self._team.run(self._lane)

    def replay_key(self) -> Hashable:
        return self._lanes[0][1].replay_key()

    def layer_output(self) -> Tensor:
        return self._out.permute(0, 3, 1, 2)

    def _lane(self, lane: int) -> None:
        if lane < len(self._lanes):
            convolution, epilogue = self._lanes[lane]
            for sample in range(self._x.shape[0]):
                epilogue.begin(sample)
                style = None if self._style is None else self._style[sample]
                convolution.run(self._x[sample], style, epilogue, self._out[sample])


class SharedWinogradConv(Kernel):
    """Winograd convolution of a small layer: the lanes divide its rows to transform the input, then its channels."""

    def __init__(self, step: Step, site: Site, make_end: MakeEnd = Epilogue) -> None:
        attributes: Attributes = step.attributes
        self._x, self._style, self._out, self._team = *_ends(step, site), site.team
        side, inputs, lanes = attributes.resolution, attributes.in_channels, site.team.lanes
        self._tile_rows = -(-side // TILE)
        self._inputs = [
            (first, InputTiles(inputs, side, end - first, attributes.pad))
            for first, end in spans(self._tile_rows, lanes)
            if first < end
        ]
        self._outputs: list[tuple[OutputTiles, LayerEnd, Tensor]] = []
        for channels in spans(attributes.out_channels, lanes):
            if channels[0] < channels[1]:
                tiles = OutputTiles(_transformed(step, site, channels), side, (0, side), self._tile_rows)
                layer_end = make_end(step, site, (0, side), channels)
                self._outputs.append((tiles, layer_end, self._out[..., slice(*channels)]))
        self._transformed_shape = InputTiles(inputs, side, self._tile_rows, attributes.pad).shapes()[1]
        self.scratch_floats = allocated_floats(
            self._transformed_shape,
            *(shape for _, tiles in self._inputs for shape in tiles.shapes()),
            *(shape for tiles, _, _ in self._outputs for shape in tiles.shapes()),
        )

    def attach(self, scratch: Tensor) -> None:
        carver = BumpAllocator(scratch)
        v = carver.take(*self._transformed_shape)
        for first, tiles in self._inputs:
            y, g = (carver.take(*shape) for shape in tiles.shapes())
            tiles.attach(y, g, v[:, :, first : first + g.shape[2]])
        for output, _, _ in self._outputs:
            output.attach(v, *(carver.take(*shape) for shape in output.shapes()))

    def run(self) -> None:
        for sample in range(self._x.shape[0]):
            self._team.run(partial(self._transform, sample))
            self._team.run(partial(self._multiply, sample))

    def replay_key(self) -> Hashable:
        return self._outputs[0][1].replay_key()

    def layer_output(self) -> Tensor:
        return self._out.permute(0, 3, 1, 2)

    def _transform(self, sample: int, lane: int) -> None:
        if lane < len(self._inputs):
            first, tiles = self._inputs[lane]
            tiles.run(self._x[sample], None if self._style is None else self._style[sample], first)

    def _multiply(self, sample: int, lane: int) -> None:
        if lane < len(self._outputs):
            tiles, epilogue, out = self._outputs[lane]
            epilogue.begin(sample)
            tiles.run(0, epilogue, out[sample])


@dataclass(eq=False)
class _DirectPart:
    """The rows and channels of one lane, computed in chunks."""

    rows: tuple[int, int]
    chunks: list[Chunk]
    convolve: Convolution
    epilogue: LayerEnd
    out: Tensor
    strip: int
    scaled: Tensor


class DirectConv(Kernel):
    """Direct convolution with packed weights, one for each lane."""

    def __init__(self, step: Step, site: Site, make_end: MakeEnd = Epilogue) -> None:
        attributes: Attributes = step.attributes
        self._x, self._style, self._out, self._team = *_ends(step, site), site.team
        self._before, self._after = attributes.pad, attributes.kernel - 1 - attributes.pad
        batch, _, width, inputs = self._x.shape
        self._parts: list[_DirectPart] = []
        for rows, (first, end) in layer_parts(attributes.resolution, attributes.out_channels, site.team.lanes):
            if rows[0] == rows[1] or first == end:
                continue
            row_nbytes = 4 * self._out.shape[2] * (end - first)
            chunks = chunks_of(batch, rows, row_nbytes)
            samples, height = self._extent(chunks[min(1, len(chunks) - 1)])
            convolve = _packed(step, site, (first, end), (samples, inputs, height, width))
            epilogue = make_end(step, site, rows, (first, end))
            strip = strip_rows(row_nbytes, rows[1] - rows[0], site.team.width)
            out = self._out[..., first:end]
            self._parts.append(_DirectPart(rows, chunks, convolve, epilogue, out, strip, torch.empty(0)))
        self.scratch_floats = allocated_floats(*(self._scaled_shape(part) for part in self._parts))

    def attach(self, scratch: Tensor) -> None:
        carver = BumpAllocator(scratch)
        for part in self._parts:
            part.scaled = carver.take(*self._scaled_shape(part))

    def run(self) -> None:
        self._team.run(self._lane)

    def replay_key(self) -> Hashable:
        return self._parts[0].epilogue.replay_key()

    def layer_output(self) -> Tensor:
        return self._out.permute(0, 3, 1, 2)

    def _lane(self, lane: int) -> None:
        if lane >= len(self._parts):
            return
        part = self._parts[lane]
        for chunk in part.chunks:
            first, _ = self._source(chunk)
            raw = part.convolve(self._input(chunk, part.scaled).permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
            for index, sample in enumerate(range(*chunk.samples)):
                if chunk.rows[0] == part.rows[0]:
                    part.epilogue.begin(sample)
                for row in range(*chunk.rows, part.strip):
                    last = min(row + part.strip, chunk.rows[1])
                    part.epilogue.finish(raw[index, row - first : last - first], row, part.out[sample, row:last])

    def _input(self, chunk: Chunk, memory: Tensor) -> Tensor:
        """Return the input rows of a chunk, scaled by the style and contiguous: (samples, rows, width, in_channels)."""
        samples = slice(*chunk.samples)
        source = self._x[samples, slice(*self._source(chunk))]
        if self._style is None and source.is_contiguous():
            return source
        dense = memory[: source.numel()].view(source.shape)
        if self._style is None:
            return dense.copy_(source)
        return torch.mul(source, self._style[samples, None, None, :], out=dense)

    def _source(self, chunk: Chunk) -> tuple[int, int]:
        """Return the first and end row of the input that a chunk reads."""
        return max(0, chunk.rows[0] - self._before), min(self._x.shape[1], chunk.rows[1] + self._after)

    def _extent(self, chunk: Chunk) -> tuple[int, int]:
        """Return the number of samples of a chunk, and the number of input rows that it reads."""
        first, end = self._source(chunk)
        return chunk.samples[1] - chunk.samples[0], end - first

    def _scaled_shape(self, part: _DirectPart) -> tuple[int]:
        most = max(samples * height for samples, height in map(self._extent, part.chunks))
        return (most * self._x.shape[2] * self._x.shape[3],)


def _ends(step: Step, site: Site) -> tuple[Tensor, Tensor | None, Tensor]:
    """Input, style of the input, and output of the layer."""
    return site.buffers[step.inputs[0]], input_style(step, site), site.buffers[step.outputs[0]]


def input_style(step: Step, site: Site) -> Tensor | None:
    """Return the style of a layer's input channels, (batch, in_channels); None without a style."""
    attributes = step.attributes
    if not isinstance(attributes, ModulatedConv | ModulatedUpConv):
        return None
    return site.buffers[step.inputs[1]][:, attributes.style_offset : attributes.style_offset + attributes.in_channels]


def _transformed(step: Step, site: Site, channels: tuple[int, int]) -> WeightStack:
    key = (step.weights["weight"], "winograd", channels)
    rows = min(MIN_TILES_OF_LARGE, (-(-step.attributes.resolution // TILE)) ** 2)
    weight = site.weight(step, "weight")[slice(*channels)]
    return site.packed.get(key, lambda: WeightStack(transform_weight(weight, site.team), rows, site.team))


def _packed(step: Step, site: Site, channels: tuple[int, int], shape: tuple[int, int, int, int]) -> Convolution:
    key, pad = (step.weights["weight"], "direct", channels, shape), step.attributes.pad
    return site.packed.get(key, lambda: make_convolution(site.weight(step, "weight")[slice(*channels)], shape, pad))

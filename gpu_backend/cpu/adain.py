"""Epilogue of a StyleGAN1 layer: noise, bias and activation in strips, then instance norm and style in place.

    y = act(gain raw + b + strength noise);     out = a y + c,    a = scale rsqrt(var + epsilon),    c = shift - a mean

Mean and M2 (sum of squares about the strip's mean) are accumulated while a strip is in the cache. The partials of all
strips are merged in double precision (Chan et al. 1983, equation 2.1), which keeps channels of low variance accurate.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gpu_backend.cpu.activation import finish_in_place
from gpu_backend.cpu.epilogue import STRIP_NBYTES, MakeEnd
from gpu_backend.cpu.kernel import BumpAllocator, Kernel, Site
from gpu_backend.cpu.modulated_conv import make_convolution_kernel
from gpu_backend.cpu.modulated_up_conv import make_up_conv_kernel
from gpu_backend.cpu.team import layer_parts
from gpu_backend.ops.adain import weight_gain
from gpu_backend.ops.adain_conv import AdainConv
from gpu_backend.ops.adain_input import AdainInput
from gpu_backend.ops.adain_up_conv import AdainUpConv, blurred_ones
from gpu_backend.plan.plan import Step

Attributes = AdainInput | AdainConv | AdainUpConv


@dataclass(slots=True)
class Moments:
    """Partial moments of strips: pixel counts, and per-channel means and M2 (sums of squares about the mean)."""

    counts: list[int] = field(default_factory=list)
    means: list[Tensor] = field(default_factory=list)
    squares: list[Tensor] = field(default_factory=list)


def put_together(parts: list[Moments]) -> tuple[Tensor, Tensor]:
    """Return mean and variance over all strips, (channels,) float64 each."""
    counts = torch.tensor([count for part in parts for count in part.counts], dtype=torch.float64)
    means = torch.stack([mean for part in parts for mean in part.means]).double()
    squares = torch.stack([square for part in parts for square in part.squares]).double()
    shares = counts / counts.sum()
    mean = shares @ means
    return mean, squares.sum(0) / counts.sum() + shares @ (means - mean).square()


class AdainEnd:
    """Some rows and channels of a layer before the normalisation. Implements `gpu_backend.cpu.epilogue.LayerEnd`."""

    def __init__(self, step: Step, site: Site, rows: tuple[int, int], channels: tuple[int, int]) -> None:
        attributes: Attributes = step.attributes
        first, end = channels
        self._strip_floats = STRIP_NBYTES // 4 * site.team.width
        self.rows, self.channels = rows, channels
        self._side, self._act = attributes.resolution, attributes.act
        self._gain = 1.0 if isinstance(attributes, AdainInput) else weight_gain(attributes.in_channels)
        self._bias = site.weight(step, "bias")[first:end]
        self._blurred: Tensor | None = None
        if isinstance(attributes, AdainUpConv) and attributes.blurs_bias:
            ones = torch.from_numpy(blurred_ones(attributes.resolution)).float()
            self._blurred = (ones[:, None] * ones)[rows[0] : rows[1], :, None] - 1.0
        self._noise: Tensor | None = None
        if attributes.noise_index >= 0:
            self._noise = site.noise.of(step)[rows[0] : rows[1], :, None]
            self._noise_gain = site.buffers[step.inputs[3]][attributes.noise_index]
            self._strength = site.weight(step, "noise_strength")[first:end]
            self._scaled_strength = torch.empty(end - first)
        self._noise_is_on = False
        self._work = torch.empty(0)
        self.moments: dict[int, Moments] = {}
        self._gathered = Moments()

    @property
    def scratch_floats(self) -> int:
        """Size of the working memory in floats: a strip of the layer, at least one row."""
        width = self._bias.shape[0]
        return max(self._strip_floats, self._side * width)

    def attach(self, scratch: Tensor) -> None:
        self._work = scratch

    def replay_key(self) -> Hashable:
        return None  # the moments are made anew at each run

    def begin(self, sample: int) -> None:
        """Set the noise of this frame and reset the moments for the next sample."""
        self._gathered = self.moments[sample] = Moments()
        if self._noise is not None:
            gain = float(self._noise_gain)
            self._noise_is_on = gain != 0.0
            torch.mul(self._strength, gain, out=self._scaled_strength)

    def finish(self, raw: Tensor, first_row: int, out: Tensor) -> None:
        """Write rows of the layer before the normalisation, and accumulate their moments."""
        target = out if raw.ndim == 3 else out.view(raw.shape)
        torch.add(self._bias, raw, alpha=self._gain, out=target)
        first = first_row - self.rows[0]
        inside = out[: min(out.shape[0], self.rows[1] - first_row), : self._side]
        rows = slice(first, first + inside.shape[0])
        if self._blurred is not None:
            inside.addcmul_(self._blurred[rows], self._bias)
        if self._noise is not None and self._noise_is_on:
            inside.addcmul_(self._noise[rows], self._scaled_strength)
        finish_in_place(inside, self._act)
        height = max(1, self._work.numel() // (inside.shape[1] * inside.shape[2]))
        for row in range(0, inside.shape[0], height):
            self._gather(inside[row : row + height])

    def _gather(self, strip: Tensor) -> None:
        count = strip.shape[0] * strip.shape[1]
        mean = strip.sum((0, 1)).div_(count)
        centred = torch.sub(strip, mean, out=self._work[: strip.numel()].view(strip.shape))
        self._gathered.counts.append(count)
        self._gathered.means.append(mean)
        self._gathered.squares.append(centred.square_().sum((0, 1)))


class AdainKernel(Kernel):
    """A layer of StyleGAN1: its convolution, an `AdainEnd` for each lane, and the normalisation."""

    def __init__(self, step: Step, site: Site) -> None:
        attributes: Attributes = step.attributes
        offset, width = attributes.style_offset, attributes.out_channels
        styles = site.buffers[step.inputs[1]]
        self._scale = styles[:, offset : offset + width]
        self._shift = styles[:, offset + width : offset + 2 * width]
        self._out, self._team, self._epsilon = site.buffers[step.outputs[0]], site.team, attributes.epsilon
        self._factor, self._offset = torch.empty(site.batch, width), torch.empty(site.batch, width)
        self._ends: list[AdainEnd] = []
        self._inner = self._make_inner(step, site)
        self.scratch_floats = self._inner.scratch_floats + sum(end.scratch_floats for end in self._ends)

    def attach(self, scratch: Tensor) -> None:
        carver = BumpAllocator(scratch)
        self._inner.attach(carver.take(self._inner.scratch_floats))
        for end in self._ends:
            end.attach(carver.take(end.scratch_floats))

    def run(self) -> None:
        self._inner.run()
        for span in {end.channels: None for end in self._ends}:
            ends = [end for end in self._ends if end.channels == span]
            for sample in range(self._out.shape[0]):
                mean, variance = put_together([end.moments[sample] for end in ends])
                factor = self._scale[sample, slice(*span)] * (variance + self._epsilon).rsqrt_()
                self._factor[sample, slice(*span)] = factor
                self._offset[sample, slice(*span)] = self._shift[sample, slice(*span)] - factor * mean
        self._team.run(self._normalize)

    def layer_output(self) -> Tensor:
        return self._out.permute(0, 3, 1, 2)

    def _make_inner(self, step: Step, site: Site) -> Kernel:
        def make_end(step: Step, site: Site, rows: tuple[int, int], channels: tuple[int, int]) -> AdainEnd:
            self._ends.append(AdainEnd(step, site, rows, channels))
            return self._ends[-1]

        if step.op == "adain_up_conv":
            return make_up_conv_kernel(step, site, make_end)
        if step.op == "adain_conv":
            return make_convolution_kernel(step, site, make_end)
        return _Copy(step, site, make_end)

    def _normalize(self, lane: int) -> None:
        if lane < len(self._ends):
            end = self._ends[lane]
            channels = slice(*end.channels)
            for out, factor, offset in zip(self._out, self._factor, self._offset, strict=True):
                part = out[slice(*end.rows), :, channels]
                torch.addcmul(offset[channels], part, factor[channels], out=part)


class _Copy(Kernel):
    """The first layer, whose raw values are the learned constant."""

    def __init__(self, step: Step, site: Site, make_end: MakeEnd) -> None:
        self._x, self._out, self._team = site.buffers[step.inputs[0]], site.buffers[step.outputs[0]], site.team
        self._parts = [
            (slice(*channels), make_end(step, site, rows, channels))
            for rows, channels in layer_parts(step.attributes.resolution, self._out.shape[3], site.team.lanes)
            if channels[0] < channels[1]
        ]

    def run(self) -> None:
        self._team.run(self._lane)

    def _lane(self, lane: int) -> None:
        if lane < len(self._parts):
            channels, end = self._parts[lane]
            for sample, (x, out) in enumerate(zip(self._x, self._out, strict=True)):
                end.begin(sample)
                end.finish(x[..., channels], 0, out[..., channels])

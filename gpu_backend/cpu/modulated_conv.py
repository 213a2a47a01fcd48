"""The modulated convolution: Winograd where it pays, a packed direct convolution elsewhere.

Which one is a fixed rule of the sizes and never a measurement, so that the same request gives the same bytes in every
process. On two AVX-512 cores, milliseconds a layer without epilogue, direct / Winograd:

    16 x 16 x 512  5.2 / 3.6     32 x 32 x 512  20.4 / 9.2     64 x 64 x 256  20.8 / 10.1
    128 x 128 x 128  21.2 / 12.3     256 x 256 x 64  21.2 / 17.4
"""

from __future__ import annotations

import torch
from torch import Tensor

from gpu_backend.cpu.convolution import make_convolution
from gpu_backend.cpu.epilogue import Epilogue, strip_rows
from gpu_backend.cpu.kernel import Carver, Kernel, Site, carved_floats
from gpu_backend.cpu.winograd import TILE, WinogradConvolution, transform_weight
from gpu_backend.ops.modulated_conv import ModulatedConv
from gpu_backend.plan.plan import Step

MIN_WINOGRAD_SIDE = 16
MIN_WINOGRAD_CHANNELS = 64


def suits_winograd(attributes: ModulatedConv) -> bool:
    """Whether the layer is large enough that Winograd's transforms are paid back."""
    return (
        attributes.kernel == 3
        and attributes.resolution % TILE == 0
        and attributes.resolution >= MIN_WINOGRAD_SIDE
        and min(attributes.in_channels, attributes.out_channels) >= MIN_WINOGRAD_CHANNELS
    )


def make_modulated_conv(step: Step, site: Site) -> Kernel:
    """Return the kernel that suits the layer's size."""
    return WinogradConv(step, site) if suits_winograd(step.attributes) else DirectConv(step, site)


class _ModulatedConv(Kernel):
    def __init__(self, step: Step, site: Site) -> None:
        self.attributes: ModulatedConv = step.attributes
        offset = self.attributes.style_offset
        self._x = site.buffers[step.inputs[0]]
        self._style = site.buffers[step.inputs[1]][:, offset : offset + self.attributes.in_channels]
        self._out = site.buffers[step.outputs[0]]
        self._epilogue = Epilogue(step, site)

    def layer_output(self) -> Tensor:
        """What the layer gave."""
        return self._out.permute(0, 3, 1, 2)


class WinogradConv(_ModulatedConv):
    """By Winograd."""

    def __init__(self, step: Step, site: Site) -> None:
        super().__init__(step, site)
        weight = site.packed.get(
            (step.weights["weight"], "winograd"), lambda: transform_weight(site.weight(step, "weight"))
        )
        self._convolution = WinogradConvolution(weight, self.attributes.resolution)
        self.scratch_floats = self._convolution.scratch_floats

    def attach(self, scratch: Tensor) -> None:
        """Take working memory."""
        self._convolution.attach(scratch)

    def run(self) -> None:
        """Do the step."""
        for sample in range(self._x.shape[0]):
            self._epilogue.begin(sample)
            self._convolution.run(self._x[sample], self._style[sample], self._epilogue, self._out[sample])


class DirectConv(_ModulatedConv):
    """By a packed convolution."""

    def __init__(self, step: Step, site: Site) -> None:
        super().__init__(step, site)
        batch, height, width, channels = self._x.shape
        shape = (batch, channels, height, width)
        self._convolve = site.packed.get(
            (step.weights["weight"], "direct", shape),
            lambda: make_convolution(site.weight(step, "weight"), shape),
        )
        self.scratch_floats = carved_floats(tuple(self._x.shape))
        self._strip = strip_rows(4 * width * self.attributes.out_channels, height)

    def attach(self, scratch: Tensor) -> None:
        """Take working memory."""
        self._scaled = Carver(scratch).take(*self._x.shape)

    def run(self) -> None:
        """Do the step."""
        torch.mul(self._x, self._style[:, None, None, :], out=self._scaled)
        raw = self._convolve(self._scaled.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        for sample in range(raw.shape[0]):
            self._epilogue.begin(sample)
            for row in range(0, raw.shape[1], self._strip):
                rows = slice(row, row + self._strip)
                self._epilogue.finish(raw[sample, rows], row, self._out[sample, rows])

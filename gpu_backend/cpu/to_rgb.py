"""toRGB: a product over all pixels, clamp, and the doubled picture of the block before.

Pictures are worked on as planes: three channels are too few for an inner dimension.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gpu_backend.cpu.fir import Doubling
from gpu_backend.cpu.kernel import Carver, Kernel, Site, carved_floats
from gpu_backend.ops.to_rgb import ToRgb
from gpu_backend.plan.plan import Step


class ToRgbKernel(Kernel):
    """One toRGB layer."""

    def __init__(self, step: Step, site: Site) -> None:
        attributes: ToRgb = step.attributes
        offset = attributes.style_offset
        self._x = site.buffers[step.inputs[0]]
        self._style = site.buffers[step.inputs[1]][:, offset : offset + attributes.in_channels]
        self._image = site.buffers[step.inputs[2]] if attributes.adds_image else None
        self._out = site.buffers[step.outputs[0]]
        self._weight = site.weight(step, "weight").flatten(1)
        self._bias = site.weight(step, "bias")[:, None]
        self._clamp = attributes.clamp
        self._doubling = Doubling(attributes.taps)
        self._batch, self._channels, self._side = site.batch, attributes.out_channels, attributes.resolution
        self._styled = torch.empty_like(self._weight)
        self.scratch_floats = carved_floats(*self._shapes())

    def attach(self, scratch: Tensor) -> None:
        """Take working memory."""
        carver = Carver(scratch)
        self._y, self._low, self._tall, self._sum = (carver.take(*shape) for shape in self._shapes())

    def run(self) -> None:
        """Do the step."""
        for sample in range(self._batch):
            pixels = self._x[sample].view(self._side**2, -1)
            torch.mul(self._weight, self._style[sample], out=self._styled)
            torch.mm(self._styled, pixels.t(), out=self._y[sample])
        self._y.add_(self._bias)
        if self._clamp is not None:
            self._y.clamp_(-self._clamp, self._clamp)
        planes = self._y.view(self._batch, self._channels, self._side, self._side)
        if self._image is not None:
            self._double(self._image)
            planes = self._sum.add_(planes)
        self._out.copy_(planes.permute(0, 2, 3, 1))

    def layer_output(self) -> Tensor:
        """What the layer gave."""
        return self._y.view(self._batch, self._channels, self._side, self._side)

    def _double(self, image: Tensor) -> None:
        margin, half = self._doubling.margin, self._side // 2
        self._low.zero_()
        inner = slice(margin, margin + half)
        self._low[:, :, inner, inner].copy_(image.permute(0, 3, 1, 2))
        self._doubling.run(self._low, 2, self._tall)
        self._doubling.run(self._tall, 3, self._sum)

    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        batch, channels, side = self._batch, self._channels, self._side
        low = side // 2 + 2 * self._doubling.margin
        return (
            (batch, channels, side**2),
            (batch, channels, low, low),
            (batch, channels, side, low),
            (batch, channels, side, side),
        )

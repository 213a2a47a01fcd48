"""Styles and demodulation coefficients: two matrix-vector products a layer, with the sums over taps done at binding."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gpu_backend.cpu.kernel import Carver, Kernel, Site, carved_floats
from gpu_backend.ops.normalize_2nd_moment import EPSILON
from gpu_backend.ops.styles import Styles
from gpu_backend.plan.plan import Step


class StylesKernel(Kernel):
    """All layers of a synthesis network."""

    def __init__(self, step: Step, site: Site) -> None:
        attributes: Styles = step.attributes
        ws = site.buffers[step.inputs[0]]
        self._styles, self._demod = (site.buffers[name] for name in step.outputs)
        self._affines: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        self._sums: list[tuple[slice, Tensor, Tensor]] = []
        for slot in attributes.slots:
            scale = slot.style_gain / math.sqrt(attributes.w_dim)
            affine = site.packed.get(
                (slot.layer, "affine"),
                lambda slot=slot, scale=scale: (  # type: ignore[misc]
                    (site.weight(step, f"{slot.layer}.affine.weight") * scale).t(),
                    site.weight(step, f"{slot.layer}.affine.bias") * slot.style_gain,
                ),
            )
            span = slice(slot.style_offset, slot.style_offset + slot.in_channels)
            self._affines.append((affine[1], ws[:, slot.w_index], affine[0], self._styles[:, span]))
            if slot.demod_offset >= 0:
                squares = site.packed.get(
                    (slot.layer, "squares"),
                    lambda slot=slot: (  # type: ignore[misc]
                        site.weight(step, f"{slot.layer}.weight").double().square().sum((2, 3)).float().t()
                    ),
                )
                out = self._demod[:, slot.demod_offset : slot.demod_offset + slot.out_channels]
                self._sums.append((span, squares, out))
        self.scratch_floats = carved_floats(tuple(self._styles.shape))

    def attach(self, scratch: Tensor) -> None:
        """Take working memory."""
        self._squared = Carver(scratch).take(*self._styles.shape)

    def run(self) -> None:
        """Do the step."""
        for bias, row, weight, style in self._affines:
            torch.addmm(bias, row, weight, out=style)
        torch.square(self._styles, out=self._squared)
        for span, squares, out in self._sums:
            torch.mm(self._squared[:, span], squares, out=out)
        self._demod.add_(EPSILON).rsqrt_()

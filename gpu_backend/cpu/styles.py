"""Styles and demodulation coefficients: two matrix-vector products for each layer; tap sums are computed at binding."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from gpu_backend.cpu.kernel import Kernel, Site
from gpu_backend.ops.normalize_2nd_moment import EPSILON
from gpu_backend.ops.styles import Styles, StyleSlot
from gpu_backend.plan.plan import Step


@dataclass(eq=False)
class _Layer:
    row: Tensor
    weight: Tensor
    bias: Tensor
    style: Tensor
    squares: Tensor | None = None
    demod: Tensor | None = None
    factors: Tensor | None = None
    is_normalized: bool = False
    offset: Tensor | None = None


class StylesKernel(Kernel):
    """All layers of a synthesis network."""

    def __init__(self, step: Step, site: Site) -> None:
        attributes: Styles = step.attributes
        ws = site.buffers[step.inputs[0]]
        self._styles, self._demod = (site.buffers[name] for name in step.outputs)
        self._team = site.team
        self._layers: list[_Layer] = []

        def pack(lane: int) -> None:
            for slot in attributes.slots[lane :: site.team.lanes]:
                _packed(step, site, slot)

        site.team.run(pack)
        for slot in attributes.slots:
            affine, squares = _packed(step, site, slot)
            span = slice(slot.style_offset, slot.style_offset + slot.in_channels)
            layer = _Layer(ws[:, slot.w_index], affine[0], affine[1], self._styles[:, span])
            layer.offset = site.buffers[step.inputs[1]][span] if len(step.inputs) > 1 else None
            self._layers.append(layer)
            if squares is not None:
                layer.squares, factors = squares
                layer.is_normalized = slot.is_normalized
                layer.factors = factors if slot.is_normalized else None
                layer.demod = self._demod[:, slot.demod_offset : slot.demod_offset + slot.out_channels]

    def run(self) -> None:
        self._team.run(self._lane)

    def replay_key(self) -> Hashable:
        return "always"

    def _lane(self, lane: int) -> None:
        for layer in self._layers[lane :: self._team.lanes]:
            torch.addmm(layer.bias, layer.row, layer.weight, out=layer.style)
            if layer.is_normalized:
                layer.style.mul_(layer.style.square().mean(1, keepdim=True).rsqrt_())
            if layer.offset is not None:
                layer.style.add_(layer.offset)
            if layer.demod is not None and layer.squares is not None:
                torch.mm(layer.style.square(), layer.squares, out=layer.demod)
                layer.demod.add_(EPSILON).rsqrt_()
                if layer.factors is not None:
                    layer.demod.mul_(layer.factors)


def _packed(step: Step, site: Site, slot: StyleSlot) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor] | None]:
    """Return `_affine` and `_squares` of a layer, the latter None without demodulation; each is computed once."""
    affine = site.packed.get((slot.layer, "affine"), partial(_affine, step, site, slot))
    if slot.demod_offset < 0:
        return affine, None
    name = step.weights[f"{slot.layer}.weight"]  # drafts may have a part of a layer's channels
    return affine, site.packed.get((name, "squares"), partial(_squares, step, site, slot))


def _affine(step: Step, site: Site, slot: StyleSlot) -> tuple[Tensor, Tensor]:
    """Return the (w_dim, in_channels) matrix and the bias that give a layer's style, gains included."""
    attributes: Styles = step.attributes
    gain = slot.style_gain
    if slot.is_normalized and slot.demod_offset < 0:
        gain *= _input_gain(step, site, slot)
    weight, bias = (site.weight(step, f"{slot.layer}.affine.{role}") for role in ("weight", "bias"))
    return (weight * (gain / math.sqrt(attributes.w_dim))).t(), bias * gain


def _squares(step: Step, site: Site, slot: StyleSlot) -> tuple[Tensor, Tensor]:
    """Return the squared weights summed over taps, (in_channels, out_channels), and the factor of the demodulation.

    For a normalised layer (StyleGAN3), the weights are scaled to unit size first.
    """
    squares = site.weight(step, f"{slot.layer}.weight").double().square()
    factors = torch.ones(slot.out_channels, dtype=torch.float64)
    if slot.is_normalized:
        factors = squares.mean((1, 2, 3)).rsqrt()
        squares = squares * factors.square()[:, None, None, None]
        factors = factors * _input_gain(step, site, slot)
    return squares.sum((2, 3)).float().t(), factors.float()


def _input_gain(step: Step, site: Site, slot: StyleSlot) -> float:
    return 1.0 / math.sqrt(float(site.weight(step, f"{slot.layer}.magnitude_ema")))

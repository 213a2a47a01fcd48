"""Finds the style channels that move a painted region of the picture, and little else ("StyleSpace", Wu et al. 2021).

How far an offset of a channel changes the picture P inside a mask m is |m dP/ds| (a norm over pixels). There are
thousands of channels, and a backward pass gives one product with all columns of dP/ds at once. So the norm is estimated
as for a trace (Hutchinson 1990): for random v, whose entries are independent with variance 1, the mean of
(v^T m dP/ds)^2 is |m dP/ds|^2. Here v is an enlarged coarse grid of such entries, hence smooth: changes of grain count
less than changes of whole parts of the picture.

    inside, outside = deviation of s * sqrt(mean of (v^T m dP/ds)^2 / area), with m and with 1 - m
    score           = inside * inside / (inside + outside)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from gpu_backend.gradients.found_style import FoundStyle
from gpu_backend.gradients.latents import sample_w
from gpu_backend.gradients.network import DifferentiableNetwork
from gpu_backend.ops.styles import Styles
from gpu_backend.plan.edit_inputs import style_lengths, styles_of
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey
from gpu_backend.reference.styles import styles

PROBES = 8
"""Random pictures inside the mask, and as many outside."""

MOST_FOUND = 12

_MOST_PX = 128
"""Largest side of the picture that is differentiated; layers beyond it hold grain."""

_GRID = 16
"""Side of the random grid of a probe, in numbers."""

_SAMPLES = 256
_REACH = 4.0
"""End of a channel's slider, in deviations of its style."""


class StyleSearch:
    """A search in steps, each at most one pass forward or backward. One thread uses it.

    Parameters
    ----------
    network
        With the local edits of the picture.
    rows
        (num_ws, w_dim) of the picture.
    mask
        (side, side), 0..1: 1 where the picture should change.
    probes
        Random pictures inside the mask, and as many outside; a backward pass each.
    seed
        Of the random pictures.
    """

    def __init__(
        self,
        network: DifferentiableNetwork,
        rows: NDArray[np.float32],
        mask: NDArray[np.float32],
        *,
        probes: int = PROBES,
        seed: int = 0,
    ) -> None:
        self._network, self._probes = network, probes
        self._ws = network.tensor(rows)[None]
        self._mask = network.tensor(mask)[None, None]
        self._generator = np.random.default_rng(seed)
        self._offsets: dict[str, Tensor] = {}
        self._picture: Tensor | None = None
        self._sums: tuple[dict[str, Tensor], dict[str, Tensor]] = ({}, {})
        self._done = 0

    @property
    def share(self) -> float:
        """Progress, 0..1."""
        return self._done / (2 * self._probes + 1)

    def step(self) -> tuple[FoundStyle, ...] | None:
        """Do the next pass; after the last one return the channels, the best first."""
        if self._picture is None:
            self._forward()
        else:
            self._backward((self._done - 1) % 2)
        self._done += 1
        return self._ranked() if self._done > 2 * self._probes else None

    def _forward(self) -> None:
        lengths = style_lengths(self._network.spec)
        self._offsets = {name: self._ws.new_zeros(count).requires_grad_() for name, count in lengths.items()}
        sides = self._network.picture_resolutions
        side = max((side for side in sides if side <= _MOST_PX), default=sides[0])
        with torch.enable_grad():
            self._network.style_offsets = self._offsets
            try:
                self._picture = self._network.picture(self._ws, side)
            finally:
                self._network.style_offsets = {}
        size = self._picture.shape[2:]
        self._mask = functional.interpolate(self._mask, size, mode="bilinear", antialias=True, align_corners=False)

    def _backward(self, place: int) -> None:
        """Add the squares of one probe's gradient, inside the mask (0) or outside (1)."""
        assert self._picture is not None
        mask = self._mask if place == 0 else 1.0 - self._mask
        channels, size = self._picture.shape[1], self._picture.shape[2:]
        grid = self._network.tensor(self._generator.standard_normal((1, channels, _GRID, _GRID), np.float32))
        probe = functional.interpolate(grid, size, mode="bilinear", align_corners=False) * mask
        area = mask.mean().clamp(min=1e-6)
        gradients = torch.autograd.grad(
            self._picture, list(self._offsets.values()), probe, retain_graph=True, allow_unused=True
        )
        sums = self._sums[place]
        for name, gradient in zip(self._offsets, gradients, strict=True):
            if gradient is not None:  # layers beyond the picture have none
                sums[name] = sums.get(name, torch.zeros_like(gradient)) + gradient.square() / area

    @torch.no_grad()
    def _ranked(self) -> tuple[FoundStyle, ...]:
        deviations = style_deviations(self._network)
        found: list[tuple[float, FoundStyle]] = []
        pixels = float(np.prod(self._mask.shape))
        for name, squares in self._sums[0].items():
            deviation = deviations[name]
            inside, outside = (
                (deviation * (sums[name] / (self._probes * pixels)).sqrt()).double().tolist()
                for sums in (self._sums[0], self._sums[1])
            )
            for channel in range(len(squares)):
                score = inside[channel] ** 2 / max(inside[channel] + outside[channel], 1e-30)
                reach = max(_REACH * float(deviation[channel]), 1e-3)
                item = FoundStyle(name, channel, inside[channel], outside[channel], float(f"{reach:.2g}"))
                found.append((score, item))
        found.sort(key=lambda pair: -pair[0])
        self._picture = None
        return tuple(item for score, item in found[:MOST_FOUND] if score > 0.0)


@torch.no_grad()
def style_deviations(network: DifferentiableNetwork) -> dict[str, Tensor]:
    """Return the standard deviation of each layer's style over random latents: layer -> (style length,)."""
    spec = network.spec
    plan = build_plan(spec, PlanKey("", "synthesis", 1, spec.resolution))
    step = next(step for step in plan.steps if step.op == "styles")
    weights = {role: network.weights[name] for role, name in step.weights.items()}
    ws = sample_w(network, _SAMPLES)[:, None].expand(-1, spec.num_ws, -1)
    attributes = styles_of(plan)
    found: dict[str, Tensor] = {}
    for slot in attributes.slots:
        alone = replace(slot, style_offset=0, demod_offset=-1)  # without demodulation, which takes much memory
        if slot.is_normalized and slot.demod_offset >= 0:
            # A style of unit size: what toRGB's branch multiplies besides is 1.
            own = {**weights, f"{slot.layer}.magnitude_ema": ws.new_ones(())}
            row = styles(ws, own, Styles(attributes.w_dim, (alone,), slot.in_channels, 0))[0]
            row = row * row.square().mean(1, keepdim=True).rsqrt()
        else:
            row = styles(ws, weights, Styles(attributes.w_dim, (alone,), slot.in_channels, 0))[0]
        found[slot.layer] = row.std(0)
    return found

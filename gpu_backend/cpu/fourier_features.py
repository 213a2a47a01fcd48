"""Fourier feature input of StyleGAN3: sines along each axis, their products, and one matrix product.

    sin(X + Y) = sin X cos Y + cos X sin Y,    X of (column, channel), Y of (row, channel)

so sines are computed along the two axes of the grid instead of for all its points.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gpu_backend.cpu.kernel import BumpAllocator, Kernel, Site, allocated_floats
from gpu_backend.cpu.team import spans
from gpu_backend.ops.fourier_features import FourierFeatures
from gpu_backend.plan.plan import Step


class FourierFeaturesKernel(Kernel):
    """Kernel of `gpu_backend.ops.fourier_features`. Small arrays are computed in double precision."""

    def __init__(self, step: Step, site: Site) -> None:
        attributes: FourierFeatures = step.attributes
        self._attributes = attributes
        self._ws, self._transform = (site.buffers[name] for name in step.inputs)
        self._out = site.buffers[step.outputs[0]]
        self._affine, self._affine_bias, self._freqs, self._phases = (
            site.weight(step, role).double() for role in ("affine.weight", "affine.bias", "freqs", "phases")
        )
        scale = 1.0 / math.sqrt(attributes.channels)
        self._weight = site.packed.get(
            (step.weights["weight"], "scaled"), lambda: (site.weight(step, "weight") * scale).t().contiguous()
        )
        side = torch.arange(attributes.size, dtype=torch.float64) + 0.5 - attributes.size / 2
        self._places = side / attributes.sampling_rate
        self._team, self._rows = site.team, spans(attributes.size, site.team.lanes)
        self._channels = spans(attributes.channels, site.team.lanes)
        self.scratch_floats = allocated_floats(*self._shapes())

    def attach(self, scratch: Tensor) -> None:
        carver = BumpAllocator(scratch)
        self._waves, self._sines = (carver.take(*shape) for shape in self._shapes())

    def run(self) -> None:
        for w, out in zip(self._ws, self._out, strict=True):
            self._w, self._target = w[self._attributes.w_index], out
            self._team.run(self._along_axes)
            self._team.run(self._over_the_grid)

    def layer_output(self) -> Tensor:
        return self._out.permute(0, 3, 1, 2)

    def _along_axes(self, lane: int) -> None:
        """Compute sines and cosines along both axes, (size, channels) each, for some channels."""
        attributes, part = self._attributes, slice(*self._channels[lane])
        t = self._affine @ self._w.double() / math.sqrt(attributes.w_dim) + self._affine_bias
        t0, t1, t2, t3 = (t / t[:2].norm()).tolist()
        turn = torch.tensor([[t0, -t1, 0.0], [t1, t0, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
        move = torch.tensor([[1.0, 0.0, -t2], [0.0, 1.0, -t3], [0.0, 0.0, 1.0]], dtype=torch.float64)
        matrix = turn @ move @ self._transform.double()
        freqs = self._freqs[part] @ matrix[:2, :2]
        phases = self._phases[part] + self._freqs[part] @ matrix[:2, 2]
        room = attributes.sampling_rate / 2 - attributes.bandwidth
        amplitudes = (1 - (freqs.norm(dim=1) - attributes.bandwidth) / room).clamp(0, 1)
        x = 2 * math.pi * (torch.outer(self._places, freqs[:, 0]) + phases)
        y = 2 * math.pi * torch.outer(self._places, freqs[:, 1])
        for sines, made in zip(
            self._sines, (x.sin() * amplitudes, x.cos() * amplitudes, y.sin(), y.cos()), strict=True
        ):
            sines[:, part].copy_(made)

    def _over_the_grid(self, lane: int) -> None:
        """Compute some rows."""
        rows = slice(*self._rows[lane])
        sin_x, cos_x, sin_y, cos_y = self._sines
        waves, channels = self._waves[rows], self._attributes.channels
        torch.mul(sin_x, cos_y[rows, None], out=waves)
        waves.addcmul_(cos_x.expand_as(waves), sin_y[rows, None].expand_as(waves))
        torch.mm(waves.view(-1, channels), self._weight, out=self._target[rows].view(-1, channels))

    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        size, channels = self._attributes.size, self._attributes.channels
        return (size, size, channels), (4, size, channels)

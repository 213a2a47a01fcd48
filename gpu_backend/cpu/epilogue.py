"""Epilogue of a convolution layer: demodulation, noise, bias, activation, gain and clamp.

    out = clamp(act(d * g * raw + b * g + noise * strength * noise_gain * g) * rest)

with the activation's gain folded into g if the activation is homogeneous. It runs on strips of rows while they are in
the cache, so that memory is traversed once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol

import torch
from torch import Tensor

from gpu_backend.cpu.activation import finish_in_place, split_gain
from gpu_backend.cpu.kernel import Site
from gpu_backend.ops.modulated_conv import ModulatedConv
from gpu_backend.ops.modulated_up_conv import ModulatedUpConv
from gpu_backend.plan.plan import Step

STRIP_NBYTES = 1 << 20
"""Bytes of activations in a strip: about the size of a core's L2 cache."""


def strip_rows(row_nbytes: int, rows: int, width: int = 1) -> int:
    """Return the rows of a strip of about STRIP_NBYTES for each of `width` threads, at least one."""
    return max(1, min(rows, STRIP_NBYTES * width // row_nbytes))


class LayerEnd(Protocol):
    """Epilogue over some rows and channels of a layer."""

    def replay_key(self) -> Hashable:
        """Return what the torch calls of the next run depend on, as `Kernel.replay_key` does."""
        ...

    def begin(self, sample: int) -> None:
        """Set the values of this frame for one sample."""
        ...

    def finish(self, raw: Tensor, first_row: int, out: Tensor) -> None:
        """Write rows of the layer.

        Parameters
        ----------
        raw
            The convolution's output, in `out`'s shape, or with rows and columns split into
            (rows / 4, 4, columns / 4, 4). May be `out` itself.
        first_row
            Index of `out`'s first row in the layer's output.
        out
            (rows, columns, channels). Values beyond the layer, or beyond the range of rows, are ignored.
        """
        ...


MakeEnd = Callable[[Step, Site, tuple[int, int], tuple[int, int]], LayerEnd]
"""Makes the epilogue of a step's layer for a range of rows and of channels (first and end)."""


class Epilogue:
    """Epilogue with demodulation coefficients, noise and bias, for a layer or some of its rows and channels."""

    def __init__(self, step: Step, site: Site, rows: tuple[int, int], channels: tuple[int, int]) -> None:
        attributes: ModulatedConv | ModulatedUpConv = step.attributes
        self._act = attributes.act
        self._gain, _ = split_gain(attributes.act)
        first, end = channels
        offset = attributes.demod_offset
        self._demod = site.buffers[step.inputs[2]][:, offset + first : offset + end]
        self._bias = site.weight(step, "bias")[first:end] * self._gain
        self._scale = torch.empty(end - first)
        self._first_row = rows[0]
        self._noise: Tensor | None = None
        if attributes.noise_index >= 0:
            self._noise = site.noise.of(step)[rows[0] : rows[1]]
            self._noise_gain = site.buffers[step.inputs[4]][attributes.noise_index]
            self._noise_gain_value = self._noise_gain.numpy()
            self._strength = (site.weight(step, "noise_strength").double() * self._gain).view(())
            self._has_strength = bool(self._strength)
            self._factor = torch.empty((), dtype=torch.float64)
            self._scaled_noise = torch.empty(rows[1] - rows[0], attributes.resolution, 1)

    @property
    def _noise_is_on(self) -> bool:
        return self._noise is not None and self._has_strength and bool(self._noise_gain_value)

    def replay_key(self) -> Hashable:
        return self._noise_is_on

    def begin(self, sample: int) -> None:
        """Set this frame's coefficients and noise for one sample."""
        torch.mul(self._demod[sample], self._gain, out=self._scale)
        if self._noise is not None and self._noise_is_on:
            torch.mul(self._noise_gain, self._strength, out=self._factor)
            torch.mul(self._noise, self._factor, out=self._scaled_noise[..., 0])

    def finish(self, raw: Tensor, first_row: int, out: Tensor) -> None:
        """Write rows of the layer."""
        target = out if raw.ndim == 3 else out.view(raw.shape)
        torch.addcmul(self._bias, raw, self._scale, out=target)
        if self._noise_is_on:
            row = first_row - self._first_row
            noise = self._scaled_noise[row : row + out.shape[0]]
            if noise.shape[:2] == out.shape[:2]:  # as usual; each view costs as much as a small operation
                out.add_(noise)
            else:
                out[: noise.shape[0], : noise.shape[1]].add_(noise)
        finish_in_place(out, self._act)

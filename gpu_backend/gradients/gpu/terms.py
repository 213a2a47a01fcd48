"""Terms of a picture's loss with their gradients in one launch, where torch needs a hundred small ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from gpu_backend.cuda.driver.interface import Driver
from gpu_backend.gradients.gpu.kernels import GradientKernel
from gpu_backend.gradients.gpu.network import GpuNetwork

_TILE = (64, 36)
"""Pixels of a block of gradient_pixels, across and down."""
_TILE_THREADS = 432
_PLACES = 32


class GpuTerms:
    """Implements `gpu_backend.gradients.picture_terms.PictureTerms` by own kernels.

    Parameters
    ----------
    network
        Launches the kernels.
    launching
        Gives the device to work on torch's current stream.
    """

    def __init__(self, network: GpuNetwork, launching: Callable[[], AbstractContextManager[Driver]]) -> None:
        self._network, self._launching = network, launching

    def pixels(
        self, found: Tensor, wanted: Tensor, means: Tensor, variances: Tensor, weights: tuple[float, float]
    ) -> Tensor:
        """Return weighted squares minus weighted structural similarities, (batch,)."""
        compute = partial(self.pixels_with_gradient, found.detach(), wanted, means, variances, weights)
        loss: Tensor = _Term.apply(found, compute)  # type: ignore[no-untyped-call]
        return loss

    def pixels_with_gradient(
        self, found: Tensor, wanted: Tensor, means: Tensor, variances: Tensor, weights: tuple[float, float]
    ) -> tuple[Tensor, Tensor]:
        """Return the same, and the gradient of each number by its picture, shaped as `found`."""
        return self._pixels(
            found.contiguous(), wanted.contiguous(), means.contiguous(), variances.contiguous(), *weights
        )

    def map(self, x: Tensor, wanted: Tensor, least: float) -> Tensor:
        """Return the mean squared distance of feature maps whose channels have unit length at each place, (batch,)."""
        is_last = x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
        order = torch.channels_last if is_last else torch.contiguous_format
        made = x.detach().contiguous(memory_format=order), wanted.contiguous(memory_format=order)
        loss: Tensor = _Term.apply(x, lambda: self._map(*made, least, is_last=is_last))  # type: ignore[no-untyped-call]
        return loss

    def _pixels(
        self,
        found: Tensor,
        wanted: Tensor,
        means: Tensor,
        variances: Tensor,
        square_weight: float,
        structure_weight: float,
    ) -> tuple[Tensor, Tensor]:
        batch, channels, side = found.shape[:3]
        gradient = torch.empty_like(found)
        across, down = (-(-side // size) for size in _TILE)
        parts = found.new_empty(batch, channels * across * down)
        with self._launching():
            self._network.launch(
                GradientKernel("gradient_pixels"),
                (across, down, batch * channels),
                (_TILE_THREADS, 1, 1),
                {
                    "found": _pointer(found),
                    "wanted": _pointer(wanted),
                    "means": _pointer(means),
                    "variances": _pointer(variances),
                    "gradient": _pointer(gradient),
                    "parts": _pointer(parts),
                    "side": side,
                    "square_weight": square_weight / (channels * side**2),
                    "window_weight": structure_weight / (channels * means.shape[-1] ** 2),
                },
            )
        return parts.sum(1), gradient

    def _map(self, x: Tensor, wanted: Tensor, least: float, *, is_last: bool) -> tuple[Tensor, Tensor]:
        batch, channels = x.shape[:2]
        places = x.shape[2] * x.shape[3]
        gradient = torch.empty_like(x)
        blocks = -(-places // _PLACES)
        parts = x.new_empty(batch, blocks)
        with self._launching():
            self._network.launch(
                GradientKernel("gradient_map"),
                (blocks, batch, 1),
                (8 * _PLACES, 1, 1),
                {
                    "x": _pointer(x),
                    "wanted": _pointer(wanted),
                    "gradient": _pointer(gradient),
                    "parts": _pointer(parts),
                    "channels": channels,
                    "places": places,
                    "channels_last": int(is_last),
                    "least": least,
                    "weight": 1.0 / places,
                },
            )
        return parts.sum(1) / places, gradient


def _pointer(tensor: Tensor) -> np.uint64:
    return np.uint64(tensor.data_ptr())


class _Term(Function):
    """One number for each sample of x, computed with its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, compute: Callable[[], tuple[Tensor, Tensor]]) -> Tensor:
        loss, gradient = compute()
        ctx.save_for_backward(gradient)
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (gradient,) = ctx.saved_tensors
        return gradient * gradients[0].view(-1, *[1] * (gradient.ndim - 1)), None

"""The residual blocks of a StyleGAN2 discriminator (Karras et al. 2020b, section 4.1) in torch, differentiable.

Only pictures need a gradient, so weights are prepared once: scaled by fan-in, with the gains of their layers, which
leaky ReLU lets through. On a GPU they are fp16 with channels last, as its tensor cores take them, and filters before a
halving are part of the weights: more products, but no pass over activations, of which there are more bytes than the
products take time for.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from gpu_backend.model.discriminator_file import DiscriminatorWeights

SLOPE = 0.2
"""Of leaky ReLU."""
_LARGEST = 256.0
"""Largest number of the maps' gradients while they are fp16."""
_LEAST = 1e-30
_MOST = 16000.0
"""Largest feature for fp16, a quarter of its largest number."""
TOO_LARGE = "Features of the discriminator are too large for fp16, so they are computed in fp32."

_log = logging.getLogger(__name__)


def gain_of(name: str, shape: Sequence[int]) -> float:
    """Return what a stored tensor is multiplied by: the scale of its weights' fan-in, and the gain of its layer."""
    layer, kind = name.split(".")[-2:]
    # Both branches of a block times sqrt(0.5), so that their sum keeps its variance.
    gain = {"fromrgb": math.sqrt(2.0), "conv0": math.sqrt(2.0), "conv1": 1.0, "skip": math.sqrt(0.5)}[layer]
    return gain / math.sqrt(math.prod(shape[1:])) if kind == "weight" else gain


class DiscriminatorLayers:
    """Pictures (batch, img_channels, side, side) to the outputs of all blocks, (batch, channels, height, width).

    Parameters
    ----------
    like
        A tensor of the precision and on the device of pictures and maps.
    in_half
        Compute in fp16; by default on a GPU, for pictures in fp32.
    folded
        Make filters part of the weights; by default on a GPU.
    """

    def __init__(
        self, stored: DiscriminatorWeights, like: Tensor, *, in_half: bool | None = None, folded: bool | None = None
    ) -> None:
        is_fast = like.device.type == "cuda" and like.dtype == torch.float32
        self._stored, self._like, self._sides = stored, like[:0], stored.sides
        self._is_half = is_fast if in_half is None else in_half
        self._is_folded = is_fast if folded is None else folded
        self._order = torch.channels_last if is_fast and self._is_folded else torch.contiguous_format
        taps = torch.tensor(stored.taps, dtype=torch.float64)
        self._filter = torch.outer(taps, taps).flip(0, 1).to(like)
        self._tensors: dict[str, Tensor] = {}
        """Prepared at the first use: where own kernels compute features, there is none."""

    def __call__(self, pictures: Tensor) -> list[Tensor]:
        """Return the maps, of the pictures' precision."""
        if not self._tensors:
            self._tensors = self._prepared()
        if not self._is_half:
            return self._maps(pictures.contiguous(memory_format=self._order), self._tensors)
        unit = _Unit()
        halves: Tensor = _ToHalf.apply(pictures, unit)  # type: ignore[no-untyped-call]
        maps = self._maps(halves.contiguous(memory_format=self._order), self._tensors)
        return list(_ToFloat.apply(unit, *maps))  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def prepare(self, pictures: Tensor) -> None:
        """Go on in fp32 if features of pictures are too large for fp16. Reads a number back."""
        if self._is_half and not fit_in_half(self(pictures)):
            self._is_half = False
            self._tensors = {}
            _log.info(TOO_LARGE)

    def _maps(self, x: Tensor, tensors: Mapping[str, Tensor]) -> list[Tensor]:
        first = f"b{self._sides[0]}.fromrgb"
        x = _activated(functional.conv2d(x, tensors[f"{first}.weight"], tensors[f"{first}.bias"]))
        maps = []
        for side in self._sides:
            straight = self._halved(x, tensors[f"b{side}.skip.weight"], None, padding=1, filter_stride=2)
            name = f"b{side}.conv0"
            bent = functional.conv2d(x, tensors[f"{name}.weight"], tensors[f"{name}.bias"], padding=1)
            name = f"b{side}.conv1"
            bent = self._halved(
                _activated(bent), tensors[f"{name}.weight"], tensors[f"{name}.bias"], padding=2, filter_stride=1
            )
            x = straight + _activated(bent)
            maps.append(x)
        return maps

    def _halved(self, x: Tensor, weight: Tensor, bias: Tensor | None, *, padding: int, filter_stride: int) -> Tensor:
        """Filter, convolve and halve; the filter or the convolution has the stride."""
        if self._is_folded:
            return functional.conv2d(x, weight, bias, stride=2, padding=padding)
        kernel = self._filter.expand(x.shape[1], 1, -1, -1).to(x.dtype)
        x = functional.conv2d(x, kernel, padding=padding, stride=filter_stride, groups=x.shape[1])
        return functional.conv2d(x, weight, bias, stride=2 // filter_stride)

    def _prepared(self) -> dict[str, Tensor]:
        """Return weights and biases by their names."""
        prepared = {}
        for name, array in self._stored.tensors.items():
            tensor = torch.from_numpy(array).to(self._like) * gain_of(name, array.shape)
            if self._is_folded and name.endswith((".conv1.weight", ".skip.weight")):
                tensor = self._with_filter(tensor)
            if self._is_half:
                tensor = tensor.half()
            prepared[name] = tensor.contiguous(memory_format=self._order) if tensor.ndim == 4 else tensor
        return prepared

    def _with_filter(self, weight: Tensor) -> Tensor:
        """Return weights whose correlation is that with the filter and then with weights: their full convolution."""
        taps, (height, width) = len(self._filter), weight.shape[2:]
        whole = weight.new_zeros(*weight.shape[:2], height + taps - 1, width + taps - 1)
        for row in range(taps):
            for column in range(taps):
                whole[..., row : row + height, column : column + width] += self._filter[row, column] * weight
        return whole


def fit_in_half(maps: Sequence[Tensor]) -> bool:
    """Whether maps leave room in fp16 for those of other pictures. Reads numbers back."""
    return all(bool((x.abs() < _MOST).all()) for x in maps)


def _activated(x: Tensor) -> Tensor:
    """Apply leaky ReLU; in place, since a convolution does not need its own output for the way back."""
    return functional.leaky_relu_(x, SLOPE)


class _Unit:
    """What each sample's gradient is divided by while it is fp16, (batch, 1, 1, 1)."""

    value: Tensor


class _ToHalf(Function):
    """Pictures as fp16; their gradient gets its unit back."""

    @staticmethod
    def forward(ctx: Any, pictures: Tensor, unit: _Unit) -> Tensor:
        ctx.unit, ctx.dtype = unit, pictures.dtype
        return pictures.half()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0].to(ctx.dtype) * ctx.unit.value, None


class _ToFloat(Function):
    """Maps as fp32; their gradients are fp16 in a unit that all maps share."""

    @staticmethod
    def forward(ctx: Any, unit: _Unit, *maps: Tensor) -> tuple[Tensor, ...]:
        ctx.unit = unit
        return tuple(x.float() for x in maps)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        norms = [torch.linalg.vector_norm(x, math.inf, dim=(1, 2, 3), keepdim=True) for x in gradients]
        ctx.unit.value = torch.stack(norms).amax(0).clamp(min=_LEAST) / _LARGEST
        inverse = 1.0 / ctx.unit.value
        return None, *((x * inverse).half() for x in gradients)

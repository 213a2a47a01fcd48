"""Convolutions with prepacked weights.

torch packs a convolution's weights at every call, which costs more than the arithmetic of small layers. If this build
of torch has oneDNN operators for packed weights, they are used; otherwise plain calls are.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.quick_dataclass import dataclass

_ONE = [1, 1]
_SOME_SIDES = [32, 32]
"""Input side passed to the packing function; the packed form of depthwise weights does not depend on it."""


@dataclass(frozen=True, slots=True, eq=False)
class Convolution:
    """A convolution of channels-last (batch, in_channels, height, width) with packed weights.

    `nbytes` is the size of the packed weights.
    """

    run: Callable[[Tensor], Tensor]
    nbytes: int

    def __call__(self, x: Tensor) -> Tensor:
        """Convolve."""
        return self.run(x)


def has_packed_convolutions() -> bool:
    """Return whether this torch has convolutions with packed weights."""
    return bool(torch._C._has_mkldnn) and all(
        hasattr(torch.ops.mkldnn, name)
        for name in (
            "_reorder_convolution_weight",
            "_convolution_pointwise",
            "_reorder_convolution_transpose_weight",
            "_convolution_transpose_pointwise",
        )
    )


def make_convolution(weight: Tensor, input_shape: tuple[int, int, int, int], padding: int) -> Convolution:
    """Return a stride-1 correlation with (out, in, k, k) `weight` and zero padding."""
    pad = [padding] * 2
    if not has_packed_convolutions():
        plain = weight.contiguous(memory_format=torch.channels_last)
        return Convolution(lambda x: functional.conv2d(x, plain, padding=pad), plain.nbytes)
    mkldnn = torch.ops.mkldnn
    packed = mkldnn._reorder_convolution_weight(weight.contiguous(), pad, _ONE, _ONE, 1, list(input_shape))

    def convolve(x: Tensor) -> Tensor:
        y: Tensor = mkldnn._convolution_pointwise(x, packed, None, pad, _ONE, _ONE, 1, "none", [], "")
        return y

    return Convolution(convolve, packed.numel() * packed.element_size())


def make_transposed_convolution(weight: Tensor, input_shape: tuple[int, int, int, int]) -> Convolution:
    """Return the stride-2 transposed convolution with (out, in, k, k) `weight` as stored, without padding."""
    transposed = weight.transpose(0, 1).contiguous()
    if not has_packed_convolutions():
        return Convolution(lambda x: functional.conv_transpose2d(x, transposed, stride=2), transposed.nbytes)
    mkldnn, none, two = torch.ops.mkldnn, [0, 0], [2, 2]
    packed = mkldnn._reorder_convolution_transpose_weight(transposed, none, none, two, _ONE, 1, list(input_shape))

    def convolve(x: Tensor) -> Tensor:
        y: Tensor = mkldnn._convolution_transpose_pointwise(x, packed, None, none, none, two, _ONE, 1, "none", [], "")
        return y

    return Convolution(convolve, packed.numel() * packed.element_size())


def make_depthwise(taps: Tensor, channels: int, stride: tuple[int, int]) -> Convolution:
    """Return a correlation of every channel with the same (rows, columns) taps, without padding."""
    weight = taps.expand(channels, 1, -1, -1).contiguous()
    step = list(stride)
    if not has_packed_convolutions():
        return Convolution(lambda x: functional.conv2d(x, weight, stride=step, groups=channels), weight.nbytes)
    mkldnn, none = torch.ops.mkldnn, [0, 0]
    packed = mkldnn._reorder_convolution_weight(weight, none, step, _ONE, channels, [1, channels, *_SOME_SIDES])

    def convolve(x: Tensor) -> Tensor:
        y: Tensor = mkldnn._convolution_pointwise(x, packed, None, none, step, _ONE, channels, "none", [], "")
        return y

    return Convolution(convolve, packed.numel() * packed.element_size())


def make_transposed_depthwise(
    taps: Tensor, channels: int, stride: tuple[int, int], crop: tuple[int, int]
) -> Convolution:
    """Return a transposed convolution of every channel with the same taps; `crop` is cut off at both ends of axes."""
    weight = taps.expand(channels, 1, -1, -1).contiguous()
    step, pad, none = list(stride), list(crop), [0, 0]
    if not has_packed_convolutions():
        return Convolution(
            lambda x: functional.conv_transpose2d(x, weight, stride=step, padding=pad, groups=channels), weight.nbytes
        )
    mkldnn = torch.ops.mkldnn
    shape = [1, channels, *_SOME_SIDES]
    packed = mkldnn._reorder_convolution_transpose_weight(weight, pad, none, step, _ONE, channels, shape)

    def convolve(x: Tensor) -> Tensor:
        y: Tensor = mkldnn._convolution_transpose_pointwise(
            x, packed, None, pad, none, step, _ONE, channels, "none", [], ""
        )
        return y

    return Convolution(convolve, packed.numel() * packed.element_size())

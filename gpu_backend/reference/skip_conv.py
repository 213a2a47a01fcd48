"""The resnet block's skip."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional

from gpu_backend.reference.upfirdn import double


def skip_conv(x: Tensor, weight: Tensor, gain: float, taps: Sequence[float]) -> Tensor:
    """Gain * U(conv1x1(x, W / sqrt(in_channels))); `weight` is (out_channels, in_channels, 1, 1)."""
    return double(functional.conv2d(x, weight / math.sqrt(weight.shape[1])), taps) * gain

"""y = act(x @ (W * lr / sqrt(in_features))^T + b * lr) * gain."""

from __future__ import annotations

import math

from torch import Tensor

from gpu_backend.ops.fully_connected import FullyConnected
from gpu_backend.reference.bias_act import bias_act


def fully_connected(x: Tensor, weight: Tensor, bias: Tensor, attributes: FullyConnected) -> Tensor:
    """Apply the layer.

    Parameters
    ----------
    x
        (batch, in_features).
    weight, bias
        (out_features, in_features) and (out_features,), as stored.
    """
    scale = attributes.lr_multiplier / math.sqrt(attributes.in_features)
    return bias_act(x @ (weight * scale).t(), bias * attributes.lr_multiplier, attributes.act)

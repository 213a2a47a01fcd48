"""y = clamp(act(x + b) * gain, -clamp, +clamp)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.model.spec import Activation
from gpu_backend.ops.bias_act import LRELU_SLOPE, BiasAct

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "linear": lambda x: x,
    "relu": torch.relu,
    "lrelu": lambda x: functional.leaky_relu(x, LRELU_SLOPE),
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "elu": functional.elu,
    "selu": functional.selu,
    "softplus": functional.softplus,
    "swish": lambda x: x * torch.sigmoid(x),
}


def bias_act(x: Tensor, bias: Tensor | None, act: BiasAct) -> Tensor:
    """Bias along axis 1, activation, gain, clamp, in this order.

    Parameters
    ----------
    x
        (batch, channels, ...) float32.
    bias
        (channels,) or None.
    """
    if bias is not None:
        x = x + bias.reshape(1, -1, *([1] * (x.ndim - 2)))
    x = ACTIVATIONS[act.activation](x) * act.gain
    return x if act.clamp is None else x.clamp(-act.clamp, act.clamp)

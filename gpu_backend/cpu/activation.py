"""Activations in place."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.model.spec import Activation
from gpu_backend.ops.bias_act import HOMOGENEOUS, LRELU_SLOPE, BiasAct

IN_PLACE: dict[Activation, Callable[[Tensor], object]] = {
    "linear": lambda x: x,
    "relu": torch.relu_,
    "lrelu": lambda x: functional.leaky_relu_(x, LRELU_SLOPE),
    "tanh": torch.tanh_,
    "sigmoid": torch.sigmoid_,
    "elu": functional.elu_,
    "selu": torch.selu_,
    "softplus": lambda x: x.copy_(functional.softplus(x)),
    "swish": lambda x: functional.silu(x, inplace=True),
}


def split_gain(act: BiasAct) -> tuple[float, float]:
    """Return the gains before and after the activation; all of it before if the activation is homogeneous."""
    return (act.gain, 1.0) if act.activation in HOMOGENEOUS else (1.0, act.gain)


def finish_in_place(x: Tensor, act: BiasAct) -> None:
    """Apply the activation, the remaining gain and the clamp in place."""
    IN_PLACE[act.activation](x)
    _, after = split_gain(act)
    if after != 1.0:
        x.mul_(after)
    if act.clamp is not None:
        x.clamp_(-act.clamp, act.clamp)

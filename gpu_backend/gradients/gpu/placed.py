"""Layers of a network whose arrays lie on a device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpu_backend.gradients.gpu.weights import ConvGeometry, PackedConv
from gpu_backend.model.spec import LayerSpec
from gpu_backend.ops.bias_act import BiasAct


@dataclass(frozen=True, slots=True, eq=False)
class PlacedConv:
    """One convolution on the device; addresses unless said otherwise."""

    spec: LayerSpec
    act: BiasAct
    packed: PackedConv
    inputs: int
    outputs: int
    source: int
    """Side of its input."""
    forward_weight: int
    backward_weight: int
    bias: int
    noise: int
    forward: ConvGeometry
    forward_parities: int
    backward: ConvGeometry
    backward_parities: int
    x: int
    z: int

    @property
    def is_up(self) -> bool:
        """Whether it doubles the side."""
        return self.spec.kind == "up_conv"


@dataclass(frozen=True, slots=True, eq=False)
class PlacedToRgb:
    """A toRGB layer on the device; addresses unless said otherwise.

    Attributes
    ----------
    planes
        What it adds to the picture, before its clamp, (samples, 3, side, side).
    picture, gradient
        The picture so far, and the gradient of it, shaped alike.
    """

    spec: LayerSpec
    weight: int
    bias: int
    planes: int
    picture: int
    gradient: int

    @property
    def clamp(self) -> float:
        """Bound of what it adds; infinite for none."""
        return np.inf if self.spec.conv_clamp is None else self.spec.conv_clamp * self.spec.gain

"""Activation, gain and clamp: the end of every layer."""

from __future__ import annotations

from gpu_backend.model.spec import ACTIVATION_GAINS, Activation
from gpu_backend.quick_dataclass import dataclass

LRELU_SLOPE = 0.2
"""Slope of lrelu below zero."""

HOMOGENEOUS: frozenset[Activation] = frozenset({"linear", "relu", "lrelu"})
"""Activations with act(g x) = g act(x) for g > 0: a gain may be applied before them."""


@dataclass(frozen=True, slots=True)
class BiasAct:
    """y = clamp(act(x + b) * gain, -clamp, +clamp).

    Attributes
    ----------
    gain
        The activation's own gain times that of the layer.
    clamp
        Bound after the gain, already scaled by the layer's gain; None for none.
    """

    activation: Activation = "linear"
    gain: float = 1.0
    clamp: float | None = None

    @classmethod
    def of_layer(cls, activation: Activation, gain: float = 1.0, clamp: float | None = None) -> BiasAct:
        """Settings of a layer whose extra `gain` scales the activation's gain and the clamp alike."""
        return cls(activation, ACTIVATION_GAINS[activation] * gain, None if clamp is None else clamp * gain)

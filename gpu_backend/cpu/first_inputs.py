"""What the inputs of a plan hold before anything was copied into them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.plan.plan import Plan


def fill_inputs(plan: Plan, inputs: Mapping[str, NDArray[Any]], weights: Mapping[str, Tensor]) -> None:
    """Fill the gains of noise with ones, and the transform with the one that the model stores; others stay."""
    if "noise_gain" in inputs:
        inputs["noise_gain"].fill(1.0)
    for step in plan.steps:
        if step.op == "fourier_features":
            inputs["transform"][...] = weights[step.weights["transform"]].numpy()

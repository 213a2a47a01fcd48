"""Initial values of a plan's inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.ops.bend_channels import AT_REST, BEND_INPUT
from gpu_backend.plan.plan import Plan


def fill_inputs(plan: Plan, inputs: Mapping[str, NDArray[Any]], weights: Mapping[str, Tensor]) -> None:
    """Set noise gains to ones, the transform to the model's stored one, bends to rest; the others stay as they are."""
    if "noise_gain" in inputs:
        inputs["noise_gain"].fill(1.0)
    for name, array in inputs.items():
        if name.startswith(BEND_INPUT):
            array[...] = AT_REST
    for step in plan.steps:
        if step.op == "fourier_features":
            inputs["transform"][...] = weights[step.weights["transform"]].numpy()

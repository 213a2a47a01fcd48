"""An operation on a GPU: its fused and plain launches, how its output is observed, the shape that is tuned.

`gpu_backend.cuda.launches.op_table` lists one object an operation. One of a single kernel has `plain` launches alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.conv_work import RgbPart
from gpu_backend.cuda.launches.style_layout import StyleLayout
from gpu_backend.cuda.schedule import Address, Argument, Built, Launch, Region
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.model.model import Weights
from gpu_backend.ops.kernels.conv_tile import ConvShape
from gpu_backend.ops.kernels.e4m3 import ACTIVATION_SCALE, from_e4m3
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.styles import Styles
from gpu_backend.ops.to_rgb import UNSTYLED, ToRgb
from gpu_backend.plan.fusion import FusedStep, parts
from gpu_backend.plan.plan import Plan, Step, is_half
from gpu_backend.quick_dataclass import dataclass

OBSERVED = Address("observed", "region")
"""Placeholder for the memory of an observed output, which is not part of the schedule."""


@dataclass(frozen=True, slots=True, eq=False)
class LoweringContext:
    """Everything besides a step that its launches depend on.

    Attributes
    ----------
    regions
        What the launches before declared, by name.
    failed
        Digests of kernel recipes that failed on this GPU, and why.
    samples
        Samples of the step; 0 for the batch of the plan's key.
    """

    plan: Plan
    weights: Weights
    target: Target
    regions: Mapping[str, Region]
    failed: Mapping[str, str] = field(default_factory=dict)
    samples: int = 0
    layout: StyleLayout = field(init=False)

    def __post_init__(self) -> None:
        styles = next((step.attributes for step in self.plan.steps if step.op == "styles"), Styles(0, (), 0, 0))
        object.__setattr__(self, "layout", StyleLayout(styles))

    @property
    def batch(self) -> int:
        """Samples of the step: pictures, and second latents of masked blends."""
        return self.samples or self.plan.key.batch

    @property
    def half(self) -> bool:
        """Whether activations are fp16."""
        return is_half(self.plan.key.precision)

    @property
    def num_ws(self) -> int:
        """Rows of w of a sample."""
        return next(item.shape[1] for item in self.plan.buffers if item.name == "ws")

    def style_offset(self, step: Step) -> int:
        """Return where the styles of a step's layer begin in a sample's row, in floats."""
        return self.layout.style_offset(slot_name(step))

    def rgb_part(self, step: Step) -> RgbPart:
        """Return the fields of a toRGB that a kernel needs to compute its products."""
        settings: ToRgb = step.attributes
        offset = self.style_offset(step) if settings.style_offset != UNSTYLED else UNSTYLED
        return RgbPart(step.layer, step.weights["weight"], settings.out_channels, offset, parts(step.inputs[0]))


@dataclass(frozen=True, slots=True, eq=False)
class Fused:
    """Fused launches, to be built if none of their kernels failed on this GPU."""

    recipes: tuple[KernelRecipe, ...]
    build: Callable[[], Built]


@dataclass(frozen=True, slots=True)
class Refused:
    """No fused launches; why, in one phrase for users. Empty if plain launches were requested."""

    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """How the output of a launch's layer is read.

    Attributes
    ----------
    shape, dtype
        Of the memory that is read.
    finish
        Takes that memory as an array and returns (batch, channels, height, width).
    changes
        Arguments, by name, of a run beside the usual one; `OBSERVED` is memory of that shape. Empty if the usual run
        leaves the output in `region`.
    zeros
        Argument whose region counts as zeros in the run beside.
    """

    shape: tuple[int, ...]
    dtype: str
    finish: Callable[[NDArray[Any]], NDArray[np.float32]]
    changes: Mapping[str, Argument] = field(default_factory=dict)
    zeros: str | None = None
    region: str = ""


class GpuOp(ABC):
    """An operation of plans on a GPU."""

    def fused(self, step: FusedStep, context: LoweringContext) -> Fused | Refused:
        """Return the fused launches, or why the step has none."""
        return Refused()

    def fused_run(self, steps: Sequence[FusedStep], context: LoweringContext) -> tuple[int, Fused] | None:
        """Return how many steps, from the first on, one launch computes, and it; None if each has its own launches.

        Parameters
        ----------
        steps
            Of a plan, from one of this operation on.
        """
        return None

    @abstractmethod
    def plain(self, step: FusedStep, context: LoweringContext, reason: str) -> Built:
        """Return the plain launches.

        Parameters
        ----------
        reason
            Why they stand in for fused ones; empty in plans that are plain throughout.
        """

    def starts(self, step: FusedStep, context: LoweringContext) -> Mapping[str, NDArray[Any]]:
        """Return the initial contents of input regions that do not start as zeros."""
        return {}

    def observe(self, step: Step, launch: Launch, regions: Mapping[str, Region]) -> Observation | None:
        """Return how the step's output is read from this launch; None if the launch does not write it."""
        return None

    def shape_for_tuning(self, step: Step, batch: int) -> ConvShape | None:
        """Return the shape by which tables of tiles know the step; None if it has no tile."""
        return None


def slot_name(step: Step) -> str:
    """Return a step's layer as style slots name it."""
    return step.layer.removeprefix("synthesis.")


def region_of(argument: Argument, regions: Mapping[str, Region]) -> Region:
    """Return the region that an argument names."""
    assert isinstance(argument, Address)
    return regions[argument.name]


def channels_first(values: NDArray[Any], channels: int | None = None) -> NDArray[np.float32]:
    """Return (batch, height, width, padded channels) as (batch, channels, height, width) in float32."""
    return np.ascontiguousarray(values[..., :channels].transpose(0, 3, 1, 2).astype(np.float32))


def channels_first_of_e4m3(values: NDArray[np.int8], channels: int) -> NDArray[np.float32]:
    """Return stored activations of e4m3 as `channels_first` does, without their scale."""
    return channels_first(from_e4m3(values) / np.float32(ACTIVATION_SCALE), channels)

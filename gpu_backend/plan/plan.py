"""Data types of a plan: buffers and steps that compute a frame.

Plans are frozen. A builder (selected by `gpu_backend.plan.families`) makes one from a NetworkSpec for each PlanKey. An
executor (`gpu_backend.cpu`) binds it to memory once and runs it any number of times.
Activations are channels-last: (batch, height, width, channels).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from gpu_backend.quick_dataclass import dataclass
from gpu_backend.recipe import RowRange

BufferRole = Literal["input", "intermediate", "kept", "output"]
"""``kept``: a run leaves there what later runs read; see `Plan.kept_steps`."""
Precision = Literal["fp32", "bf16x3", "tf32", "fp16", "fp8"]
"""Of plans. In tf32 and bf16x3 plans activations are fp32, and tensor cores multiply them so. In fp8 plans some layers
multiply e4m3 (`gpu_backend.plan.fusion`), and all else is as in fp16."""
Part = Literal["mapping", "synthesis"]


def is_half(precision: Precision) -> bool:
    """Whether activations are stored in fp16, but for those that are e4m3."""
    return precision in ("fp16", "fp8")


@dataclass(frozen=True, slots=True)
class PlanEdits:
    """What local edits (`gpu_backend.recipe.LocalEdits`) add to a plan. Their amounts are inputs.

    Attributes
    ----------
    bent
        Layers whose channels are bent, sorted; a plan that leaves a layer out leaves its bend out.
    shifts_styles
        Whether numbers are added to the styles.
    blends
        For each masked blend, the rows of w whose layers are blended.
    keeps_second
        Whether the second latents of blends run first, by themselves, and what they give is kept for later runs
        (`Plan.kept_steps`); else they run beside the pictures in every run.
    """

    bent: tuple[str, ...] = ()
    shifts_styles: bool = False
    blends: tuple[RowRange, ...] = ()
    keeps_second: bool = False


NOT_EDITED = PlanEdits()

SECOND_ROWS = "second_ws"
"""Input of a plan that keeps second latents: their rows of w, (blends, num_ws, w_dim)."""


@dataclass(frozen=True, slots=True)
class PlanKey:
    """Everything that determines the shape of a plan. Values that change from frame to frame are plan inputs.

    `batch` counts pictures. A plan with masked blends runs more samples: one for each blend.
    """

    model_id: str
    part: Part
    batch: int
    resolution: int = 0
    """Side of the output; 0 for the mapping network."""
    precision: Precision = "fp32"
    tap: str = ""
    """Layer whose output replaces the picture, by its official name without ``synthesis.``; `resolution` is the side
    of that layer. Empty for a picture."""
    edits: PlanEdits = NOT_EDITED
    """Steps of local edits, and the inputs that they read."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array of fixed shape. `offset` is its byte offset in the arena; -1 for all but intermediates."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: BufferRole
    offset: int = -1


def has_samples(buffer: Buffer) -> bool:
    """Whether a buffer's first axis counts the samples of a synthesis network."""
    return buffer.role == "intermediate" or buffer.name == "ws"


@dataclass(frozen=True, slots=True)
class Step:
    """One operation over buffers.

    Attributes
    ----------
    layer
        Layer name: ``"synthesis.b64.conv1"``. If a layer has several steps, the last one writes the layer's output.
    op
        Name of the operation: ``gpu_backend/ops/<op>.py``, ``reference/<op>.py``.
    attributes
        Parameters of the operation (a frozen dataclass from ``ops/<op>.py``).
    inputs, outputs
        Buffer names.
    weights
        Role in the operation -> name in the model's weights.
    flops, nbytes
        Floating-point operations, and bytes moved if each activation and weight is moved once. Bytes count 4 per
        value at any precision.
    samples
        Samples that it computes: the first ones of its inputs. 0 for the batch of the plan's key.
    """

    layer: str
    op: str
    attributes: Any
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: Mapping[str, str] = field(default_factory=dict, hash=False)
    flops: int = 0
    nbytes: int = 0
    samples: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in execution order and their buffers.

    Attributes
    ----------
    arena_nbytes
        Size of the arena for all intermediates.
    kept_steps
        The first steps, of the second latents of masked blends; the buffers of the role ``kept`` are all that they
        leave to the other steps. A run may leave them out while none of `kept_inputs` changes. Each part writes the
        intermediates that it reads; of these, both have the styles alone.
    """

    key: PlanKey
    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    arena_nbytes: int = 0
    kept_steps: int = 0

    @property
    def kept_inputs(self) -> frozenset[str]:
        """Inputs that the kept buffers depend on."""
        inputs = {buffer.name for buffer in self.buffers if buffer.role == "input"}
        return frozenset(name for step in self.steps[: self.kept_steps] for name in step.inputs if name in inputs)

    @property
    def parts(self) -> tuple[tuple[Step, ...], ...]:
        """The steps of the second latents, if any are kept, and those of the pictures."""
        first = self.steps[: self.kept_steps]
        return (*((first,) if first else ()), self.steps[self.kept_steps :])

"""A plan: what to do for a frame, decided before doing it.

Frozen data only. A builder (`gpu_backend.plan.families` knows which) makes it from a NetworkSpec once per PlanKey; an
executor (`gpu_backend.cpu`) binds it to memory once and then runs it any number of times.
Activations are channels-last: (batch, height, width, channels).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

BufferRole = Literal["input", "intermediate", "output"]
Precision = Literal["fp32", "fp16"]
Part = Literal["mapping", "synthesis"]


@dataclass(frozen=True, slots=True)
class PlanKey:
    """What shapes a plan, and nothing that a hand can move."""

    model_id: str
    part: Part
    batch: int
    resolution: int = 0
    """Side of the output; 0 for the mapping network."""
    precision: Precision = "fp32"
    tap: str = ""
    """Layer that is the output instead of the picture, by its official name without ``synthesis.``; the resolution is
    its side then."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A fixed array. `offset` is where the arena put it, in bytes; inputs and outputs live outside the arena (-1)."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: BufferRole
    offset: int = -1


@dataclass(frozen=True, slots=True)
class Step:
    """One operation over buffers.

    Attributes
    ----------
    layer
        Where in the network: ``"synthesis.b64.conv1"``. Of several steps of one layer the last gives what it gives.
    op
        The stem of the operation: ``gpu_backend/ops/<op>.py``, ``reference/<op>.py``.
    attributes
        The operation's own frozen settings (a dataclass from ``ops/<op>.py``).
    inputs, outputs
        Buffer names.
    weights
        Role in the operation -> name in the model's weights.
    flops, nbytes
        Operations and bytes moved, each activation and weight counted once; bytes in single precision, whatever the
        plan's own.
    """

    layer: str
    op: str
    attributes: Any
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: Mapping[str, str] = field(default_factory=dict, hash=False)
    flops: int = 0
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order over buffers. `arena_nbytes` is what all intermediates need together."""

    key: PlanKey
    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    arena_nbytes: int = 0

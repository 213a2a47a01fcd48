"""`Kernel`, a step bound to memory, and its context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from gpu_backend.cpu.noise_pictures import NoisePictures
from gpu_backend.cpu.team import Team
from gpu_backend.plan.plan import Step

T = TypeVar("T")


class PackedWeights:
    """Cache of packed weights, shared by every plan of an executor. Threads may pack different keys at a time."""

    def __init__(self) -> None:
        self._forms: dict[object, Any] = {}

    def get(self, key: object, make: Callable[[], T]) -> T:
        """Return the packed weights of a key; `make` builds them on first use: tensors, a Convolution, or a tuple."""
        if key not in self._forms:
            self._forms[key] = make()
        form: T = self._forms[key]
        return form

    @property
    def nbytes(self) -> int:
        """Memory of the packed weights in bytes."""
        return sum(_nbytes_of(form) for form in self._forms.values())

    def clear(self) -> None:
        """Drop all packed weights."""
        self._forms.clear()


@dataclass(frozen=True, eq=False)
class Site:
    """Context for binding kernels: the plan's buffers and the model's weights as tensors.

    Attributes
    ----------
    buffers
        Name -> tensor of the buffer's shape, fixed for the life of the binding.
    weights
        Official name -> float32 tensor that shares the model's memory.
    team
        The threads that execute each step together.
    noise
        Noise pictures of the layers.
    """

    batch: int
    buffers: Mapping[str, Tensor]
    weights: Mapping[str, Tensor]
    packed: PackedWeights
    team: Team
    noise: NoisePictures

    def weight(self, step: Step, role: str) -> Tensor:
        """Return the step's weight with this role."""
        return self.weights[step.weights[role]]


class Kernel(ABC):
    """A step over fixed memory.

    A subclass reads and writes the same tensors at every `run`. It may request `scratch_floats` of working memory,
    which all kernels of a plan share. Its content is valid only during `run`, and for `layer_output` directly after.
    """

    scratch_floats: int = 0

    def attach(self, scratch: Tensor) -> None:  # noqa: B027 - many kernels need none
        """Set the working memory, (at least `scratch_floats`,) float32."""

    @abstractmethod
    def run(self) -> None:
        """Execute the step."""

    def replay_key(self) -> Hashable:
        """Return what the torch calls of the next `run` depend on: equal keys mean equal calls on the same memory.

        None if they depend on more, so that they cannot be replayed.
        """
        return None

    def layer_output(self) -> Tensor | None:
        """Return the layer's output in the last run, (batch, channels, height, width); None if it is not a layer."""
        return None


class BumpAllocator:
    """Bump allocator over working memory."""

    def __init__(self, memory: Tensor) -> None:
        self._memory = memory
        self._used = 0

    def take(self, *shape: int) -> Tensor:
        """Return the next piece with this shape."""
        count = 1
        for size in shape:
            count *= size
        piece = self._memory[self._used : self._used + count].view(shape)
        self._used += -(-count // 16) * 16
        return piece


def allocated_floats(*shapes: tuple[int, ...]) -> int:
    """Return the floats that a `BumpAllocator` needs for pieces of these shapes."""
    return sum(-(-int(torch.Size(shape).numel()) // 16) * 16 for shape in shapes)


def _nbytes_of(form: Any) -> int:
    if isinstance(form, tuple):
        return sum(_nbytes_of(part) for part in form)
    return int(form.nbytes)

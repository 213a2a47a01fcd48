"""Update of a network: gradients, all-reduce over the processes, optimiser step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from gpu_backend.training.gradient_buffer import GradientBuffer
from gpu_backend.training.optimiser import Optimiser
from gpu_backend.training.processes import Processes
from gpu_backend.training.replay import Noted, Recorder, Replayed


class Update:
    """A repeated update.

    A single process captures it as one graph. With several processes, the all-reduce runs between two graphs.

    Parameters
    ----------
    gradients
        Adds the gradients of a loss, and returns metrics.
    buffer
        Memory for the all-reduce of gradients; None for a single process.
    shared
        Tensors that `gradients` changes, and that are averaged over all processes.
    """

    def __init__(
        self,
        gradients: Callable[[], Noted],
        optimiser: Optimiser,
        processes: Processes,
        buffer: GradientBuffer | None,
        recorder: Recorder | None,
        shared: Sequence[Tensor] = (),
    ) -> None:
        self._gradients, self._optimiser, self._processes = gradients, optimiser, processes
        self._buffer, self._shared = buffer, shared
        self._exchanged: Tensor | None = None
        works = [self._compute_and_step] if buffer is None else [self._compute, optimiser.step]
        self._parts = [Replayed(work, recorder) for work in works]

    @property
    def is_settled(self) -> bool:
        """Whether the update is captured, or never will be."""
        return all(part.is_settled for part in self._parts)

    def run(self) -> Noted:
        """Run the update once."""
        noted = self._parts[0]()
        if self._exchanged is not None:
            for values in (self._exchanged, *self._shared):
                self._processes.average(values)
        for part in self._parts[1:]:
            noted = noted | part()
        return noted

    def forget(self) -> None:
        """Discard the capture, because the tensors of the update were replaced."""
        for part in self._parts:
            part.forget()

    def _compute_and_step(self) -> Noted:
        return self._gradients() | self._optimiser.step()

    def _compute(self) -> Noted:
        noted = self._gradients()
        if self._buffer is not None:
            self._exchanged = self._buffer.pack()
        return noted

"""One update of a network: gradients, their mean over the processes, a step of the optimiser."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from gpu_backend.training.gradient_buffer import GradientBuffer
from gpu_backend.training.optimiser import Optimiser
from gpu_backend.training.processes import Processes
from gpu_backend.training.replay import Noted, Recorder, Replayed


class Update:
    """An update that is done again and again.

    Alone, a process captures all of it as one graph. Among several, what they exchange lies between two graphs.

    Parameters
    ----------
    gradients
        Adds the gradients of a loss, and returns metrics.
    buffer
        Memory for the gradients that are exchanged; None in a process that is alone.
    shared
        Tensors that `gradients` changes, and that become their mean over all processes.
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
        """It will not change any more how it is done."""
        return all(part.is_settled for part in self._parts)

    def run(self) -> Noted:
        """Do it once."""
        noted = self._parts[0]()
        if self._exchanged is not None:
            for values in (self._exchanged, *self._shared):
                self._processes.average(values)
        for part in self._parts[1:]:
            noted = noted | part()
        return noted

    def forget(self) -> None:
        """Capture it anew: the tensors that it works on are others now."""
        for part in self._parts:
            part.forget()

    def _compute_and_step(self) -> Noted:
        return self._gradients() | self._optimiser.step()

    def _compute(self) -> Noted:
        noted = self._gradients()
        if self._buffer is not None:
            self._exchanged = self._buffer.pack()
        return noted

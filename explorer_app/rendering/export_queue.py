"""The queue of exports: first in, first out, and nothing is dropped. No Qt."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from gpu_backend import Frame, RenderRequest


class ExportJob(Protocol):
    """Something that wants frames, one by one, every one of them."""

    @property
    def total(self) -> int:
        """Number of frames in all."""
        ...

    def next_request(self) -> RenderRequest | None:
        """Return the next frame to render, None after the last."""
        ...

    def deliver(self, frame: Frame) -> None:
        """Take a frame that was asked for. What this raises stops the job."""
        ...

    def close(self, cancelled: bool) -> None:
        """Finish; nothing is delivered any more. May be called twice."""
        ...


@dataclass(frozen=True, slots=True)
class ExportTurn:
    """What is to do next: a frame of a job, or ending it because the person cancelled."""

    job: ExportJob
    is_cancelled: bool


class ExportQueue:
    """Jobs in order. One is worked at until it is done; single pictures may pass the frames that wait.

    Parameters
    ----------
    condition
        Notified whenever there is something to do.
    """

    def __init__(self, condition: threading.Condition | None = None) -> None:
        self._condition = condition or threading.Condition()
        self._jobs: deque[ExportJob] = deque()
        self._urgent: deque[ExportJob] = deque()
        self._cancelled: list[ExportJob] = []

    def __len__(self) -> int:
        with self._condition:
            return len(self._jobs) + len(self._urgent)

    def put(self, job: ExportJob, *, urgent: bool = False) -> None:
        """Add a job behind the others; an urgent one only behind the urgent ones."""
        with self._condition:
            (self._urgent if urgent else self._jobs).append(job)
            self._condition.notify_all()

    def cancel(self, job: ExportJob) -> None:
        """Have a job end at its next turn; one that is not here any more is left alone."""
        with self._condition:
            if job in self._jobs or job in self._urgent:
                self._cancelled.append(job)
                self._condition.notify_all()

    def is_over(self, job: ExportJob, *, is_closing: bool) -> bool:
        """Return whether nobody waits for a job's frames any more: cancelled, or not urgent while everything ends."""
        with self._condition:
            return job in self._cancelled or (is_closing and job not in self._urgent)

    def turn(self) -> ExportTurn | None:
        """Return what is to do next, None if nothing is. A cancelled job comes first, wherever it stands."""
        with self._condition:
            if self._cancelled:
                return ExportTurn(self._cancelled[0], True)
            queue = self._urgent or self._jobs
            return ExportTurn(queue[0], False) if queue else None

    def last_turn(self) -> ExportTurn | None:
        """Return what is still to do before the end: single pictures, which a person has just saved."""
        with self._condition:
            return ExportTurn(self._urgent[0], False) if self._urgent else None

    def finish(self, job: ExportJob) -> None:
        """Take a job out: it is done, cancelled or has failed."""
        with self._condition:
            for queue in (self._jobs, self._urgent, self._cancelled):
                if job in queue:
                    queue.remove(job)

    def drain(self) -> list[ExportJob]:
        """Take all jobs out and return them in order."""
        with self._condition:
            jobs = [*self._urgent, *self._jobs]
            self._urgent.clear()
            self._jobs.clear()
            self._cancelled.clear()
            return jobs

"""Whose turn it is on the render thread: the order of tasks, and who gives way to whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import Condition

from explorer_app.rendering.tasks.task import Priority, RenderTask


class TaskQueue:
    """The tasks of a render thread.

    Parameters
    ----------
    condition
        Notified whenever a task may have become ready. `next` is called with it held.
    tasks
        In any order; of two with the same priority, the first goes first.
    has_renderer
        Whether tasks that need a renderer can run.
    is_closing
        Whether the thread is to end.
    """

    def __init__(
        self,
        condition: Condition,
        tasks: Iterable[RenderTask],
        *,
        has_renderer: Callable[[], bool],
        is_closing: Callable[[], bool],
    ) -> None:
        self._condition = condition
        self._tasks = sorted(tasks, key=lambda task: task.priority)
        self._has_renderer = has_renderer
        self._is_closing = is_closing
        self._last: Priority | None = None

    def next(self) -> RenderTask | None:
        """Return the task whose turn it is, None if none is ready."""
        ready = list(self._ready())
        alternating = [task for task in ready if self._last in task.alternates_with]
        if alternating:
            ready = [task for task in ready if task.priority != self._last]
        return ready[0] if ready else None

    def seconds_to_wait(self) -> float | None:
        """Return after how long a task is ready without a notification; None if none will be."""
        waits = [task.seconds_until_ready() for task in self._runnable()]
        return min((wait for wait in waits if wait is not None), default=None)

    def note_step(self, task: RenderTask, done: bool) -> None:
        """Take note of a step: one that was given up does not count as the task's turn."""
        self._last = task.priority if done else None

    def should_yield(self, task: RenderTask) -> bool:
        """Return whether a step in progress is to be given up. Callable from any thread."""
        with self._condition:
            if self._is_closing():
                return not task.finishes_on_close
            return any(other.priority in task.yields_to for other in self._ready())

    def _ready(self) -> Iterator[RenderTask]:
        return (task for task in self._runnable() if task.seconds_until_ready() == 0.0)

    def _runnable(self) -> Iterator[RenderTask]:
        has_renderer, is_closing = self._has_renderer(), self._is_closing()
        for task in self._tasks:
            if (has_renderer or not task.needs_renderer) and (task.finishes_on_close or not is_closing):
                yield task

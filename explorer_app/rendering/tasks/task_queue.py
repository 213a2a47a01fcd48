"""Scheduling of the render thread: the order of tasks, what yields to what, and the time that previews leave to others.

While pictures move, previews come first: another task gets `RenderTask.preview_share` of the time, and beyond that
only steps too short to be noticed, and only while no preview waits. It saves credit for a step before it takes the
step, so the share holds in every part of a gesture. At rest there is no limit. A task whose own steps cause the
previews, such as a drag, takes turns with them: it waits for a preview that is requested, and not for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import Condition

from explorer_app.rendering.tasks.task import Priority, RenderTask

_MOST_CREDIT_S = 0.1
"""Largest credit beyond the next step, in seconds: many steps in a row would be noticed."""

_FORGET_STEP = 0.8
"""Factor on the duration expected of a task's steps, for each step that was shorter."""

_SHORT_S = 0.004
"""A step as short as this delays a preview by less than a frame of the screen."""


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
    seconds_to_rest
        For how long previews are still expected; 0 at rest.
    """

    def __init__(
        self,
        condition: Condition,
        tasks: Iterable[RenderTask],
        *,
        has_renderer: Callable[[], bool],
        is_closing: Callable[[], bool],
        seconds_to_rest: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._condition = condition
        self._tasks = sorted(tasks, key=lambda task: task.priority)
        self._has_renderer = has_renderer
        self._is_closing = is_closing
        self._seconds_to_rest = seconds_to_rest
        self._credit_s = {task: 0.0 for task in self._tasks if task.preview_share > 0.0}
        self._is_moving = False
        self._step_s = dict.fromkeys(self._credit_s, float("inf"))

    def next(self) -> RenderTask | None:
        """Return the task whose turn it is, None if none is ready."""
        ready = list(self._ready())
        is_preview_waiting = any(task.priority == Priority.PREVIEW for task in ready)
        self._is_moving = is_preview_waiting or self._seconds_to_rest() > 0.0
        if not ready or not self._is_moving:
            return ready[0] if ready else None
        if ready[0].priority < Priority.PREVIEW:
            return ready[0]
        if is_preview_waiting:
            return next((task for task in ready if self._has_credit(task)), ready[0])
        return next((task for task in ready if not self._is_held_back(task)), None)

    def seconds_to_wait(self) -> float | None:
        """Return after how long a task is ready without a notification; None if none will be."""
        waits = [task.seconds_until_ready() for task in self._runnable()]
        return min((wait or self._seconds_to_rest() for wait in waits if wait is not None), default=None)

    def note_step(self, task: RenderTask, done: bool, seconds: float) -> None:
        """Record how long a step took, so that previews and other tasks get their shares of the time."""
        if task.priority == Priority.PREVIEW and done:
            for other, credit_s in self._credit_s.items():
                share, most = other.preview_share, _MOST_CREDIT_S + self._price_s(other)
                self._credit_s[other] = min(most, credit_s + seconds * share / (1.0 - share))
        elif task in self._credit_s:
            known = self._step_s[task]
            self._step_s[task] = seconds if known == float("inf") else max(seconds, _FORGET_STEP * known)
            if self._is_moving:
                self._credit_s[task] -= seconds

    def close(self) -> None:
        """Close every task, in the order of their priorities."""
        for task in self._tasks:
            task.close()

    def _has_credit(self, task: RenderTask) -> bool:
        credit_s = self._credit_s.get(task, 0.0)
        return task.is_brief or (credit_s > 0.0 and credit_s >= self._price_s(task))

    def _price_s(self, task: RenderTask) -> float:
        """Return the credit that a step needs; 0 until one was timed, so that the first one runs."""
        step_s = self._step_s[task]
        return 0.0 if step_s == float("inf") else step_s

    def _is_held_back(self, task: RenderTask) -> bool:
        """Return whether a task would delay a preview that is about to arrive."""
        is_limited = task in self._credit_s and not task.causes_previews
        return is_limited and not self._has_credit(task) and self._step_s[task] > _SHORT_S

    def should_yield(self, task: RenderTask) -> bool:
        """Return whether a step in progress is to be cancelled. Callable from any thread."""
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

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from explorer_app.rendering.tasks.task import Priority, RenderTask
from explorer_app.rendering.tasks.task_queue import TaskQueue


class Task(RenderTask):
    """Ready after so many seconds; None: never."""

    def __init__(self, priority: Priority, ready_s: float | None = 0.0, **traits: Any) -> None:
        self.priority = priority  # type: ignore[misc]
        self.ready_s = ready_s
        for name, value in traits.items():
            setattr(self, name, value)

    def seconds_until_ready(self) -> float | None:
        return self.ready_s

    def step(self, renderer: object, should_yield: Callable[[], bool]) -> bool:
        return True


class Thread:
    has_renderer = True
    is_closing = False

    def queue(self, *tasks: RenderTask) -> TaskQueue:
        return TaskQueue(
            threading.Condition(),
            tasks,
            has_renderer=lambda: self.has_renderer,
            is_closing=lambda: self.is_closing,
        )


@pytest.fixture
def thread() -> Thread:
    return Thread()


def order(queue: TaskQueue, steps: int) -> list[str]:
    names = []
    for _ in range(steps):
        task = queue.next()
        assert task is not None
        queue.note_step(task, True)
        names.append(task.priority.name)
    return names


def test_of_the_tasks_that_are_ready_the_most_urgent_takes_the_step(thread: Thread) -> None:
    preview, device = Task(Priority.PREVIEW), Task(Priority.DEVICE, None)
    queue = thread.queue(Task(Priority.THUMBNAIL), preview, device)
    assert queue.next() is preview
    device.ready_s = 0.0
    assert queue.next() is device


def test_an_endless_preview_and_an_export_take_turns_and_an_idle_task_waits(thread: Thread) -> None:
    export = Task(Priority.EXPORT, alternates_with=frozenset({Priority.PREVIEW}))
    queue = thread.queue(export, Task(Priority.PREVIEW), Task(Priority.THUMBNAIL))
    assert order(queue, 4) == ["PREVIEW", "EXPORT", "PREVIEW", "EXPORT"]
    export.ready_s = None
    assert order(queue, 3) == ["PREVIEW"] * 3


def test_a_step_that_was_given_up_was_no_turn(thread: Thread) -> None:
    preview = Task(Priority.PREVIEW)
    queue = thread.queue(preview, Task(Priority.EXPORT, alternates_with=frozenset({Priority.PREVIEW})))
    queue.note_step(preview, False)
    assert queue.next() is preview


def test_a_task_yields_to_what_it_says_and_only_while_that_is_ready(thread: Thread) -> None:
    thumbnail = Task(Priority.THUMBNAIL, yields_to=frozenset({Priority.PREVIEW}))
    preview, model = Task(Priority.PREVIEW, None), Task(Priority.MODEL)
    queue = thread.queue(thumbnail, preview, model)
    assert not queue.should_yield(thumbnail)
    preview.ready_s = 0.0
    assert queue.should_yield(thumbnail)
    assert not queue.should_yield(Task(Priority.EXPORT, yields_to=frozenset()))


def test_the_wait_ends_when_the_first_task_is_ready(thread: Thread) -> None:
    queue = thread.queue(Task(Priority.THUMBNAIL, 3.0), Task(Priority.MODEL, 2.0), Task(Priority.PREVIEW, None))
    assert queue.next() is None
    assert queue.seconds_to_wait() == 2.0
    assert thread.queue(Task(Priority.PREVIEW, None)).seconds_to_wait() is None


def test_without_a_renderer_only_what_makes_one_runs(thread: Thread) -> None:
    thread.has_renderer = False
    model = Task(Priority.MODEL, None, needs_renderer=False)
    queue = thread.queue(Task(Priority.PREVIEW), model)
    assert queue.next() is None
    model.ready_s = 0.0
    assert queue.next() is model


def test_closing_leaves_only_what_is_finished_first_and_the_rest_yields(thread: Thread) -> None:
    preview, picture = Task(Priority.PREVIEW), Task(Priority.PICTURE, finishes_on_close=True)
    queue = thread.queue(preview, picture)
    thread.is_closing = True
    assert queue.next() is picture
    assert queue.should_yield(preview)
    assert not queue.should_yield(picture)
    picture.ready_s = None
    assert queue.next() is None

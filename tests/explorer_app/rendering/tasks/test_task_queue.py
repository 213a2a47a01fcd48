from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from explorer_app.rendering.tasks.export import ExportTask
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
    seconds_to_rest = 1.0

    def queue(self, *tasks: RenderTask) -> TaskQueue:
        return TaskQueue(
            threading.Condition(),
            tasks,
            has_renderer=lambda: self.has_renderer,
            is_closing=lambda: self.is_closing,
            seconds_to_rest=lambda: self.seconds_to_rest,
        )


@pytest.fixture
def thread() -> Thread:
    return Thread()


def order(queue: TaskQueue, steps: int) -> list[str]:
    names = []
    for _ in range(steps):
        task = queue.next()
        assert task is not None
        queue.note_step(task, True, 0.01)
        names.append(task.priority.name)
    return names


def test_work_that_takes_minutes_comes_after_what_is_waited_for(thread: Thread) -> None:
    long = [Priority.PROJECTION, Priority.EXPORT, Priority.SEARCH, Priority.LEARNING, Priority.TUNING, Priority.LADDER]
    thread.seconds_to_rest = 0.0
    for awaited in (Priority.PICTURE, Priority.ROWS, Priority.GRID, Priority.THUMBNAIL):
        assert order(thread.queue(*(Task(priority) for priority in (*long, awaited))), 1) == [awaited.name]


def test_of_the_tasks_that_are_ready_the_most_urgent_takes_the_step(thread: Thread) -> None:
    preview, device = Task(Priority.PREVIEW), Task(Priority.DEVICE, None)
    queue = thread.queue(Task(Priority.THUMBNAIL), preview, device)
    assert queue.next() is preview
    device.ready_s = 0.0
    assert queue.next() is device


@pytest.mark.parametrize("share", [ExportTask.preview_share, 0.25, 0.5])
def test_while_previews_never_end_a_task_gets_its_share_of_the_time(thread: Thread, share: float) -> None:
    export, preview = Task(Priority.EXPORT, preview_share=share), Task(Priority.PREVIEW)
    queue = thread.queue(export, preview, Task(Priority.SEARCH))
    spent_s = {export: 0.0, preview: 0.0}
    for _ in range(2000):
        task = queue.next()
        assert task is export or task is preview
        thread.seconds_to_rest = 0.0  # as it is at the end of a long step
        seconds = 0.13 if task is export else 0.03  # a full picture and a draft of a processor
        queue.note_step(task, True, seconds)
        spent_s[task] += seconds
    assert spent_s[export] / sum(spent_s.values()) == pytest.approx(share, rel=0.02)


def test_an_export_saves_the_time_of_a_step_before_it_takes_it(thread: Thread) -> None:
    export, preview = Task(Priority.EXPORT, preview_share=ExportTask.preview_share), Task(Priority.PREVIEW)
    queue = thread.queue(export, preview)
    taken = []
    for number in range(2000):
        task = queue.next()
        assert task is not None
        queue.note_step(task, True, 0.2 if task is export else 0.025)
        if task is export:
            taken.append(number)
    first, *later = taken
    assert first == 1  # unknown, and so tried at once
    # 0.2 s at a share of 0.05 are saved in 3.8 s of previews: 152 of them, twice as many after the step that was tried
    assert later[0] - first >= 2 * 152
    assert all(152 <= after - before <= 155 for before, after in itertools.pairwise(later))


def test_a_share_that_was_not_used_is_not_saved_up(thread: Thread) -> None:
    export = Task(Priority.EXPORT, None, preview_share=0.1)
    queue = thread.queue(export, Task(Priority.PREVIEW))
    assert order(queue, 10_000) == ["PREVIEW"] * 10_000
    export.ready_s = 0.0
    assert order(queue, 100).count("EXPORT") <= 0.1 / 0.01 + 10


def test_at_rest_a_task_has_all_of_the_time(thread: Thread) -> None:
    thread.seconds_to_rest = 0.0
    preview = Task(Priority.PREVIEW, None)
    queue = thread.queue(Task(Priority.EXPORT, preview_share=0.1), preview)
    assert order(queue, 50) == ["EXPORT"] * 50
    preview.ready_s = 0.0
    assert order(queue, 1) == ["PREVIEW"]


def test_between_the_previews_of_a_movement_only_short_steps_are_done(thread: Thread) -> None:
    preview, export = Task(Priority.PREVIEW, None), Task(Priority.EXPORT, preview_share=0.1)
    queue = thread.queue(preview, export, Task(Priority.IDLE))
    queue.note_step(export, True, 0.13)
    assert order(queue, 1) == ["IDLE"]
    for _ in range(20):  # it is believed slowly that its steps are short now
        queue.note_step(export, True, 0.002)
    assert order(queue, 1) == ["EXPORT"]


def test_a_task_that_is_held_back_waits_for_the_picture_to_rest(thread: Thread) -> None:
    queue = thread.queue(Task(Priority.PREVIEW, None), Task(Priority.EXPORT, preview_share=0.1))
    assert queue.next() is None
    thread.seconds_to_rest = 0.07
    assert queue.seconds_to_wait() == 0.07
    thread.seconds_to_rest = 0.0
    assert order(queue, 1) == ["EXPORT"]


def test_a_task_takes_turns_with_the_previews_that_its_steps_cause(thread: Thread) -> None:
    drag, preview = Task(Priority.DRAG, preview_share=0.5, causes_previews=True), Task(Priority.PREVIEW, None)
    queue = thread.queue(drag, preview)
    for _ in range(10):
        preview.ready_s = None
        assert queue.next() is drag, "no other preview is about to arrive"
        queue.note_step(drag, True, 0.1)
        preview.ready_s = 0.0
        assert queue.next() is preview
        queue.note_step(preview, True, 0.001)


def test_a_task_that_renders_nothing_needs_no_share(thread: Thread) -> None:
    class Ending(Task):
        is_brief = True

    queue = thread.queue(Ending(Priority.EXPORT, preview_share=0.1), Task(Priority.PREVIEW))
    assert order(queue, 1) == ["EXPORT"]


def test_a_preview_that_was_cancelled_earns_others_nothing(thread: Thread) -> None:
    preview = Task(Priority.PREVIEW)
    queue = thread.queue(preview, Task(Priority.EXPORT, preview_share=0.5))
    assert queue.next() is preview
    queue.note_step(preview, False, 1.0)
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

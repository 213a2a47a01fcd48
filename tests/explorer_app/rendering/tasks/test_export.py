"""Jobs in order, on a thread that never waits for their files."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest

from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.rendering.lifecycle import Lifecycle
from explorer_app.rendering.render_events import ExportAdvanced, ExportEnded, RenderEvent
from explorer_app.rendering.tasks.export import ExportTask
from explorer_app.session.session import ModelReference
from gpu_backend import DeviceLostError, Disk, RequestError
from tests.helpers.fake_renderer import Engine, FakeRenderer
from tests.helpers.render_harness import MODEL, Harness, Job, request, seed_of


class Lane:
    """An export task that is driven by hand."""

    def __init__(self) -> None:
        self.engine = Engine()
        self.renderer = FakeRenderer(MODEL, self.engine)
        self.event: list[RenderEvent] = []
        self.recoverable: type[Exception] | None = None
        self.task = ExportTask(threading.Condition(), self.event.append, self._recovers)

    def _recovers(self, error: Exception) -> bool:
        is_recoverable = self.recoverable is not None and isinstance(error, self.recoverable)
        if is_recoverable:
            self.engine.failing = None
        return is_recoverable

    def run(self) -> None:
        """Do steps as long as the task is ready."""
        while self.task.seconds_until_ready() == 0.0:
            self.task.step(self.renderer, lambda: False)

    @property
    def ended(self) -> list[tuple[object, bool]]:
        return [(event.job, event.is_cancelled) for event in self.event if isinstance(event, ExportEnded)]


@pytest.fixture
def lane() -> Lane:
    return Lane()


def test_the_job_that_came_first_is_worked_at_until_it_has_ended(lane: Lane) -> None:
    first, second = Job(1, 2), Job(3)
    lane.task.put(first)
    lane.task.put(second)
    lane.run()
    assert lane.ended == [(first, False), (second, False)]
    assert [seed_of(item) for item in lane.engine.requests] == [1, 2, 3]
    assert len(lane.task) == 0


def test_a_job_whose_files_lag_behind_is_not_ready_and_goes_on_when_they_have_caught_up(lane: Lane) -> None:
    job = Job(1, 2, 3)
    lane.task.put(job)
    lane.task.step(lane.renderer, lambda: False)  # starts it
    lane.task.step(lane.renderer, lambda: False)
    job.is_full = True
    assert lane.task.seconds_until_ready() is None
    assert job.got == [1]
    job.is_full = False
    job.changed()
    lane.run()
    assert job.got == [1, 2, 3]


def test_a_job_is_started_when_its_turn_comes_and_not_before(lane: Lane) -> None:
    first, second = Job(1), Job(2)
    started: list[Job] = []

    def note(job: Job, changed: object) -> None:
        started.append(job)

    for job in (first, second):
        job.start = partial(note, job)  # type: ignore[method-assign]
        lane.task.put(job)
    lane.task.step(lane.renderer, lambda: False)
    assert started == [first]
    lane.run()
    assert started == [first, second]


def test_a_cancelled_job_ends_at_the_next_step_wherever_it_stands(lane: Lane) -> None:
    first, second = Job(1), Job(2)
    lane.task.put(first)
    lane.task.put(second)
    lane.task.cancel(second)
    lane.run()
    assert lane.ended == [(second, True), (first, False)]
    assert second.stopped == [True]
    lane.task.cancel(second)
    assert lane.task.seconds_until_ready() is None


def test_a_cancelled_job_ends_though_its_files_lag_behind(lane: Lane) -> None:
    job = Job(1, 2)
    lane.task.put(job)
    lane.task.step(lane.renderer, lambda: False)
    job.is_full = True
    lane.task.cancel(job)
    lane.run()
    assert lane.ended == [(job, True)]


def test_an_error_of_the_files_ends_the_job_with_that_error(lane: Lane) -> None:
    job = Job()
    job.error = OSError("The disk is full.")
    lane.task.put(job)
    lane.run()
    (event,) = lane.event
    assert isinstance(event, ExportEnded)
    assert event.error is job.error


def test_a_frame_that_cannot_be_rendered_ends_its_job_and_leaves_it_to_go_on_another_time(lane: Lane) -> None:
    bad, good = Job(1), Job(2)
    lane.engine.failing = RequestError("No such row.")
    lane.task.put(bad)
    lane.task.step(lane.renderer, lambda: False)
    lane.task.step(lane.renderer, lambda: False)
    lane.engine.failing = None
    lane.task.put(good)
    lane.run()
    assert bad.stopped == [False]
    assert good.got == [2]


def test_a_device_that_failed_costs_no_frame(lane: Lane) -> None:
    job = Job(1, 2)
    lane.task.put(job)
    lane.engine.failing = DeviceLostError("The GPU stopped answering.")
    lane.recoverable = DeviceLostError
    lane.run()
    assert job.got == [1, 2]
    assert len([event for event in lane.event if isinstance(event, ExportAdvanced)]) == 2


def test_progress_counts_a_file_that_is_stored_while_nothing_is_rendered(lane: Lane) -> None:
    job = Job(1, 2)
    lane.task.put(job)
    lane.task.step(lane.renderer, lambda: False)  # starts it
    job.unstored = 1
    lane.task.step(lane.renderer, lambda: False)
    job.is_full = True
    assert (job.got, lane.event, lane.task.seconds_until_ready()) == ([1], [], None)
    job.unstored = 0
    job.changed()
    assert lane.task.seconds_until_ready() == 0.0
    lane.task.step(lane.renderer, lambda: False)
    assert [type(event) for event in lane.event] == [ExportAdvanced]
    assert lane.task.seconds_until_ready() is None


def test_a_file_that_is_joined_after_its_last_frame_reports_it(lane: Lane) -> None:
    job = Job(1, 2)
    lane.task.put(job)
    lane.task.step(lane.renderer, lambda: False)  # starts it
    lane.task.step(lane.renderer, lambda: False)
    job.is_full = True
    assert (lane.event.pop(), lane.task.seconds_until_ready()) == (ExportAdvanced(job), None)
    job.is_joining = True
    job.changed()
    assert lane.task.seconds_until_ready() == 0.0
    lane.task.step(lane.renderer, lambda: False)
    assert lane.event == [ExportAdvanced(job)]
    assert lane.task.seconds_until_ready() is None


def test_closing_keeps_every_job_for_another_time(lane: Lane) -> None:
    jobs = [Job(1), Job(2)]
    for job in jobs:
        lane.task.put(job)
    lane.task.close()
    assert [job.stopped for job in jobs] == [[False], [False]]
    assert len(lane.task) == 0


class StuckDisk(Disk):
    """Never finishes a picture before it is let."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.begun = 0
        """Pictures whose writing has begun."""
        self._lock = threading.Lock()

    def write(self, path: Path, data: bytes, *, flushed: bool = True) -> None:
        if ".png." in path.name:
            with self._lock:
                self.begun += 1
            assert self.gate.wait(30)
        super().write(path, data, flushed=flushed)


def has_delivered(job: SequenceJob, count: int) -> bool:
    return job.delivered == count


def has_begun(disk: StuckDisk, count: int) -> bool:
    return disk.begun == count


def test_neither_previews_nor_cancelling_nor_closing_wait_for_a_disk_that_does_not_answer(
    harness: Harness, tmp_path: Path
) -> None:
    disk = StuckDisk()
    keys = (Keyframe.of(request(1)), Keyframe.of(request(2)))
    model = ModelReference(model_id=MODEL.facts.model_id)
    jobs = [
        SequenceJob(SequenceSettings(keys, tmp_path, name, model, "w-linear", 50, z_dim=8), disk=disk, threads=2)
        for name in ("first", "second")
    ]
    for number, job in enumerate(jobs, 1):
        harness.thread.export(job)
        harness.until(partial(has_delivered, job, 6))  # two are written, four wait, and there is no more room
        harness.until(partial(has_begun, disk, 2 * number))
        harness.show(7 + len(harness.frames))
        if job is jobs[0]:
            harness.thread.cancel_export(job)
            harness.until(lambda: harness.of(ExportEnded))
    harness.thread.close()
    assert harness.thread.state is Lifecycle.CLOSED
    assert not disk.gate.is_set()
    disk.gate.set()
    assert all(job.join(30) for job in jobs)
    assert jobs[0].done == 6, "what was delivered before the cancelling"
    assert 2 <= jobs[1].done <= 6, "what was begun at the end, and what a writer took before the rest was dropped"


def test_the_preview_renders_every_request_while_the_files_of_an_export_lag_behind(
    harness: Harness, engine: Engine
) -> None:
    """A full sink costs the render thread no step: between the frames it takes, only previews are rendered."""
    job = Job(*range(100, 150))
    harness.thread.export(job)
    harness.until(lambda: job.got)
    job.is_full = True
    harness.show(0)
    rendered = len(job.got)
    before = len(engine.requests)
    for seed in range(1, 41):
        harness.show(seed)
    assert [seed_of(item) for item in engine.requests[before:]] == list(range(1, 41))
    assert len(job.got) == rendered
    harness.thread.cancel_export(job)
    harness.until(lambda: harness.of(ExportEnded))

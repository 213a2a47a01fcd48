"""Exports that a farm renders, in the queue beside those of the window's device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from explorer_app.controller.farm_export import farm_job, worker_sentence
from explorer_app.exporting.export_list import ExportPlace, record_of
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.progress import Progress
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.farm.errors import FarmError
from explorer_app.farm.work import WorkerStatus
from explorer_app.session.edits import GoToSeed
from explorer_app.session.resolve import resolve
from explorer_app.session.session import ModelReference
from gpu_backend import DirectionAmount, Directions, Latent, Recipe, RowRange
from tests.helpers.controller_harness import Harness
from tests.helpers.fake_controller import facts

FARM = ExportPlace("farm", "render.local", "/keys/farm.pem")


class FakeFarmJob:
    """Stands for `FarmJob`: renders when the test says so."""

    def __init__(self, settings: SequenceSettings, place: ExportPlace) -> None:
        self.settings, self.place = settings, place
        self.priority = place.priority
        self.total = settings.frame_count
        self.done = 0
        self.is_over = self.has_ended = self.is_joining = False
        self.error: BaseException | None = None
        self.spot_check = None
        self.activity = "starting"
        self.workers: tuple[WorkerStatus, ...] = ()
        self.stopped: list[bool] = []
        self.messages: list[str] = []
        self.changed: Callable[[], None] = lambda: None

    @property
    def delivered(self) -> int:
        return self.done

    @property
    def progress(self) -> Progress:
        return Progress(self.done, self.total)

    def take_messages(self) -> list[str]:
        messages, self.messages = self.messages, []
        return messages

    def start(self, changed: Callable[[], None]) -> None:
        self.changed = changed

    def request_log(self, worker: str, receive: Callable[[list[str] | None], None]) -> None:
        receive([f"{worker} rendered"] if worker == "gpu0" else None)

    def set_priority(self, priority: int) -> None:
        self.priority = priority

    def stop(self, *, cancelled: bool) -> None:
        self.stopped.append(cancelled)

    def join(self, timeout_s: float | None = None) -> bool:
        return True

    def end(self, error: BaseException | None = None, *, by_itself: bool = True) -> None:
        self.error, self.has_ended, self.is_over = error, by_itself, True
        self.changed()


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[FakeFarmJob]:
    made: list[FakeFarmJob] = []

    def make(settings: SequenceSettings, place: ExportPlace, *_: Any) -> FakeFarmJob:
        made.append(FakeFarmJob(settings, place))
        return made[-1]

    monkeypatch.setattr("explorer_app.controller.export_run.farm_job", make)
    return made


def walk(harness: Harness, name: str) -> SequenceSettings:
    session = harness.controller.editing.session
    keys = tuple(Keyframe.of(resolve(item)) for item in (session, GoToSeed(77).apply(session)))
    return SequenceSettings(keys, harness.folder / name, name, session.model, "w-linear", 3, z_dim=8)


def states(harness: Harness) -> dict[str, str]:
    return {job.name: job.state for job in harness.controller.export.jobs}


def test_a_farm_renders_its_export_and_the_next_follows_here(open_harness: Harness, jobs: list[FakeFarmJob]) -> None:
    export = open_harness.controller.export
    export.start(walk(open_harness, "far"), FARM)
    export.start(walk(open_harness, "near"))
    (job,) = jobs
    assert job.place == FARM
    assert states(open_harness) == {"far": "running", "near": "waiting"}
    job.done, job.activity = 2, "1 worker"
    job.workers = (WorkerStatus("gpu0", "NVIDIA H200", 2, 52.0, 0, "rendering"),)
    job.messages = ["A worker was set aside."]
    job.changed()
    open_harness.until(lambda: export.progress is not None and export.progress.done == 2)
    assert export.progress is not None
    assert export.progress.activity == "1 worker"
    assert export.progress.workers == ("gpu0 · 2 frames · 52 fps · rendering · NVIDIA H200",)
    assert any("set aside" in message.sentence for message in open_harness.messages.messages)
    job.done = job.total
    job.end()
    open_harness.until(lambda: states(open_harness) == {"far": "done", "near": "done"})


def test_a_still_of_a_farm_is_named_where_it_is(open_harness: Harness, jobs: list[FakeFarmJob]) -> None:
    export = open_harness.controller.export
    settings = walk(open_harness, "evening")
    export.start(replace(settings, keys=settings.keys[:1], file_names=("evening",)), FARM)
    (record,) = export.jobs
    assert record.file == "evening.png"
    jobs[0].end()
    open_harness.until(lambda: states(open_harness) == {"evening": "done"})
    message = open_harness.messages.messages[-1]
    assert message.file == settings.folder / "evening.png"
    assert message.sentence == f"Exported {message.file}."


def test_a_farm_that_does_not_answer_fails_with_its_sentence_and_is_tried_again_there(
    open_harness: Harness, jobs: list[FakeFarmJob]
) -> None:
    export = open_harness.controller.export
    export.start(walk(open_harness, "far"), FARM)
    jobs[0].end(FarmError("No farm answers at render.local."))
    open_harness.until(lambda: states(open_harness) == {"far": "failed"})
    (record,) = export.jobs
    assert record.error == "No farm answers at render.local."
    export.resume_job(record.job_id)
    assert [job.place for job in jobs] == [FARM, FARM]


@pytest.mark.parametrize(("end", "cancelled"), [("paused", False), ("cancelled", True)])
def test_a_farm_is_stopped_and_the_frames_stay(
    open_harness: Harness, jobs: list[FakeFarmJob], end: str, cancelled: bool
) -> None:
    export = open_harness.controller.export
    export.start(walk(open_harness, "far"), FARM)
    (export.pause if end == "paused" else export.cancel)(export.current)
    assert jobs[0].stopped == [cancelled]
    assert export.progress is not None
    assert export.progress.is_stopping
    jobs[0].end(by_itself=False)
    open_harness.until(lambda: states(open_harness) == {"far": end})


def test_the_place_survives_the_program_and_lists_of_earlier_versions_have_none(open_harness: Harness) -> None:
    export = open_harness.controller.export
    export.start(walk(open_harness, "near"))
    (record,) = export.jobs
    fields = {name: getattr(record, name) for name in record.__slots__}
    assert record_of({**fields, "where": "farm", "address": "render.local", "keys": "/keys/farm.pem"}) == replace(
        record, where="farm", address="render.local", keys="/keys/farm.pem"
    )
    old = {name: value for name, value in fields.items() if name not in ("where", "address", "keys", "priority")}
    assert record_of(old) == record
    assert record_of({**fields, "priority": -10}) == replace(record, priority=-10)
    assert record_of({**fields, "where": "elsewhere"}) is None
    assert record_of({**fields, "priority": "high"}) is None


def test_the_priority_of_a_job_is_changed_here_or_from_elsewhere_and_kept(
    open_harness: Harness, jobs: list[FakeFarmJob]
) -> None:
    export = open_harness.controller.export
    export.start(walk(open_harness, "far"), replace(FARM, priority=10))
    assert jobs[0].place.priority == 10
    export.set_priority(export.current, -10)
    assert (jobs[0].priority, export.jobs[0].priority) == (-10, -10)
    jobs[0].set_priority(7)  # as `latentloom farm priority` does
    jobs[0].changed()
    open_harness.until(lambda: export.jobs[0].priority == 7)
    export.pause(export.current)
    jobs[0].end(by_itself=False)
    open_harness.until(lambda: states(open_harness) == {"far": "paused"})
    export.set_priority(export.jobs[0].job_id, 0)
    export.resume_job(export.jobs[0].job_id)
    assert jobs[1].place.priority == 0


def test_a_worker_is_described_in_one_line() -> None:
    assert (
        worker_sentence(WorkerStatus("gpu1", "", 1, 0.0, 2, "set aside")) == "gpu1 · 1 frame · 2 failures · set aside"
    )


def test_the_log_of_a_worker_comes_from_the_farm_that_renders(open_harness: Harness, jobs: list[FakeFarmJob]) -> None:
    export = open_harness.controller.export
    logs: dict[str, list[str] | None] = {}
    export.log_arrived.connect(logs.__setitem__)
    export.request_log("gpu7")
    assert logs == {"gpu7": None}, "no farm renders"
    export.start(walk(open_harness, "far"), FARM)
    export.request_log("gpu0")
    export.request_log("gpu1")
    open_harness.until(lambda: "gpu1" in logs)
    assert logs == {"gpu7": None, "gpu0": ["gpu0 rendered"], "gpu1": None}


def test_a_farm_gets_the_named_directions_of_the_open_model() -> None:
    vectors = np.eye(2, 4, dtype=np.float32)
    directions = Directions(("world/sun", "sefa/0"), vectors, (3.0, 5.0), (RowRange(0, 3), RowRange()))
    key = Keyframe(((Recipe(Latent(directions=(DirectionAmount("world/sun", 1.0),))), 1.0),))
    settings = SequenceSettings((key,), Path("out"), "walk", ModelReference("", "m", "ab" * 32))
    job = farm_job(settings, replace(FARM, priority=10), facts(), directions, "fp16", None, lambda _: None)
    assert job.priority == 10
    assert b"world/sun" in job._work.model.directions
    assert b"sefa" not in job._work.model.directions

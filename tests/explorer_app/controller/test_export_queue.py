"""The queue of exports: its order, what a person does to it, and what survives the program."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace

import pytest

from explorer_app.controller import ExportQueueController
from explorer_app.controller.export_queue import _again_text
from explorer_app.exporting.export_list import HERE, ExportRecord
from explorer_app.exporting.export_store import ExportStore
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.manifest import read_manifest
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.messages import Message
from explorer_app.session.edits import GoToSeed
from explorer_app.session.resolve import resolve
from tests.helpers.controller_harness import Harness


def walk(harness: Harness, name: str, frames: int = 4) -> SequenceSettings:
    session = harness.controller.editing.session
    keys = tuple(Keyframe.of(resolve(item)) for item in (session, GoToSeed(77).apply(session)))
    return SequenceSettings(keys, harness.folder / name, name, session.model, "w-linear", frames - 1, z_dim=8)


def states(harness: Harness) -> dict[str, str]:
    return {job.name: job.state for job in harness.controller.export.jobs}


def job(harness: Harness, name: str) -> ExportRecord:
    return next(job for job in harness.controller.export.jobs if job.name == name)


def offers(harness: Harness) -> list[Message]:
    return [message for message in harness.messages.messages if message.action and "Resume" in message.action.words]


def begin(harness: Harness, *names: str) -> ExportQueueController:
    """Begin the first export and hold it at its first frame; the others wait."""
    export = harness.controller.export
    harness.engine.gate.shut()
    for name in names:
        export.start(walk(harness, name))
    harness.engine.gate.wait_for_knock()
    return export


def finish(harness: Harness) -> None:
    harness.engine.gate.open()
    harness.until(lambda: harness.controller.export.progress is None)


def order_of_writing(harness: Harness, *names: str) -> list[str]:
    return sorted(names, key=lambda name: (harness.folder / name / f"{name}.manifest.json").stat().st_mtime_ns)


def test_a_waiting_export_is_neither_replaced_nor_queued_twice(open_harness: Harness) -> None:
    export = begin(open_harness, "one", "two")
    export.start(walk(open_harness, "two"))
    assert [job.name for job in export.jobs] == ["one", "two"]
    assert "The export “two” is waiting already." in open_harness.said()
    assert export.unfinished_in(open_harness.folder / "two") == {"two": "waiting"}
    export.start(walk(open_harness, "two", frames=7))
    assert [job.total for job in export.jobs] == [4, 4, 7]
    finish(open_harness)
    assert [job.state for job in export.jobs] == ["done", "done", "failed"]


def test_an_export_that_was_paused_is_resumed_from_its_message(open_harness: Harness) -> None:
    export = begin(open_harness, "one")
    export.pause(export.current)
    open_harness.engine.gate.open()
    open_harness.until(lambda: export.progress is None)
    (message,) = offers(open_harness)
    assert "The export “one” was paused after" in message.sentence
    assert message.action is not None
    assert message.action.is_needed()
    message.action.call()
    assert not message.action.is_needed()
    finish(open_harness)
    assert states(open_harness) == {"one": "done"}


@pytest.mark.parametrize(
    ("delivered", "lost", "text"),
    [
        (36, 0, ""),
        (36, 36, ", all of which are rendered again"),
        (3600, 1800, ", the last 1,800 of which are rendered again"),
        (36, 1, ", the last of which is rendered again"),
        (1, 1, ", which is rendered again"),
    ],
)
def test_a_message_says_how_many_frames_are_rendered_again(delivered: int, lost: int, text: str) -> None:
    assert _again_text(delivered, lost) == text


def test_exports_run_one_after_the_other(open_harness: Harness) -> None:
    export = begin(open_harness, "one", "two", "three")
    assert states(open_harness) == {"one": "running", "two": "waiting", "three": "waiting"}
    assert export.progress is not None
    assert export.progress.waiting == 2
    finish(open_harness)
    assert set(states(open_harness).values()) == {"done"}
    assert order_of_writing(open_harness, "one", "two", "three") == ["one", "two", "three"]


def test_the_end_of_the_last_is_announced_once(open_harness: Harness) -> None:
    ends: list[bool] = []
    export = begin(open_harness, "one", "two")
    export.finished.connect(lambda: ends.append(export.has_succeeded))
    finish(open_harness)
    assert ends == [True]
    assert [(item.name, item.state) for item in export.last_run] == [("one", "done"), ("two", "done")]


def test_a_failure_is_kept_with_its_sentence_and_the_next_runs(open_harness: Harness) -> None:
    (open_harness.folder / "one").write_text("in the way")
    export = open_harness.controller.export
    export.start(walk(open_harness, "one"))
    export.start(walk(open_harness, "two"))
    open_harness.until(lambda: export.progress is None)
    assert states(open_harness) == {"one": "failed", "two": "done"}
    assert "one" in job(open_harness, "one").error
    assert not export.has_succeeded, "quitting after the end waits for a person who reads what failed"
    (open_harness.folder / "one").unlink()
    export.resume_job(job(open_harness, "one").job_id)
    open_harness.until(lambda: states(open_harness)["one"] == "done")


def test_a_failed_export_goes_elsewhere_and_a_restart_knows_where(open_harness: Harness) -> None:
    (open_harness.folder / "one").write_text("in the way")
    export = open_harness.controller.export
    export.start(walk(open_harness, "one"))
    open_harness.until(lambda: export.progress is None)
    failed = job(open_harness, "one")
    assert failed.state == "failed"
    wanted: list[SequenceSettings] = []
    export.with_settings(failed.job_id, wanted.append)
    open_harness.until(lambda: bool(wanted))
    open_harness.engine.gate.shut()
    export.redirect(failed.job_id, replace(wanted[0], folder=open_harness.folder / "free"), HERE)
    open_harness.engine.gate.wait_for_knock()
    running = job(open_harness, "one")
    assert (running.job_id, running.state, running.error) == (failed.job_id, "running", "")
    store = open_harness.state / "exports" / f"{failed.job_id}.json"
    open_harness.until(lambda: str(open_harness.folder / "free") in store.read_text(encoding="ascii"))
    finish(open_harness)
    assert states(open_harness) == {"one": "done"}
    assert len(list((open_harness.folder / "free").glob("*.png"))) == 4
    export.redirect(failed.job_id, wanted[0], HERE)
    assert states(open_harness) == {"one": "done"}, "one that is done stays as it is"


def test_the_order_of_those_that_wait_can_be_changed(open_harness: Harness) -> None:
    export = begin(open_harness, "one", "two", "three")
    export.move(job(open_harness, "three").job_id, -1)
    assert list(states(open_harness)) == ["one", "three", "two"]
    export.move(job(open_harness, "three").job_id, -1)
    assert list(states(open_harness)) == ["one", "three", "two"], "the one that runs is not moved"
    finish(open_harness)
    assert order_of_writing(open_harness, "one", "two", "three") == ["one", "three", "two"]


def test_a_paused_export_lets_the_next_run_and_goes_on_where_it_was(open_harness: Harness) -> None:
    export = begin(open_harness, "one", "two")
    export.pause(job(open_harness, "one").job_id)
    finish(open_harness)
    assert states(open_harness) == {"one": "paused", "two": "done"}
    manifest = open_harness.folder / "one" / "one.manifest.json"
    assert read_manifest(manifest).state == "unfinished"
    export.resume_job(job(open_harness, "one").job_id)
    open_harness.until(lambda: states(open_harness)["one"] == "done")
    assert read_manifest(manifest).state == "complete"


def test_one_that_waits_can_be_paused_stopped_and_removed(open_harness: Harness) -> None:
    export = begin(open_harness, "one", "two", "three")
    export.pause(job(open_harness, "two").job_id)
    export.cancel(job(open_harness, "three").job_id)
    assert states(open_harness) == {"one": "running", "two": "paused", "three": "cancelled"}
    export.remove(job(open_harness, "two").job_id)
    export.remove(job(open_harness, "one").job_id)
    assert list(states(open_harness)) == ["one", "three"], "the one that runs stays"
    finish(open_harness)
    assert not (open_harness.folder / "two").exists()
    export.clear()
    assert states(open_harness) == {}


def test_the_same_export_again_takes_the_place_of_the_ended_one(open_harness: Harness) -> None:
    export = open_harness.controller.export
    for _ in range(2):
        export.start(walk(open_harness, "one"))
        open_harness.until(lambda: export.progress is None)
    assert states(open_harness) == {"one": "done"}
    assert len(export.jobs) == 1


def test_all_that_a_window_left_is_offered_in_one_message(open_harness: Harness) -> None:
    begin(open_harness, "one", "two", "three", "four")
    open_harness.controller.export.cancel(job(open_harness, "four").job_id)
    again = open_harness.reopened()
    again.start()
    again.until(lambda: offers(again))
    (offer,) = offers(again)
    assert offer.sentence == "3 exports are not finished: “one”, “two”, “three”."
    assert states(again) == {"one": "paused", "two": "paused", "three": "paused", "four": "cancelled"}
    assert offer.action is not None
    offer.action.call()
    again.until(lambda: again.controller.export.progress is None)
    assert states(again) == {"one": "done", "two": "done", "three": "done", "four": "cancelled"}
    assert not offer.action.is_needed()


def refreshed(harness: Harness) -> dict[str, str]:
    """Look at the list again: another window may have written it late."""
    harness.controller.export.refresh()
    return states(harness)


def test_two_windows_show_one_list_and_each_runs_its_own(open_harness: Harness) -> None:
    first = open_harness
    begin(first, "one")
    second = Harness(first.folder, first._qtbot, first.messages)
    try:
        second.start()
        second.until(lambda: states(second) == {"one": "running"})
        export = second.controller.export
        assert not export.is_own(job(second, "one"))
        export.pause(job(second, "one").job_id)
        export.remove(job(second, "one").job_id)
        export.start(walk(second, "two"))
        second.until(lambda: states(second) == {"one": "running", "two": "done"})
        first.until(lambda: refreshed(first) == {"one": "running", "two": "done"})
        finish(first)
        second.until(lambda: refreshed(second) == {"one": "done", "two": "done"})
    finally:
        second.close()


def test_a_job_of_another_model_waits_for_it_and_lets_others_pass(open_harness: Harness) -> None:
    harness = open_harness
    cats = walk(harness, "one")
    stopped = begin(harness, "one")
    stopped.pause(job(harness, "one").job_id)
    finish(harness)
    harness.open("dogs")
    harness.engine.gate.shut()
    export = harness.controller.export
    export.start(walk(harness, "two"))
    export.resume_job(job(harness, "one").job_id)
    assert states(harness) == {"one": "waiting", "two": "running"}
    assert export.waits_for(job(harness, "one")) == cats.model.name
    finish(harness)
    assert states(harness) == {"one": "waiting", "two": "done"}
    harness.open("cats")
    harness.until(lambda: states(harness)["one"] == "done")


def test_a_damaged_list_is_set_aside_and_rebuilt_from_the_settings(open_harness: Harness) -> None:
    begin(open_harness, "one", "two")
    open_harness.close()
    path = open_harness.state / "exports.json"
    path.write_text("{")
    again = open_harness.reopened()
    again.start()
    again.until(lambda: states(again) == {"one": "paused", "two": "paused"})
    assert path.with_name("exports.json.broken").exists()
    for name in ("one", "two"):
        again.controller.export.resume_job(job(again, name).job_id)
    again.until(lambda: set(states(again).values()) == {"done"})


def test_settings_that_are_gone_fail_their_job_with_a_sentence(open_harness: Harness) -> None:
    begin(open_harness, "one")
    open_harness.close()
    for path in (open_harness.state / "exports").iterdir():
        path.unlink()
    again = open_harness.reopened()
    again.start()
    again.until(lambda: states(again) == {"one": "paused"})
    again.controller.export.resume_job(job(again, "one").job_id)
    again.until(lambda: states(again) == {"one": "failed"})
    assert "resume it by the manifest" in job(again, "one").error
    assert again.controller.export.progress is None


def test_settings_that_the_disk_does_not_give_fail_their_job_and_the_next_one_runs(
    open_harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(open_harness, "one")
    open_harness.close()

    def refuse(store: ExportStore, record: ExportRecord) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(ExportStore, "settings", refuse)
    again = open_harness.reopened()
    again.start()
    again.until(lambda: states(again) == {"one": "paused"})
    again.controller.export.resume_job(job(again, "one").job_id)
    again.controller.export.start(walk(again, "two"))
    again.until(lambda: states(again) == {"one": "failed", "two": "done"})
    assert "could not be read" in job(again, "one").error


def test_settings_of_jobs_that_are_done_or_removed_are_deleted(open_harness: Harness) -> None:
    export = begin(open_harness, "one", "two")
    export.cancel(job(open_harness, "two").job_id)
    export.remove(job(open_harness, "two").job_id)
    finish(open_harness)
    open_harness.close()
    assert list((open_harness.state / "exports").iterdir()) == []
    assert [item["name"] for item in json.loads((open_harness.state / "exports.json").read_text())["jobs"]] == ["one"]

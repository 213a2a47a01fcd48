"""An export from its first frame to its last, or to the end that a user, a full disk or an error makes."""

from __future__ import annotations

import errno
import json
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.formats.picture_format import PictureFormat
from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.manifest import read_manifest
from explorer_app.exporting.picture import read_picture
from explorer_app.exporting.sequence import SequenceSettings, plan_sequence
from explorer_app.exporting.video.video_format import VideoFormat
from gpu_backend import Disk, Noise
from tests.helpers.failing_disk import FullDisk
from tests.helpers.fake_engine import fake_frame
from tests.helpers.sequence_exports import Folder, content, export, key, requested, started


def test_a_sequence_is_its_frames_and_a_manifest(wanted: SequenceSettings) -> None:
    export(wanted)
    files = content(wanted.folder)
    assert sorted(files) == ["walk.manifest.json", *(f"walk_{index:05d}.png" for index in range(5))]
    plan = plan_sequence(wanted)
    for index in range(5):
        picture = read_picture(wanted.folder / f"walk_{index:05d}.png")
        assert picture.request == plan.request(index)
        assert picture.model_name == "m"


def test_the_manifest_says_how_the_sequence_is_made_and_names_no_folder(wanted: SequenceSettings) -> None:
    export(wanted)
    text = (wanted.folder / "walk.manifest.json").read_text()
    manifest = json.loads(text)
    assert manifest["format"] == "latent-loom-sequence"
    assert (manifest["state"], manifest["frames_written"], manifest["frames_total"]) == ("complete", 5, 5)
    assert manifest["model"] == {"name": "m", "sha256": "ab" * 32}
    assert "/models" not in text
    assert str(wanted.folder) not in text
    assert manifest["path"] == "w-cubic"
    assert [key["noise"]["seed"] for key in manifest["keys"]] == [3, 3, 3]


def test_the_manifest_lies_there_before_the_first_frame(wanted: SequenceSettings) -> None:
    job = started(wanted)
    assert job.wait()
    files = content(wanted.folder)
    assert list(files) == ["walk.manifest.json"]
    assert json.loads(files["walk.manifest.json"])["state"] == "unfinished"
    job.stop(cancelled=True)
    assert job.join(30)


def test_making_a_job_touches_no_file(wanted: SequenceSettings) -> None:
    SequenceJob(wanted).stop(cancelled=True)
    assert not wanted.folder.exists()


@pytest.mark.parametrize("threads", [1, 4])
def test_two_runs_give_the_same_bytes(wanted: SequenceSettings, undisturbed: Folder, threads: int) -> None:
    export(wanted, threads=threads)
    assert content(wanted.folder) == undisturbed


def test_frames_may_come_in_any_order(wanted: SequenceSettings, undisturbed: Folder) -> None:
    job = started(wanted)
    requests = [requested(job) for _ in range(5)]
    for request in reversed(requests):
        job.deliver(fake_frame(request))
    assert not job.wait()
    assert job.join(30)
    assert content(wanted.folder) == undisturbed


def test_cancelling_leaves_whole_files_and_a_manifest_that_reports_it(
    wanted: SequenceSettings, undisturbed: Folder
) -> None:
    export(wanted, stop_after=2)
    files = content(wanted.folder)
    manifest = json.loads(files.pop("walk.manifest.json"))
    assert (manifest["state"], manifest["frames_written"]) == ("cancelled", 2)
    assert files == {name: undisturbed[name] for name in ("walk_00000.png", "walk_00001.png")}
    export(wanted)
    assert content(wanted.folder) == undisturbed


def test_a_frame_that_comes_after_cancelling_is_dropped(wanted: SequenceSettings) -> None:
    job = started(wanted)
    request = requested(job)
    job.stop(cancelled=True)
    job.deliver(fake_frame(request))
    job.stop(cancelled=True)
    assert job.join(30)
    assert job.next_request() is None
    assert list(content(wanted.folder)) == ["walk.manifest.json"]


@pytest.mark.parametrize("stage", ["write", "move"])
@pytest.mark.parametrize("room", range(7))
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_stops_with_a_sentence_and_loses_nothing(
    wanted: SequenceSettings, undisturbed: Folder, stage: str, room: int, number: int
) -> None:
    with pytest.raises(ExportError, match=r"^The disk is full, so walk.* could not be written; .*\.$") as refusal:
        export(wanted, disk=FullDisk(room, stage, number), threads=1)
    assert "\n" not in refusal.value.sentence
    files = content(wanted.folder)
    assert len(files) == min(room, 6), "what was there before stays, and no temporary file is left"
    for name, data in files.items():
        if name.endswith(".png"):
            assert data == undisturbed[name]
        else:
            assert json.loads(data)["state"] == "unfinished"
    export(wanted)
    assert content(wanted.folder) == undisturbed


def test_a_frame_that_is_deleted_meanwhile_is_reported_and_made_again(
    wanted: SequenceSettings, undisturbed: Folder
) -> None:
    class LossyDisk(Disk):
        def move(self, source: Path, target: Path, *, flushed: bool = True) -> None:
            super().move(source, target, flushed=flushed)
            if target.name == "walk_00001.png":
                target.unlink()

    with pytest.raises(ExportError, match=r"^walk_00001\.png in .* was deleted while the others were written"):
        export(wanted, disk=LossyDisk(), threads=1)
    assert read_manifest(wanted.manifest_path).state == "unfinished"
    assert len(export(wanted).requests) == 1
    assert content(wanted.folder) == undisturbed


def test_a_failure_ends_the_job_and_later_frames_are_dropped(wanted: SequenceSettings) -> None:
    job = started(wanted, disk=FullDisk(1), threads=1)
    requests = [requested(job) for _ in range(3)]
    for request in requests:
        job.deliver(fake_frame(request))
    assert job.join(30)
    with pytest.raises(ExportError, match="disk is full"):
        job.wait()
    assert job.has_ended
    assert not job.is_ready
    job.deliver(fake_frame(requests[0]))
    assert json.loads((wanted.folder / "walk.manifest.json").read_text())["state"] == "unfinished"


def test_a_frame_that_was_not_requested_is_refused(wanted: SequenceSettings) -> None:
    job = started(wanted)
    request = requested(job)
    with pytest.raises(ExportError, match="did not request"):
        job.deliver(fake_frame(replace(request, noise=Noise("none"))))
    with pytest.raises(ExportError, match="did not request"):
        job.deliver(replace(fake_frame(request), is_draft=True))
    job.deliver(fake_frame(request))
    job.stop(cancelled=True)
    assert job.join(30)
    assert job.done == 1


def test_progress_counts_what_was_found_and_what_is_written(wanted: SequenceSettings) -> None:
    export(wanted, stop_after=2)
    job = SequenceJob(wanted)
    assert (job.total, job.done, job.found) == (5, 0, 0)
    job.start()
    request = requested(job)
    assert (job.done, job.found) == (2, 2)
    job.deliver(fake_frame(request))
    assert job.delivered == 3
    job.stop(cancelled=True)
    assert job.join(30)
    assert (job.done, job.found) == (3, 2)


@pytest.mark.parametrize(("fps", "kept"), [(1, 2), (2, 0)])
def test_of_a_stopped_video_only_whole_segments_are_kept(wanted: SequenceSettings, fps: int, kept: int) -> None:
    pytest.importorskip("av")
    job = SequenceJob(replace(wanted, video=VideoFormat("h264", ".mp4", Fraction(fps))))
    job.start()
    for _ in range(3):
        job.deliver(fake_frame(requested(job)))
    job.stop(cancelled=True)
    assert job.join(30)
    assert (job.delivered, job.kept, job.done) == (3, kept, kept)


def test_a_job_that_was_stopped_for_later_leaves_its_manifest_unfinished(wanted: SequenceSettings) -> None:
    job = started(wanted)
    job.deliver(fake_frame(requested(job)))
    job.stop(cancelled=False)
    assert job.join(30)
    assert not job.has_ended
    assert read_manifest(wanted.manifest_path).state == "unfinished"


def test_a_job_for_the_same_files_begins_when_the_one_that_was_stopped_has_let_go_of_them(
    wanted: SequenceSettings, undisturbed: Folder
) -> None:
    gate = threading.Event()

    class SlowDisk(Disk):
        def write(self, path: Path, data: bytes, *, flushed: bool = True) -> None:
            if path.suffix == ".part" and ".png." in path.name:
                assert gate.wait(30)
            super().write(path, data, flushed=flushed)

    first = started(wanted, disk=SlowDisk())
    first.deliver(fake_frame(requested(first)))
    first.stop(cancelled=True)
    second = started(wanted, after=first)
    assert not second.is_ready
    gate.set()
    while second.wait():
        second.deliver(fake_frame(requested(second)))
    assert second.join(30)
    assert second.found == 1
    assert content(wanted.folder) == undisturbed


def test_nothing_waits_for_a_disk_but_the_jobs_own_threads(wanted: SequenceSettings) -> None:
    """A disk that never answers holds up neither who renders nor who stops the job."""
    gate = threading.Event()

    class StuckDisk(Disk):
        def write(self, path: Path, data: bytes, *, flushed: bool = True) -> None:
            assert gate.wait(30)
            super().write(path, data, flushed=flushed)

    job = started(wanted, disk=StuckDisk())
    assert not job.is_ready
    assert job.next_request() is None
    job.stop(cancelled=True)
    assert not job.join(0.0)
    gate.set()
    assert job.join(30)


def test_a_full_sink_asks_for_no_more_frames(wanted: SequenceSettings) -> None:
    gate = threading.Event()

    class StuckDisk(Disk):
        def write(self, path: Path, data: bytes, *, flushed: bool = True) -> None:
            if ".png." in path.name:
                assert gate.wait(30)
            super().write(path, data, flushed=flushed)

    job = started(replace(wanted, frames_per_step=20), disk=StuckDisk(), threads=1)
    for _ in range(3):  # one is written, two wait
        job.deliver(fake_frame(requested(job)))
    assert not job.is_ready
    assert job.next_request() is None
    gate.set()
    job.deliver(fake_frame(requested(job)))
    job.stop(cancelled=False)
    assert job.join(30)


def test_a_float_format_asks_for_floats(wanted: SequenceSettings) -> None:
    assert plan_sequence(replace(wanted, form=PictureFormat("exr"))).request(0).wants_image
    assert not plan_sequence(wanted).request(0).wants_image


def test_equal_frames_of_one_sequence_are_all_written(wanted: SequenceSettings) -> None:
    settings = replace(wanted, keys=(key(1), key(1)), kind="w-linear", frames_per_step=3)
    export(settings)
    assert len(content(settings.folder)) == 5


def test_no_thread_is_left_when_a_job_is_over(threads_before: set[threading.Thread], wanted: SequenceSettings) -> None:
    export(wanted, stop_after=1)
    assert set(threading.enumerate()) <= threads_before

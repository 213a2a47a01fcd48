import contextlib
import errno
import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.formats.picture_format import PictureFormat
from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.manifest import manifest_bytes, read_manifest
from explorer_app.exporting.picture import read_picture
from explorer_app.exporting.sequence import SequenceSettings, plan_sequence
from explorer_app.exporting.sinks.frame_sink import FramePlan
from explorer_app.exporting.sinks.picture_folder import PictureFolder
from explorer_app.exporting.video.video_format import VideoFormat
from explorer_app.session.session import ModelReference
from gpu_backend import Disk, Latent, Noise, Point, Recipe, RenderRequest, Transform, Truncation
from gpu_backend.whole_file import part_name
from tests.helpers.failing_disk import FullDisk, MortalDisk, PowerCutError, dead_part
from tests.helpers.fake_engine import FakeEngine, fake_frame

Folder = dict[str, bytes]

RANDOM = Noise("random", 3)


def key(seed: int, noise: Noise = RANDOM, transform: tuple[float, ...] | None = None) -> Keyframe:
    return Keyframe(((Recipe(Latent(Point(((seed, 1.0),))), Truncation(0.7)), 1.0),), noise, transform)


@pytest.fixture
def wanted(tmp_path: Path) -> SequenceSettings:
    return SequenceSettings(
        keys=(key(1), key(2), key(3)),
        folder=tmp_path / "out",
        name="walk",
        model=ModelReference("/models/m.pkl", "m", "ab" * 32),
        kind="w-cubic",
        frames_per_step=2,
    )


def export(
    settings: SequenceSettings, *, disk: Disk | None = None, threads: int = 2, stop_after: int = -1
) -> FakeEngine:
    """Drive a job to its end as whoever renders does; cancel after some frames if told so."""
    engine = FakeEngine()
    job = started(settings, disk=disk, threads=threads)
    while len(engine.requests) != stop_after and job.wait():
        job.deliver(engine.render(requested(job)))
    if len(engine.requests) == stop_after:
        job.stop(cancelled=True)
    assert job.join(30)
    if job.error is not None:
        raise job.error
    return engine


def started(settings: SequenceSettings, **options: Any) -> SequenceJob:
    job = SequenceJob(settings, **options)
    job.start()
    return job


def requested(job: SequenceJob) -> RenderRequest:
    """Wait for the next request of a job that has one."""
    assert job.wait()
    request = job.next_request()
    assert request is not None
    return request


def refuse(settings: SequenceSettings, words: str) -> None:
    """Expect a job to end before its first frame, with a sentence."""
    job = started(settings)
    with pytest.raises(ExportError, match=words):
        job.wait()
    assert job.join(30)


def content(folder: Path) -> Folder:
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


@pytest.fixture
def undisturbed(wanted: SequenceSettings, tmp_path: Path) -> Folder:
    export(replace(wanted, folder=tmp_path / "undisturbed"))
    return content(tmp_path / "undisturbed")


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


@pytest.mark.parametrize("operation", range(16))
def test_a_run_killed_at_any_operation_is_finished_by_the_next_with_the_same_bytes(
    wanted: SequenceSettings, undisturbed: Folder, operation: int
) -> None:
    disk = MortalDisk(operation)
    try:
        export(wanted, disk=disk, threads=1)
    except PowerCutError:
        assert disk.died
    else:
        assert not disk.died
        assert operation >= 14, "two manifests and five frames take a write and a move each"
    for name, data in content(wanted.folder).items():
        if name.endswith(".png"):
            assert data == undisturbed[name], "a file under its real name is whole"
    export(wanted)
    assert content(wanted.folder) == undisturbed


def test_killed_again_and_again_it_still_ends_the_same(wanted: SequenceSettings, undisturbed: Folder) -> None:
    for times in range(40):  # each life is a little longer: removing what the one before left takes a part of it
        try:
            export(wanted, disk=MortalDisk(4 + times // 4), threads=1)
        except PowerCutError:
            continue
        break
    assert content(wanted.folder) == undisturbed


def test_existing_frames_are_not_rendered_again(wanted: SequenceSettings) -> None:
    export(wanted, stop_after=2)
    assert len(export(wanted).requests) == 3
    assert export(wanted).requests == []


def test_a_finished_sequence_is_left_untouched(wanted: SequenceSettings) -> None:
    export(wanted)
    before = {path: path.stat().st_mtime_ns for path in wanted.folder.iterdir()}
    export(wanted)
    assert {path: path.stat().st_mtime_ns for path in wanted.folder.iterdir()} == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: data + b"\0",
        lambda data: b"",
        lambda data: data.replace(b"latentloom", b"latentgloom"),
        lambda data: data[: len(data) // 2] + bytes(len(data) - len(data) // 2),
    ],
    ids=["cut by a byte", "cut in half", "longer", "empty", "another keyword", "zeros at the end"],
)
def test_a_damaged_frame_is_recreated(
    wanted: SequenceSettings, undisturbed: Folder, damage: Callable[[bytes], bytes]
) -> None:
    export(wanted)
    path = wanted.folder / "walk_00002.png"
    path.write_bytes(damage(path.read_bytes()))
    assert len(export(wanted).requests) == 1
    assert content(wanted.folder) == undisturbed


def test_a_frame_that_belongs_elsewhere_in_the_sequence_is_recreated(
    wanted: SequenceSettings, undisturbed: Folder
) -> None:
    export(wanted)
    (wanted.folder / "walk_00002.png").write_bytes(undisturbed["walk_00003.png"])
    export(wanted)
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


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "w-linear"},
        {"frames_per_step": 3},
        {"loop": True},
        {"keys": (key(1), key(2), key(3, Noise("const")))},
        {"keys": (key(1), key(2), key(3, transform=Transform(degrees=5.0).matrix))},
        {"keys": (key(1), key(2), key(4))},
        {"model": ModelReference("/models/m.pkl", "m", "cd" * 32)},
    ],
)
def test_a_different_sequence_of_that_name_is_refused_and_kept(
    wanted: SequenceSettings, undisturbed: Folder, change: dict[str, Any]
) -> None:
    export(wanted)
    refuse(replace(wanted, **change), r"^The folder .* holds a different sequence named walk; .*\.$")
    assert content(wanted.folder) == undisturbed


def test_a_foreign_manifest_is_refused(wanted: SequenceSettings) -> None:
    wanted.folder.mkdir()
    for text, what in (
        ("", "should be a manifest of a sequence, but is not JSON"),
        ("{}", "says that it is something else"),
        ("[" * 100_000, "is not JSON"),
        ('{"format": "latent-loom-sequence", "version": 1}', "is damaged"),
        ('{"format": "latent-loom-sequence", "version": 9}', "another version"),
    ):
        (wanted.folder / "walk.manifest.json").write_text(text)
        refuse(wanted, rf"^The folder .* holds another file in this place: .*{what}.*; choose another name or folder")
        assert (wanted.folder / "walk.manifest.json").read_text() == text


def test_a_pipe_or_a_folder_in_the_manifests_place_is_called_what_it_is(wanted: SequenceSettings) -> None:
    (wanted.folder / "walk.manifest.json").mkdir(parents=True)
    refuse(wanted, r"walk\.manifest\.json should be a manifest of a sequence, but is a folder, a pipe or a device")


def test_a_foreign_file_with_the_name_of_a_frame_is_refused_and_kept(wanted: SequenceSettings) -> None:
    wanted.folder.mkdir()
    (wanted.folder / "walk_00004.png").write_bytes(b"a photograph")
    (wanted.folder / "walk_00009.png").write_bytes(b"not in the way")
    refuse(wanted, r"holds a walk_00004\.png that is not part of this sequence; .*\.$")
    assert (wanted.folder / "walk_00004.png").read_bytes() == b"a photograph"


def test_frames_whose_manifest_was_lost_are_used(wanted: SequenceSettings, undisturbed: Folder) -> None:
    export(wanted)
    (wanted.folder / "walk.manifest.json").unlink()
    assert export(wanted).requests == []
    assert content(wanted.folder) == undisturbed


def test_replacing_takes_the_surplus_of_a_longer_sequence_away(wanted: SequenceSettings, undisturbed: Folder) -> None:
    export(replace(wanted, frames_per_step=5, kind="w-linear"))
    (wanted.folder / "walk_00077.png").write_bytes(b"not of that sequence")
    export(replace(wanted, overwrite=True))
    assert content(wanted.folder) == {**undisturbed, "walk_00077.png": b"not of that sequence"}


@pytest.mark.parametrize("operation", range(0, 24, 2))
def test_a_replacement_killed_at_any_operation_is_finished_by_the_next(
    wanted: SequenceSettings, undisturbed: Folder, operation: int
) -> None:
    export(replace(wanted, frames_per_step=5, kind="w-linear"))
    with contextlib.suppress(PowerCutError):
        export(replace(wanted, overwrite=True), disk=MortalDisk(operation), threads=1)
    export(replace(wanted, overwrite=True))
    assert content(wanted.folder) == undisturbed


def test_only_the_leftovers_of_dead_programs_are_cleared_away(wanted: SequenceSettings, undisturbed: Folder) -> None:
    wanted.folder.mkdir()
    for name in ("walk_00001.png", "walk.manifest.json"):
        (wanted.folder / dead_part(name)).write_bytes(b"half")
    foreign = {".walk_00001.png.part": b"x", part_name("walk_00002.png", os.getppid()): b"x"}
    for name, data in foreign.items():
        (wanted.folder / name).write_bytes(data)
    export(wanted)
    assert content(wanted.folder) == undisturbed | foreign


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


def test_a_manifest_is_all_that_it_takes_to_go_on_anywhere(
    wanted: SequenceSettings, undisturbed: Folder, tmp_path: Path
) -> None:
    export(wanted, stop_after=2)
    moved = wanted.folder.rename(tmp_path / "elsewhere")
    manifest = read_manifest(moved / "walk.manifest.json")
    assert (manifest.state, manifest.frames_written) == ("cancelled", 2)
    assert len(export(manifest.settings).requests) == 3
    assert content(moved) == undisturbed


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


def test_a_sequence_of_version_1_goes_on(wanted: SequenceSettings, undisturbed: Folder) -> None:
    export(wanted, stop_after=2)
    recipes = [json.loads(manifest_bytes(wanted, "complete", 5))["keys"][k]["blend"] for k in range(3)]
    old = {
        "format": "latent-loom-sequence",
        "version": 1,
        "made_by": "Latent Loom 0.1.0",
        "state": "unfinished",
        "frames_written": None,
        "frames_total": 5,
        "model": {"name": "m", "path": "/models/m.pkl"},
        "plan": {
            "name": "walk",
            "sha256": "ab" * 32,
            "path": "w-cubic",
            "frames_per_step": 2,
            "loop": False,
            "z_dim": 512,
            "resolution": None,
            "noise": {"mode": "random", "seed": 3, "gain": 1.0, "layer_gains": []},
            "keys": recipes,
        },
        "recipes": [],
        "frames": [{"file": "walk_00000.png", "blend": [[0, 1.0]]}],
    }
    (wanted.folder / "walk.manifest.json").write_text(json.dumps(old))
    assert read_manifest(wanted.manifest_path).settings.makes_the_same_as(wanted)
    assert len(export(wanted).requests) == 3
    assert content(wanted.folder) == undisturbed


def test_a_job_that_is_stopped_while_it_looks_through_a_folder_changes_nothing_there(
    wanted: SequenceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(wanted)
    before = content(wanted.folder)
    looked = threading.Event()
    stored = PictureFolder.is_stored

    def slow(sink: PictureFolder, index: int, plan: FramePlan) -> bool:
        looked.set()
        threading.Event().wait(0.005)
        return stored(sink, index, plan)

    monkeypatch.setattr(PictureFolder, "is_stored", slow)
    job = started(wanted)
    assert looked.wait(30)
    job.stop(cancelled=True)
    assert job.join(30)
    assert job.error is None
    assert content(wanted.folder) == before


FORMS = [PictureFormat("jpeg"), PictureFormat("webp", 100), PictureFormat("tiff"), PictureFormat("png", None, "small")]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_sequence_of_any_format_goes_on_where_it_was_stopped_and_ends_with_the_same_bytes(
    wanted: SequenceSettings, tmp_path: Path, form: PictureFormat
) -> None:
    settings = replace(wanted, form=form)
    export(replace(settings, folder=tmp_path / "whole"))
    export(settings, stop_after=2)
    assert read_manifest(settings.manifest_path).settings.form.name == form.name
    assert len(export(settings).requests) == 3
    assert content(settings.folder) == content(tmp_path / "whole")
    assert sum(name.endswith(form.ending) for name in content(settings.folder)) == 5


def test_a_sequence_that_takes_the_place_of_another_leaves_none_of_its_files(wanted: SequenceSettings) -> None:
    export(wanted)
    export(replace(wanted, form=PictureFormat("jpeg", 80), overwrite=True))
    assert sorted(content(wanted.folder)) == ["walk.manifest.json", *(f"walk_{index:05d}.jpg" for index in range(5))]


@pytest.mark.parametrize(
    "change", [{"form": PictureFormat("jpeg", 40)}, {"form": PictureFormat("jpeg"), "size": (6, 6)}]
)
def test_frames_of_another_quality_or_size_are_written_again(wanted: SequenceSettings, change: dict[str, Any]) -> None:
    first = replace(wanted, form=PictureFormat("jpeg", 95))
    export(first)
    second = replace(first, **change)
    refuse(second, "a different sequence")
    assert len(export(replace(second, overwrite=True)).requests) == 5
    first.manifest_path.unlink()
    second.manifest_path.unlink(missing_ok=True)
    refuse(first, r"holds a walk_00000\.jpg that is not part of this sequence")


def test_how_well_files_are_compressed_does_not_make_another_sequence(wanted: SequenceSettings) -> None:
    export(wanted, stop_after=2)
    assert len(export(replace(wanted, form=PictureFormat("png", None, "small"))).requests) == 3


def test_a_float_format_asks_for_floats(wanted: SequenceSettings) -> None:
    assert plan_sequence(replace(wanted, form=PictureFormat("exr"))).request(0).wants_image
    assert not plan_sequence(wanted).request(0).wants_image


def test_a_manifest_without_formats_goes_on_as_png(wanted: SequenceSettings, undisturbed: Folder) -> None:
    export(wanted, stop_after=2)
    old = json.loads(wanted.manifest_path.read_text())
    del old["files"]
    wanted.manifest_path.write_text(json.dumps({**old, "version": 2}))
    assert read_manifest(wanted.manifest_path).settings == replace(
        wanted, model=ModelReference("", "m", wanted.model.model_id)
    )
    assert len(export(wanted).requests) == 3
    assert content(wanted.folder) == undisturbed


def test_equal_frames_of_one_sequence_are_all_written(wanted: SequenceSettings) -> None:
    settings = replace(wanted, keys=(key(1), key(1)), kind="w-linear", frames_per_step=3)
    export(settings)
    assert len(content(settings.folder)) == 5


def test_no_thread_is_left_when_a_job_is_over(threads_before: set[threading.Thread], wanted: SequenceSettings) -> None:
    export(wanted, stop_after=1)
    assert set(threading.enumerate()) <= threads_before

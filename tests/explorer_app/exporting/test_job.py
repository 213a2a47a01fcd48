import contextlib
import errno
import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.picture import read_picture
from explorer_app.exporting.sequence import SequenceSettings, plan_sequence
from explorer_app.session.session import ModelReference
from gpu_backend import Disk, Latent, Noise, Point, Recipe, RenderRequest, Transform, Truncation
from gpu_backend.whole_file import part_name
from tests.helpers.failing_disk import FullDisk, MortalDisk, PowerCutError, dead_part
from tests.helpers.fake_engine import FakeEngine, fake_frame

Folder = dict[str, bytes]


def key(seed: int) -> tuple[tuple[Recipe, float], ...]:
    return ((Recipe(Latent(Point(((seed, 1.0),))), Truncation(0.7)), 1.0),)


@pytest.fixture
def wanted(tmp_path: Path) -> SequenceSettings:
    return SequenceSettings(
        keys=(key(1), key(2), key(3)),
        folder=tmp_path / "out",
        name="walk",
        model=ModelReference("/models/m.pkl", "m", "ab" * 32),
        kind="w-cubic",
        frames_per_step=2,
        noise=Noise("random", 3),
    )


def export(
    settings: SequenceSettings, *, disk: Disk | None = None, threads: int = 2, stop_after: int = -1
) -> FakeEngine:
    """Drive a job to its end as whoever renders does; cancel after some frames if told so."""
    engine = FakeEngine()
    job = SequenceJob(settings, disk=disk, threads=threads)
    cancelled = False
    try:
        while not cancelled and (request := job.next_request()) is not None:
            job.deliver(engine.render(request))
            cancelled = len(engine.requests) == stop_after
    except BaseException:
        job.close(cancelled=True)
        raise
    job.close(cancelled)
    return engine


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
    sequence = plan_sequence(wanted)
    for index in range(5):
        assert read_picture(sequence.path(index)).request == sequence.request(index)
        assert read_picture(sequence.path(index)).model_name == "m"


def test_the_manifest_says_what_every_frame_is(wanted: SequenceSettings) -> None:
    export(wanted)
    manifest = json.loads((wanted.folder / "walk.manifest.json").read_text())
    assert manifest["format"] == "latent-loom-sequence"
    assert (manifest["state"], manifest["frames_written"], manifest["frames_total"]) == ("complete", 5, 5)
    assert manifest["model"] == {"name": "m", "path": "/models/m.pkl"}
    assert manifest["plan"]["sha256"] == "ab" * 32
    assert manifest["plan"]["path"] == "w-cubic"
    assert manifest["plan"]["noise"]["seed"] == 3
    for index, frame in enumerate(manifest["frames"]):
        assert frame["file"] == f"walk_{index:05d}.png"
        request = read_picture(wanted.folder / frame["file"]).request
        seeds = [manifest["recipes"][place]["latent"]["seeds"][0][0] for place, _ in frame["blend"]]
        assert seeds == [recipe.latent.point.seeds[0][0] for recipe, _ in request.blend]
        assert [weight for _, weight in frame["blend"]] == [weight for _, weight in request.blend]


def test_the_plan_lies_there_before_the_first_frame(wanted: SequenceSettings) -> None:
    job = SequenceJob(wanted)
    assert job.next_request() is not None
    files = content(wanted.folder)
    assert list(files) == ["walk.manifest.json"]
    manifest = json.loads(files["walk.manifest.json"])
    assert manifest["state"] == "unfinished"
    assert len(manifest["frames"]) == 5
    job.close(cancelled=True)


def test_making_a_job_touches_no_file(wanted: SequenceSettings) -> None:
    SequenceJob(wanted).close(cancelled=True)
    assert not wanted.folder.exists()


@pytest.mark.parametrize("threads", [1, 4])
def test_two_runs_give_the_same_bytes(wanted: SequenceSettings, undisturbed: Folder, threads: int) -> None:
    export(wanted, threads=threads)
    assert content(wanted.folder) == undisturbed


def test_frames_may_come_in_any_order(wanted: SequenceSettings, undisturbed: Folder) -> None:
    job = SequenceJob(wanted)
    requests: list[RenderRequest] = []
    while (request := job.next_request()) is not None:
        requests.append(request)
    for request in reversed(requests):
        job.deliver(fake_frame(request))
    job.close(cancelled=False)
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
    for _ in range(40):
        try:
            export(wanted, disk=MortalDisk(4), threads=1)
        except PowerCutError:
            continue
        break
    assert content(wanted.folder) == undisturbed


def test_what_is_there_is_not_rendered_again(wanted: SequenceSettings) -> None:
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
def test_a_damaged_frame_is_made_anew(
    wanted: SequenceSettings, undisturbed: Folder, damage: Callable[[bytes], bytes]
) -> None:
    export(wanted)
    path = wanted.folder / "walk_00002.png"
    path.write_bytes(damage(path.read_bytes()))
    assert len(export(wanted).requests) == 1
    assert content(wanted.folder) == undisturbed


def test_a_frame_that_belongs_elsewhere_in_the_sequence_is_made_anew(
    wanted: SequenceSettings, undisturbed: Folder
) -> None:
    export(wanted)
    (wanted.folder / "walk_00002.png").write_bytes(undisturbed["walk_00003.png"])
    export(wanted)
    assert content(wanted.folder) == undisturbed


def test_cancelling_leaves_whole_files_and_a_manifest_that_says_so(
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
    job = SequenceJob(wanted)
    request = job.next_request()
    assert request is not None
    job.close(cancelled=True)
    job.deliver(fake_frame(request))
    job.close(cancelled=True)
    assert job.next_request() is None
    assert list(content(wanted.folder)) == ["walk.manifest.json"]


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "w-linear"},
        {"frames_per_step": 3},
        {"loop": True},
        {"noise": Noise("const")},
        {"transform": Transform(degrees=5.0).matrix},
        {"keys": (key(1), key(2), key(4))},
        {"model": ModelReference("/models/m.pkl", "m", "cd" * 32)},
    ],
)
def test_a_different_sequence_of_that_name_is_refused_and_kept(
    wanted: SequenceSettings, undisturbed: Folder, change: dict[str, object]
) -> None:
    export(wanted)
    with pytest.raises(ExportError, match=r"^The folder .* holds a different sequence named walk; .*\.$"):
        SequenceJob(replace(wanted, **change)).next_request()
    assert content(wanted.folder) == undisturbed


def test_a_foreign_manifest_is_refused(wanted: SequenceSettings) -> None:
    wanted.folder.mkdir()
    for text in ("", "{}", "[" * 100_000, '{"format": "latent-loom-sequence", "version": 1}'):
        (wanted.folder / "walk.manifest.json").write_text(text)
        with pytest.raises(ExportError, match="different sequence"):
            SequenceJob(wanted).next_request()
        assert (wanted.folder / "walk.manifest.json").read_text() == text


def test_somebody_elses_file_under_a_frames_name_is_refused_and_kept(wanted: SequenceSettings) -> None:
    wanted.folder.mkdir()
    (wanted.folder / "walk_00004.png").write_bytes(b"a photograph")
    (wanted.folder / "walk_00009.png").write_bytes(b"not in the way")
    with pytest.raises(ExportError, match=r"holds a walk_00004\.png that is not part of this sequence; .*\.$"):
        SequenceJob(wanted).next_request()
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


def test_a_failure_reaches_a_later_delivery(wanted: SequenceSettings) -> None:
    job = SequenceJob(wanted, disk=FullDisk(1), threads=1)

    def deliver_all() -> None:
        while (request := job.next_request()) is not None:
            job.deliver(fake_frame(request))

    with pytest.raises(ExportError, match="disk is full"):
        deliver_all()
    job.close(cancelled=True)
    assert json.loads((wanted.folder / "walk.manifest.json").read_text())["state"] == "unfinished"


def test_a_failure_that_nobody_was_told_of_comes_with_closing(wanted: SequenceSettings) -> None:
    job = SequenceJob(wanted, disk=FullDisk(1), threads=1)
    request = job.next_request()
    assert request is not None
    job.deliver(fake_frame(request))
    with pytest.raises(ExportError, match="disk is full"):
        job.close(cancelled=False)
    job.close(cancelled=False)


def test_a_frame_that_was_not_asked_for_is_refused(wanted: SequenceSettings) -> None:
    job = SequenceJob(wanted)
    request = job.next_request()
    assert request is not None
    with pytest.raises(ExportError, match="not asked for"):
        job.deliver(fake_frame(replace(request, noise=Noise("none"))))
    with pytest.raises(ExportError, match="not asked for"):
        job.deliver(replace(fake_frame(request), is_draft=True))
    job.deliver(fake_frame(request))
    job.close(cancelled=True)
    assert job.done == 1


def test_progress_counts_what_was_found_and_what_is_written(wanted: SequenceSettings) -> None:
    export(wanted, stop_after=2)
    job = SequenceJob(wanted)
    assert (job.total, job.done, job.found) == (5, 0, 0)
    request = job.next_request()
    assert request is not None
    assert (job.done, job.found) == (2, 2)
    job.deliver(fake_frame(request))
    job.close(cancelled=True)
    assert (job.done, job.found) == (3, 2)


def test_equal_frames_of_one_sequence_are_all_written(wanted: SequenceSettings) -> None:
    settings = replace(wanted, keys=(key(1), key(1)), kind="w-linear", frames_per_step=3)
    export(settings)
    assert len(content(settings.folder)) == 5


def test_no_writer_is_left_when_a_job_is_closed(wanted: SequenceSettings) -> None:
    export(wanted, stop_after=1)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("export-writer")]

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.manifest import read_manifest
from explorer_app.exporting.picture import read_picture
from explorer_app.exporting.sequence import SequenceSettings, plan_sequence
from explorer_app.exporting.sheet import SheetLayout
from explorer_app.exporting.video.video_format import VideoFormat
from explorer_app.farm import foreman
from explorer_app.farm.errors import FarmError
from explorer_app.farm.farm_model import FarmModel, farm_model_of
from gpu_backend import (
    Base,
    CancelledError,
    Frame,
    LoomError,
    ModelFacts,
    RenderRequest,
    read_model,
    write_tuned,
)
from tests.helpers.fake_engine import fake_frame
from tests.helpers.farm import PATIENCE_S, FakeFarm, exported, farm_settings, files_of, running, small_model, station

FRAMES = 60


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModelFacts, FarmModel]:
    return small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def settings(tmp_path: Path, model: tuple[ModelFacts, FarmModel]) -> SequenceSettings:
    return farm_settings(tmp_path / "out", model[0], frames=FRAMES)


@pytest.fixture
def farm() -> Iterator[FakeFarm]:
    made = FakeFarm()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the farm more often than in earnest."""
    monkeypatch.setattr(foreman, "_EXCHANGE_S", 0.02)
    monkeypatch.setattr(foreman, "_LOOK_S", 0.02)
    monkeypatch.setattr("explorer_app.farm.job._RETRY_S", 0.02)
    monkeypatch.setattr("explorer_app.farm.model_delivery._GATHERING_S", 0.02)


Paint = Callable[[RenderRequest], Frame]


def sharing(*paints: Paint) -> list[Paint]:
    """Return a painter for each worker. None paints before each of them has got a chunk, so that all make frames."""
    all_there = threading.Barrier(len(paints), timeout=PATIENCE_S)

    def painter(paint: Paint) -> Paint:
        first = threading.Lock()

        def meet_then_paint(request: RenderRequest) -> Frame:
            if first.acquire(blocking=False):
                all_there.wait()
            return paint(request)

        return meet_then_paint

    return [painter(paint) for paint in paints]


def check_whole(settings: SequenceSettings, folder: Path, facts: ModelFacts) -> None:
    """Every frame is there, as one process would have written it, and nothing else."""
    assert files_of(settings) == exported(farm_settings(folder, facts, frames=FRAMES))
    manifest = read_manifest(settings.manifest_path)
    assert (manifest.state, manifest.frames_written) == ("complete", settings.frame_count)
    assert sorted(frame for made in manifest.made_on for frame in made.frames) == list(range(settings.frame_count))


def test_two_workers_write_what_one_process_writes(
    farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    for name, painter in zip(("one", "two"), sharing(fake_frame, fake_frame), strict=True):
        farm.add(name, station(tmp_path / name, painter))
    job = farm.job(settings, model[1])
    with running(job):
        assert job.wait(PATIENCE_S)
    check_whole(settings, tmp_path / "alone", model[0])
    assert sum(worker.frames for worker in job.workers) == settings.frame_count
    assert all(worker.frames for worker in job.workers)
    assert job.progress.done == job.progress.total == settings.frame_count


def test_files_come_back_from_a_worker_that_does_not_see_the_folder(
    farm: FakeFarm,
    settings: SequenceSettings,
    model: tuple[ModelFacts, FarmModel],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("explorer_app.farm.station.answered", lambda folder, job, token: "")
    farm.add("far", station(tmp_path / "far"))
    job = farm.job(settings, model[1])
    with running(job):
        assert job.wait(PATIENCE_S)
    check_whole(settings, tmp_path / "alone", model[0])


def test_an_animation_is_joined_from_segments_of_two_workers(
    farm: FakeFarm, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    settings = farm_settings(tmp_path / "out", model[0], frames=12, video=VideoFormat("gif"))
    for name in ("one", "two"):
        farm.add(name, station(tmp_path / name))
    job = farm.job(settings, model[1])
    with running(job):
        assert job.wait(PATIENCE_S)
    alone = farm_settings(tmp_path / "alone", model[0], frames=12, video=VideoFormat("gif"))
    assert files_of(settings) == exported(alone)
    assert not [path for path in settings.folder.iterdir() if path.is_dir()]


def test_the_model_is_brought_once_to_workers_that_share_a_store(
    farm: FakeFarm,
    settings: SequenceSettings,
    model: tuple[ModelFacts, FarmModel],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "explorer_app.farm.model_store.ModelStore.candidates",
        lambda self, model_id, name, hint: [path for path in [self._path(model_id, ".safetensors")] if path.is_file()],
    )
    for name, store in (("one", "here"), ("two", "here"), ("three", "there")):
        farm.add(name, station(tmp_path / store))
    job = farm.job(settings, model[1])
    with running(job):
        assert job.wait(PATIENCE_S)
    check_whole(settings, tmp_path / "alone", model[0])
    assert sum(map(len, farm.brought)) == 2


def test_a_tuned_model_comes_with_the_model_that_it_changes(
    farm: FakeFarm, model: tuple[ModelFacts, FarmModel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    facts, _ = small_model(folder)
    elsewhere = Base(Path("/not here") / Path(facts.path).name, facts.model_id, "photo.png")
    change = np.full_like(read_model(facts.path).weights["synthesis.b8.conv0.bias"], 0.5)
    write_tuned({"synthesis.b8.conv0.bias": change}, elsewhere, folder / "tuned.safetensors")
    tuned = read_model(folder / "tuned.safetensors")
    monkeypatch.setattr(
        "explorer_app.farm.model_store.ModelStore.candidates",
        lambda self, model_id, name, hint: [path for path in [self._path(model_id, ".safetensors")] if path.is_file()],
    )
    for name in ("one", "two"):
        farm.add(name, station(tmp_path / name))
    settings = farm_settings(tmp_path / "out", tuned.facts, frames=FRAMES)
    job = farm.job(settings, farm_model_of(tuned))
    with running(job):
        assert job.wait(PATIENCE_S)
    check_whole(settings, tmp_path / "alone", tuned.facts)


class Painter:
    """Paints; calls `hook` with the number of the picture before."""

    def __init__(self, hook: Callable[[int], None]) -> None:
        self._hook = hook
        self.count = 0

    def __call__(self, request: RenderRequest) -> Frame:
        self.count += 1
        self._hook(self.count)
        return fake_frame(request)


def test_the_chunks_of_a_worker_that_dies_are_made_by_another_and_no_frame_twice(
    farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    died = threading.Event()

    def die(count: int) -> None:
        if count == 4:
            farm.killed.add(mortal)
            died.set()

    def paint_after_the_death(count: int) -> None:
        assert died.wait(PATIENCE_S)

    mortal = farm.add("mortal", station(tmp_path / "mortal", Painter(die)))
    farm.add("other", station(tmp_path / "other", Painter(paint_after_the_death)))
    job = farm.job(settings, model[1])
    with running(job):
        assert job.wait(PATIENCE_S)
    check_whole(settings, tmp_path / "alone", model[0])
    assert [worker.failures for worker in job.workers if worker.name == "mortal"] == [1]  # for both of its chunks


def test_a_worker_may_come_while_a_job_waits_for_one(
    farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    job = farm.job(settings, model[1])
    with running(job) as progress:
        progress.until(lambda: "waiting for workers" in job.sentence or bool(farm.statuses))
        farm.add("late", station(tmp_path / "late"))
        assert job.wait(PATIENCE_S)
    check_whole(settings, tmp_path / "alone", model[0])


def test_a_worker_that_fails_three_times_is_set_aside_and_named(
    farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    failed = threading.Event()

    def fail(count: int) -> None:
        failed.set()
        raise LoomError("The device has a fever.")

    def aside() -> bool:
        return any(worker.name == "ill" and worker.state == "set aside" for worker in job.workers)

    farm.add("ill", station(tmp_path / "ill", Painter(fail)))
    farm.add("well", station(tmp_path / "well", Painter(lambda count: _wait_until(aside, failed))))
    job = farm.job(settings, model[1])
    with running(job):
        assert job.wait(PATIENCE_S)
    check_whole(settings, tmp_path / "alone", model[0])
    assert "ill failed 3 times and is set aside: The device has a fever." in job.take_messages()


def _wait_until(is_so: Callable[[], bool], begun: threading.Event) -> None:
    assert begun.wait(PATIENCE_S)
    for _ in range(3000):
        if is_so():
            return
        threading.Event().wait(0.01)
    raise AssertionError


def test_a_job_ends_when_every_worker_failed_too_often(
    farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    def fail(count: int) -> None:
        raise LoomError("The device has a fever.")

    farm.add("ill", station(tmp_path / "ill", Painter(fail)))
    job = farm.job(settings, model[1])
    with running(job), pytest.raises((FarmError, ExportError), match="The device has a fever"):
        job.wait(PATIENCE_S)
    assert read_manifest(settings.manifest_path).state == "unfinished"


def test_a_frame_that_fails_everywhere_ends_the_job_with_its_number(
    farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    bad = exported_requests(settings)[40]

    def painter(request: RenderRequest) -> Frame:
        if request == bad:
            raise LoomError("The picture is cursed.")
        return fake_frame(request)

    for name in ("one", "two", "three", "four"):
        farm.add(name, station(tmp_path / name, painter))
    job = farm.job(settings, model[1])
    with running(job), pytest.raises(ExportError, match=r"Frame 40 failed three times: The picture is cursed\."):
        job.wait(PATIENCE_S)


def exported_requests(settings: SequenceSettings) -> list[RenderRequest]:
    from explorer_app.exporting.sequence import plan_sequence

    plan = plan_sequence(settings)
    return [plan.request(index) for index in range(len(plan))]


def test_a_paused_job_hands_out_nothing_until_it_goes_on(
    farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    farm.add("one", station(tmp_path / "one"))
    job = farm.job(settings, model[1])
    job.pause()
    with running(job) as progress:
        progress.until(lambda: bool(job.workers) and len(farm.statuses) > 3)
        assert job.done == 0
        assert farm.statuses[-1].state == "paused"
        job.resume()
        assert job.wait(PATIENCE_S)
    check_whole(settings, tmp_path / "alone", model[0])


def test_another_program_may_pause_resume_and_rank_a_job(
    farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    farm.orders = [("pause", 0), ("priority", 7)]
    job = farm.job(settings, model[1])
    with running(job) as progress:
        progress.until(lambda: bool(farm.statuses) and farm.statuses[-1].state == "paused")
        farm.add("one", station(tmp_path / "one"))
        farm.orders = [("resume", 0)]
        assert job.wait(PATIENCE_S)
    assert {priority for _, method, priority in farm.calls if method == "render"} == {7}


def test_a_cancelled_job_keeps_its_frames_and_the_same_job_goes_on(
    farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    stopped = threading.Event()

    def leave_the_last_for_later(count: int) -> None:
        if count == FRAMES:
            assert stopped.wait(PATIENCE_S)
            raise CancelledError("Cancelled.")

    farm.add("one", station(tmp_path / "one", Painter(leave_the_last_for_later)))
    job = farm.job(settings, model[1])
    with running(job) as progress:
        progress.until(lambda: job.done > 0)
        job.stop(cancelled=True)
        stopped.set()
        assert job.join(PATIENCE_S)
    assert 0 < job.done < job.total
    manifest = read_manifest(settings.manifest_path)
    assert (manifest.state, manifest.frames_written) == ("cancelled", job.done)
    again = farm.job(settings, model[1])
    with running(again):
        assert again.wait(PATIENCE_S)
    assert again.found == job.done
    check_whole(settings, tmp_path / "alone", model[0])


def test_an_order_to_cancel_ends_a_job(
    farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel]
) -> None:
    farm.orders = [("cancel", 0)]
    job = farm.job(settings, model[1])
    with running(job):
        assert job.join(PATIENCE_S)
    assert job.take_messages() == ["The job was cancelled from elsewhere."]
    assert read_manifest(settings.manifest_path).state == "cancelled"


def test_a_job_goes_on_when_the_scheduler_was_started_again(
    farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    def leave(count: int) -> None:
        if count == 5:
            farm.is_gone = True

    farm.add("one", station(tmp_path / "one", Painter(leave)))
    job = farm.job(settings, model[1])
    with running(job):
        assert job.wait(PATIENCE_S)
    check_whole(settings, tmp_path / "alone", model[0])
    assert farm.connections == 3  # the second attempt came too early
    assert job.take_messages() == ["The farm no longer answers; waiting for it.", "The farm answers again."]


def test_a_job_whose_frames_are_all_stored_does_not_wait_for_a_scheduler_that_is_gone(
    farm: FakeFarm,
    settings: SequenceSettings,
    model: tuple[ModelFacts, FarmModel],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def gone(link: object, foreman: object) -> None:
        farm.is_gone = True
        await farm.exchange(None)

    farm.add("one", station(tmp_path / "one"))
    job = farm.job(settings, model[1])
    monkeypatch.setattr(job, "_check_spots", gone)
    with running(job):
        assert job.wait(PATIENCE_S)
    check_whole(settings, tmp_path / "alone", model[0])
    assert farm.connections == 1
    assert job.take_messages() == []


def test_a_farm_that_does_not_answer_at_first_ends_the_job(
    farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel]
) -> None:
    farm.is_gone = True
    job = farm.job(settings, model[1])
    with running(job), pytest.raises(FarmError, match="No farm answers"):
        job.wait(PATIENCE_S)


def test_a_private_farm_without_workers_ends(
    farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel]
) -> None:
    job = farm.job(settings, model[1], workers_patience_s=0.05)
    with running(job), pytest.raises(FarmError, match="No worker of the farm has started"):
        job.wait(PATIENCE_S)


def test_a_sequence_that_is_whole_needs_no_farm(
    farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel]
) -> None:
    exported(settings)
    before = settings.manifest_path.read_bytes()
    job = farm.job(settings, model[1])
    with running(job):
        assert job.wait(PATIENCE_S)
    assert farm.connections == 0
    assert job.found == job.total
    assert settings.manifest_path.read_bytes() == before


def test_an_export_in_one_process_goes_on_and_keeps_who_made_which_frame(
    farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    farm.add("one", station(tmp_path / "one"))
    job = farm.job(settings, model[1])
    with running(job):
        assert job.wait(PATIENCE_S)
    made_on = read_manifest(settings.manifest_path).made_on
    (settings.folder / "walk_00003.png").unlink()
    exported(settings)
    assert read_manifest(settings.manifest_path).made_on == made_on
    assert SequenceJob(settings).total == settings.frame_count


def test_another_sequence_in_the_folder_is_refused(
    farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel]
) -> None:
    exported(farm_settings(settings.folder, model[0], frames=FRAMES + 3))
    job = farm.job(settings, model[1])
    with running(job), pytest.raises(ExportError, match="different sequence"):
        job.wait(PATIENCE_S)


def shifted(steps: int) -> Callable[[RenderRequest], Frame]:
    """Return a painter whose first byte is off by some steps."""

    def paint(request: RenderRequest) -> Frame:
        frame = fake_frame(request)
        pixels = np.array(frame.pixels)
        pixels[0, 0, 0] = (int(pixels[0, 0, 0]) + steps) % 256 if pixels[0, 0, 0] < 128 else pixels[0, 0, 0] - steps
        return Frame(frame.request, pixels, frame.timings)

    return paint


@pytest.mark.parametrize(("steps", "is_fine"), [(0, True), (1, False)])
def test_a_spot_check_reports_how_much_two_workers_differ(
    farm: FakeFarm,
    settings: SequenceSettings,
    model: tuple[ModelFacts, FarmModel],
    tmp_path: Path,
    steps: int,
    is_fine: bool,
) -> None:
    for name, painter in zip(("one", "two"), sharing(fake_frame, shifted(steps)), strict=True):
        farm.add(name, station(tmp_path / name, painter))
    job = farm.job(settings, model[1], spot_checks=3)
    with running(job):
        assert job.wait(PATIENCE_S)
    check = job.spot_check
    assert check is not None
    assert (len(check.frames), check.steps, check.is_fine) == (3, steps, is_fine)
    assert ("are equal" in check.sentence) == is_fine


def test_a_job_fetches_the_log_of_a_worker_that_renders(
    tmp_path: Path, farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel]
) -> None:
    may_paint, logs, fetched = threading.Event(), dict[str, object](), threading.Event()

    def paint(request: RenderRequest) -> Frame:
        assert may_paint.wait(PATIENCE_S)
        return fake_frame(request)

    def receive(name: str, lines: object) -> None:
        logs[name] = lines
        fetched.set()

    farm.add("one", station(tmp_path / "one", paint))
    job = farm.job(settings, model[1])
    job.request_log("one", lambda lines: receive("before", lines))
    with running(job) as progress:
        progress.until(lambda: any(worker.state == "rendering" for worker in job.workers))
        job.request_log("two", lambda lines: receive("two", lines))
        fetched.clear()
        job.request_log("one", lambda lines: receive("one", lines))
        assert fetched.wait(PATIENCE_S)
        may_paint.set()
        progress.until(lambda: job.is_over)
    assert logs == {"before": None, "two": None, "one": ["one opened the job"]}


def test_single_pictures_are_rendered_under_their_names_and_replace_others(
    tmp_path: Path, farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel]
) -> None:
    names = ("seed0001", "seed0002", "seed0003")
    stills = replace(settings, name="pictures", frames_per_step=1, loop=False, overwrite=True, file_names=names)
    stills.folder.mkdir()
    (stills.folder / "seed0002.png").write_bytes(b"another picture")
    (stills.folder / "pictures_00000.png").write_bytes(b"not in the way")
    farm.add("one", station(tmp_path / "one"))
    job = farm.job(stills, model[1])
    with running(job) as progress:
        progress.until(lambda: job.is_over)
    plan = plan_sequence(stills)
    for index, name in enumerate(names):
        assert read_picture(stills.folder / f"{name}.png").request == plan.request(index)
    assert (stills.folder / "pictures_00000.png").read_bytes() == b"not in the way"
    manifest = read_manifest(stills.manifest_path)
    assert (manifest.settings.file_names, manifest.state) == (names, "complete")
    again = farm.job(stills, model[1])
    with running(again) as progress:
        progress.until(lambda: again.is_over)
    assert again.found == 3, "pictures that are there are not rendered again"


@pytest.mark.parametrize("names", [("a", "a", "b"), ("a", "b"), ("a", "b/c", "d")])
def test_pictures_without_names_of_their_own_are_refused(settings: SequenceSettings, names: tuple[str, ...]) -> None:
    with pytest.raises(ExportError):
        plan_sequence(replace(settings, frames_per_step=1, loop=False, file_names=names))


def test_a_sheet_of_a_farm_has_the_bytes_of_one_process(
    tmp_path: Path, farm: FakeFarm, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel]
) -> None:
    sheet = replace(settings, frames_per_step=3, sheet=SheetLayout(4))
    for name in ("one", "two"):
        farm.add(name, station(tmp_path / name))
    job = farm.job(sheet, model[1])
    with running(job) as progress:
        progress.until(lambda: job.is_over)
    assert files_of(sheet) == exported(replace(sheet, folder=tmp_path / "whole"))
    assert list(files_of(sheet)) == ["walk.png"]

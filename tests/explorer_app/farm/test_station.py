import errno
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from explorer_app.exporting.manifest import manifest_bytes
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.exporting.video.video_format import VideoFormat
from explorer_app.farm.errors import FarmError
from explorer_app.farm.farm_model import FarmModel, farm_model
from explorer_app.farm.folder_probe import probe_path
from explorer_app.farm.station import Station
from explorer_app.farm.work import Chunk, ChunkReport, JobRecipe
from gpu_backend import Disk, Frame, LoomError, ModelFacts, RenderRequest, read_model, write_safetensors
from tests.helpers.fake_engine import fake_frame
from tests.helpers.farm import exported, farm_settings, files_of, small_model, station
from tests.helpers.networks import make_stylegan2

JOB = "ab" * 12


def recipe(settings: SequenceSettings, model: FarmModel, path: Path | None = None) -> JobRecipe:
    return JobRecipe(
        job=JOB,
        manifest=manifest_bytes(settings, "unfinished", None),
        name=settings.name,
        folder=str(settings.folder),
        model_id=model.model_id,
        model_name=model.name,
        model_path=str(path or model.path),
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModelFacts, FarmModel]:
    return small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def settings(tmp_path: Path, model: tuple[ModelFacts, FarmModel]) -> SequenceSettings:
    return farm_settings(tmp_path / "out", model[0], frames=9)


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Station]:
    made = station(tmp_path / "models")
    yield made
    made.close()


def test_files_equal_those_of_an_export_in_one_process(
    one: Station, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    assert one.open(recipe(settings, model[1])).has_model
    first = one.render(Chunk(JOB, 0, 4))
    rest = one.render(Chunk(JOB, 2, 9))
    assert [unit.is_found for unit in first.units] == [False] * 4
    assert sorted((unit.unit, unit.is_found) for unit in rest.units) == [
        (2, True),
        (3, True),
        *((unit, False) for unit in range(4, 9)),
    ]
    assert files_of(settings) == exported(farm_settings(tmp_path / "one", model[0], frames=9))


def test_returned_files_are_not_written(
    one: Station, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    one.open(recipe(settings, model[1]))
    report = one.render(Chunk(JOB, 3, 6, "returned"))
    files = exported(farm_settings(tmp_path / "one", model[0], frames=9))
    assert {f"walk_{unit.unit:05d}.png": unit.data for unit in report.units} == dict(sorted(files.items())[3:6])
    assert not settings.folder.exists()


def test_an_animation_is_made_of_the_same_segments(
    one: Station, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    settings = farm_settings(tmp_path / "out", model[0], frames=6, video=VideoFormat("gif"))
    one.open(recipe(settings, model[1]))
    report = one.render(Chunk(JOB, 0, 6, "returned"))
    assert [(unit.unit, unit.frames) for unit in report.units] == [(unit, 1) for unit in range(6)]
    assert all(unit.data.startswith(b"GIF8") for unit in report.units)


def test_a_video_is_encoded_segment_by_segment(
    one: Station, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    pytest.importorskip("av", reason="this machine has no PyAV")
    form = VideoFormat("vp9", fps=Fraction(2))
    settings = farm_settings(tmp_path / "out", model[0], frames=6, video=form)
    one.open(recipe(settings, model[1]))
    whole = one.render(Chunk(JOB, 0, 6, "returned"))
    assert [(unit.unit, unit.frames) for unit in whole.units] == [(0, 4), (1, 2)]
    assert one.render(Chunk(JOB, 4, 6, "returned")).units == whole.units[1:]


def test_a_cancelled_chunk_ends_soon_and_the_job_can_be_opened_again(
    tmp_path: Path, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel]
) -> None:
    begun, gate = threading.Event(), threading.Event()

    def painter(request: RenderRequest) -> Frame:
        begun.set()
        assert gate.wait(30)
        return fake_frame(request)

    one = station(tmp_path / "models", painter)
    one.open(recipe(settings, model[1]))
    settings.folder.mkdir()
    reports: list[ChunkReport] = []

    def render() -> None:
        reports.append(one.render(Chunk(JOB, 0, 9)))

    thread = threading.Thread(target=render)
    thread.start()
    assert begun.wait(30)
    one.cancel(JOB)
    gate.set()
    thread.join(30)
    assert reports[0].is_cancelled
    assert {f"walk_{unit.unit:05d}.png" for unit in reports[0].units} == set(files_of(settings))
    assert len(reports[0].units) < 9
    one.open(recipe(settings, model[1]))
    assert len(one.render(Chunk(JOB, 0, 9)).units) == 9
    one.close()


class FullDisk(Disk):
    """Takes no files."""

    def write(self, path: Path, data: bytes, *, flushed: bool = True) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))


def test_a_full_disk_is_reported_in_a_sentence(
    tmp_path: Path, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel]
) -> None:
    one = station(tmp_path / "models", disk=FullDisk())
    one.open(recipe(settings, model[1]))
    with pytest.raises(LoomError, match="disk is full"):
        one.render(Chunk(JOB, 0, 9))
    assert files_of(settings) == {}
    one.close()


def test_a_job_that_is_not_open_is_refused(one: Station) -> None:
    with pytest.raises(FarmError, match="no longer knows the job"):
        one.render(Chunk(JOB, 0, 1))


def test_a_model_comes_in_pieces_and_is_kept(
    one: Station, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    data = model[1].path.read_bytes()
    wanted = recipe(settings, model[1], tmp_path / "not here.safetensors")
    assert not one.open(wanted).has_model
    half = len(data) // 2
    one.begin_model()
    one.add_piece(0, data[:half])
    with pytest.raises(FarmError, match="did not arrive whole"):
        one.finish_model(model[1].model_id, ".safetensors")
    one.begin_model()
    one.add_piece(0, data[:half])
    one.add_piece(half, data[half:])
    one.finish_model(model[1].model_id, ".safetensors")
    assert one.open(wanted).has_model
    other = station(tmp_path / "models")
    assert other.identity() == one.identity()
    assert other.open(wanted).has_model
    other.close()


def test_another_file_at_the_model_s_path_is_not_taken_for_it(
    one: Station, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    (tmp_path / "other.safetensors").write_bytes(b"something else")
    assert not one.open(recipe(settings, model[1], tmp_path / "other.safetensors")).has_model


def test_a_job_whose_model_is_gone_is_not_rendered_with_that_of_another_job(
    one: Station, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel], tmp_path: Path
) -> None:
    shutil.copy(model[1].path, tmp_path / "first.safetensors")
    one.open(recipe(settings, model[1], tmp_path / "first.safetensors"))
    write_safetensors(make_stylegan2(seed=48), tmp_path / "second.safetensors")
    facts = read_model(tmp_path / "second.safetensors").facts
    other = farm_model(facts, None)
    second = replace(recipe(farm_settings(tmp_path / "other", facts, frames=9), other), job="cd" * 12)
    assert one.open(second).has_model
    (tmp_path / "first.safetensors").unlink()
    with pytest.raises(FarmError, match="lost the job's model"):
        one.render(Chunk(JOB, 0, 4, "returned"))
    with pytest.raises(FarmError, match="lost the job's model"):
        one.sample(JOB, 0)
    assert one.render(Chunk("cd" * 12, 0, 4, "returned")).units


@pytest.mark.parametrize("model_id", ["../../etc/passwd", "AB" * 32, ""])
def test_a_model_is_kept_under_its_sha256_alone(one: Station, model_id: str) -> None:
    one.begin_model()
    one.add_piece(0, b"x")
    with pytest.raises(FarmError):
        one.finish_model(model_id, ".safetensors")


def test_a_station_answers_only_a_token_that_it_can_read(
    one: Station, settings: SequenceSettings, model: tuple[ModelFacts, FarmModel]
) -> None:
    settings.folder.mkdir()
    assert one.open(recipe(settings, model[1]), "token").answer == ""
    probe_path(settings.folder, JOB).write_text("another")
    assert one.open(recipe(settings, model[1]), "token").answer == ""
    probe_path(settings.folder, JOB).write_text("token")
    answer = one.open(recipe(settings, model[1]), "token").answer
    assert (settings.folder / answer).read_text() == "nekot"

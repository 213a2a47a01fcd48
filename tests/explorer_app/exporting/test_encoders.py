"""Processes that encode: the same files as threads make, nothing lost when one dies, nothing left when they end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from explorer_app.exporting.encoders import Encoders, usual_patience
from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.formats.codecs import encode_frame
from explorer_app.exporting.formats.picture_format import PictureFormat
from gpu_backend import FileGroup, Frame, FrameTimings, RenderRequest

REQUEST = RenderRequest("0" * 64, ())
SIDE = 8


def frame_of(number: int) -> Frame:
    random = np.random.default_rng(number)
    pixels = random.integers(0, 256, (SIDE, SIDE, 4), np.uint8)
    image = random.standard_normal((SIDE, SIDE, 3), np.float32)
    return Frame(REQUEST, pixels, FrameTimings(0.0, 0.0, 0.0), image=image)


class Studio:
    """Encoders of a folder, and the frames that they got."""

    def __init__(self, folder: Path, form: PictureFormat, *, patience_s: float) -> None:
        self.folder, self.form = folder, form
        self.files = FileGroup(folder)
        self.encoders = Encoders(
            2, form, None, lambda index: f'{{"frame":{index}}}', self.files, lambda: None, patience_s
        )
        self.count = 0

    def accept(self, count: int) -> None:
        for _ in range(count):
            name = f"walk_{self.count:05d}{self.form.ending}"
            self.encoders.accept(self.count, name, frame_of(self.count))
            self.count += 1

    def start(self) -> None:
        """Give it frames until its processes encode."""
        end_s = time.monotonic() + 60.0
        while not all(process.is_ready for process in self.encoders._processes):
            assert time.monotonic() < end_s
            if self.encoders.has_room:
                self.accept(1)
            time.sleep(0.001)

    def close(self, *, discard: bool = False) -> None:
        self.encoders.close(discard=discard)
        self.files.close()

    def check(self) -> None:
        assert sorted(path.name for path in self.folder.iterdir()) == [
            f"walk_{index:05d}{self.form.ending}" for index in range(self.count)
        ]
        for index, path in enumerate(sorted(self.folder.iterdir())):
            assert path.read_bytes() == encode_frame(frame_of(index), f'{{"frame":{index}}}', self.form)


@pytest.fixture
def studios() -> Iterator[list[Studio]]:
    made: list[Studio] = []
    yield made
    for studio in made:
        studio.close(discard=True)


def test_processes_write_what_threads_write_bytes_and_floats_alike(tmp_path: Path, studios: list[Studio]) -> None:
    studios += [Studio(tmp_path / name, PictureFormat(name), patience_s=0.0) for name in ("png", "png16")]
    for studio in studios:
        studio.start()
        studio.accept(40)
        studio.close()
        assert studio.encoders.error is None
        studio.check()


def test_a_process_that_is_killed_costs_no_frame(tmp_path: Path, studios: list[Studio]) -> None:
    studio = Studio(tmp_path, PictureFormat("jpeg"), patience_s=0.0)
    studios.append(studio)
    studio.start()
    for process in studio.encoders._processes:
        assert process._running is not None
        process._running.kill()
    studio.accept(20)
    studio.close()
    assert studio.encoders.error is None
    studio.check()


def test_a_file_that_cannot_be_written_is_an_error_of_one_sentence(tmp_path: Path, studios: list[Studio]) -> None:
    folder = tmp_path / "out"
    studio = Studio(folder, PictureFormat("png"), patience_s=0.0)
    studios.append(studio)
    studio.start()
    while studio.files.written < studio.count:
        time.sleep(0.001)
    folder.rename(tmp_path / "former")
    folder.write_text("a file")
    studio.accept(4)
    studio.close()
    error = studio.encoders.error
    assert isinstance(error, ExportError)
    assert "out" in str(error)
    assert not list((tmp_path / "former").glob(".*"))


def test_a_short_export_starts_no_process_and_discards_at_once(tmp_path: Path, studios: list[Studio]) -> None:
    studio = Studio(tmp_path, PictureFormat("png"), patience_s=60.0)
    studios.append(studio)
    studio.accept(9)
    studio.close()
    assert all(process._running is None for process in studio.encoders._processes)
    studio.check()


def test_an_export_that_ends_while_its_processes_start_ends_them(
    tmp_path: Path, studios: list[Studio], threads_before: set[threading.Thread]
) -> None:
    studio = Studio(tmp_path, PictureFormat("png"), patience_s=0.0)
    studios.append(studio)
    studio.accept(400)
    while not any(process._running for process in studio.encoders._processes):
        studio.accept(4)
        time.sleep(0.001)
    running = [process._running for process in studio.encoders._processes]
    studio.close(discard=True)
    assert all(child is None or child.poll() is not None for child in running)
    assert set(threading.enumerate()) <= threads_before


def test_few_threads_and_frozen_programs_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert usual_patience(15) is not None
    assert usual_patience(3) is None
    monkeypatch.setattr("sys.frozen", True, raising=False)
    assert usual_patience(15) is None

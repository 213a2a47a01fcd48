"""Processes that encode: the same files as threads make, nothing lost when one dies, nothing left when they end."""

from __future__ import annotations

import io
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from explorer_app.exporting import encoder_crew
from explorer_app.exporting.encoder_crew import EncoderProcess, SharedMemory, received_message
from explorer_app.exporting.encoders import PATIENCE_S, Encoders, usual_patience
from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.formats.codecs import encode_frame
from explorer_app.exporting.formats.picture_format import PictureFormat
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.picture_document import document_to_text
from explorer_app.exporting.sequence import SequenceSettings, plan_sequence
from explorer_app.exporting.sinks.frame_sink import PlannedText
from explorer_app.session.session import ModelReference
from gpu_backend import Frame, FrameTimings, Latent, Point, Recipe, RenderRequest

REQUEST = RenderRequest("0" * 64, ())
SIDE = 8
TEXT = '{{"frame":{}}}'.format
"""A function that can be pickled."""


def frame_of(number: int) -> Frame:
    random = np.random.default_rng(number)
    pixels = random.integers(0, 256, (SIDE, SIDE, 4), np.uint8)
    image = random.standard_normal((SIDE, SIDE, 3), np.float32)
    return Frame(REQUEST, pixels, FrameTimings(0.0, 0.0, 0.0), image=image)


class Studio:
    """Encoders of a folder, and the frames that they got."""

    def __init__(self, folder: Path, form: PictureFormat, *, patience_s: float) -> None:
        self.folder, self.form = folder, form
        self.encoders = Encoders(2, form, None, TEXT, folder, lambda: None, patience_s)
        self.count = 0

    def accept(self, count: int) -> None:
        for _ in range(count):
            name = f"walk_{self.count:05d}{self.form.ending}"
            self.encoders.accept(self.count, name, frame_of(self.count))
            self.count += 1

    def start(self) -> None:
        """Give it frames until its processes encode."""
        end_s = time.monotonic() + 60.0
        while not all(seat.is_ready for seat in self.encoders._crew.seats):
            assert time.monotonic() < end_s
            if self.encoders.has_room:
                self.accept(1)
            time.sleep(0.001)

    def wait_until_stored(self) -> None:
        """Give it frames until all of them are stored: the last ones wait for a chunk to become full."""
        end_s = time.monotonic() + 60.0
        while self.encoders.written < self.count:
            assert time.monotonic() < end_s
            time.sleep(0.02)  # as from a slow renderer, whose frames do not wait
            if self.encoders.written < self.count:
                self.accept(1)

    def close(self, *, discard: bool = False) -> None:
        self.encoders.close(discard=discard)

    def check(self) -> None:
        assert sorted(path.name for path in self.folder.iterdir()) == [
            f"walk_{index:05d}{self.form.ending}" for index in range(self.count)
        ]
        for index, path in enumerate(sorted(self.folder.iterdir())):
            assert path.read_bytes() == encode_frame(frame_of(index), TEXT(index), self.form)


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


def test_the_processes_of_a_long_export_start_with_its_first_frame(tmp_path: Path, studios: list[Studio]) -> None:
    studio = Studio(tmp_path, PictureFormat("png"), patience_s=0.0)
    studios.append(studio)
    studio.accept(1)
    end_s = time.monotonic() + 60.0
    while not all(seat.is_ready for seat in studio.encoders._crew.seats):
        assert time.monotonic() < end_s
        time.sleep(0.001)


def test_a_process_that_is_killed_costs_no_frame(tmp_path: Path, studios: list[Studio]) -> None:
    studio = Studio(tmp_path, PictureFormat("jpeg"), patience_s=0.0)
    studios.append(studio)
    studio.start()
    for seat in studio.encoders._crew.seats:
        os.kill(seat.pid, signal.SIGKILL)
    studio.accept(20)
    studio.close()
    assert studio.encoders.error is None
    studio.check()


def test_a_file_that_cannot_be_written_is_an_error_of_one_sentence(tmp_path: Path, studios: list[Studio]) -> None:
    folder = tmp_path / "out"
    studio = Studio(folder, PictureFormat("png"), patience_s=0.0)
    studios.append(studio)
    studio.start()
    studio.wait_until_stored()
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
    assert not studio.encoders._crew.is_started
    studio.check()


def test_an_export_that_ends_while_its_processes_start_ends_them(
    tmp_path: Path, studios: list[Studio], threads_before: set[threading.Thread]
) -> None:
    studio = Studio(tmp_path, PictureFormat("png"), patience_s=0.0)
    studios.append(studio)
    studio.accept(400)
    crew = studio.encoders._crew
    while not crew.is_started:
        studio.accept(4)
        time.sleep(0.001)
    running = list(crew._running)
    studio.close(discard=True)
    assert all(process.poll() is not None for process in running)
    assert set(threading.enumerate()) <= threads_before


def test_frames_that_are_larger_than_the_first_are_encoded_by_the_threads(
    tmp_path: Path, studios: list[Studio]
) -> None:
    studio = Studio(tmp_path, PictureFormat("png"), patience_s=0.0)
    studios.append(studio)
    studio.start()
    random = np.random.default_rng(1)
    large = Frame(REQUEST, random.integers(0, 256, (128, 128, 4), np.uint8), FrameTimings(0.0, 0.0, 0.0))
    studio.encoders.accept(9, "large.png", large)
    studio.close()
    assert (tmp_path / "large.png").read_bytes() == encode_frame(large, TEXT(9), studio.form)


@pytest.mark.skipif(sys.platform == "win32", reason="memory has a name there, not a descriptor")
def test_memory_that_the_system_refuses_leaves_no_descriptor_open(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()  # which cannot be made longer
    monkeypatch.setattr(encoder_crew, "_unnamed_file", lambda: writer)
    with pytest.raises(OSError, match="Invalid argument"):
        SharedMemory(4096)
    os.set_blocking(reader, False)
    with os.fdopen(reader, "rb", 0) as end:
        assert end.read() == b"", "its other end is closed"


def test_each_chunk_in_flight_has_memory_of_its_own_and_its_frames_can_be_read_back() -> None:
    seat = EncoderProcess()
    memory = np.zeros(4096, np.uint8)
    requests, answers = io.BytesIO(), io.BytesIO()
    seat.take_memory(memory, 1000, chunks=2, chunk_frames=2, frame_nbytes=SIDE * SIDE * 4)
    seat.take_pipes(requests, answers)
    seat.is_ready = True
    frames = [(number, str(number), frame_of(number)) for number in range(5)]
    sent = [seat.send(PictureFormat("png"), frames[number : number + 2]) for number in (0, 2, 4)]
    requests.seek(0)
    received = [received_message(requests) for _ in range(3)]
    assert received == sent
    assert [chunk.place for chunk in received] == [
        1000,
        1512,
        1000,
    ]  # the third where the first was, which was answered
    for (index, name, frame), wanted in zip(seat.lost(received[1]), frames[2:4], strict=True):
        assert (index, name) == wanted[:2]
        assert frame.pixels.tobytes() == wanted[2].pixels.tobytes()


def test_a_chunk_of_floats_keeps_them_with_their_requests() -> None:
    seat = EncoderProcess()
    seat.take_memory(np.zeros(8192, np.uint8), 0, chunks=1, chunk_frames=2, frame_nbytes=2048)
    seat.take_pipes(io.BytesIO(), io.BytesIO())
    seat.is_ready = True
    frames = [(number, str(number), frame_of(number)) for number in range(2)]
    chunk = seat.send(PictureFormat("exr"), frames)
    assert chunk is not None
    for (_, _, frame), (_, _, wanted) in zip(seat.lost(chunk), frames, strict=True):
        assert frame.request == wanted.request
        assert frame.image is not None
        assert wanted.image is not None
        assert frame.image.tobytes() == wanted.image.tobytes()


def test_frames_of_another_shape_than_the_first_of_a_chunk_are_not_sent() -> None:
    seat = EncoderProcess()
    seat.take_memory(np.zeros(8192, np.uint8), 0, chunks=1, chunk_frames=2, frame_nbytes=2048)
    seat.take_pipes(io.BytesIO(), io.BytesIO())
    seat.is_ready = True
    half = Frame(REQUEST, np.zeros((SIDE, SIDE // 2, 4), np.uint8), FrameTimings(0.0, 0.0, 0.0))
    assert seat.send(PictureFormat("png"), [(0, "0", frame_of(0)), (1, "1", half)]) is None


def test_a_chunk_waits_to_be_full_only_while_frames_come_quickly(tmp_path: Path) -> None:
    now_s = [0.0]
    encoders = Encoders(1, PictureFormat("png"), None, TEXT, tmp_path, lambda: None, None, clock=lambda: now_s[0])
    encoders._chunk = 4
    for number, came_s in enumerate((0.001, 0.002, 0.003)):
        now_s[0] = came_s
        encoders.accept(number, f"{number}.png", frame_of(number))
    assert len(encoders._gathering) == 3
    now_s[0] = 1.0
    encoders.accept(3, "3.png", frame_of(3))
    assert not encoders._gathering
    now_s[0] = 1.001
    encoders.accept(4, "4.png", frame_of(4))
    encoders.close(discard=False)
    assert encoders.written == 5


def test_the_plan_of_a_sequence_gives_the_same_recipes_in_another_process(tmp_path: Path) -> None:
    keys = tuple(Keyframe(((Recipe(Latent(Point(((seed, 1.0),)))), 1.0),)) for seed in range(3))
    plan = plan_sequence(SequenceSettings(keys, tmp_path, "walk", ModelReference("", "m", "ab" * 32)))
    text: PlannedText = pickle.loads(pickle.dumps(PlannedText(plan)))
    assert [text(index) for index in (0, 7)] == [document_to_text(plan.document(index)) for index in (0, 7)]


def test_few_threads_and_frozen_programs_have_none_and_many_frames_wait_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert usual_patience(15, 100) == PATIENCE_S
    assert usual_patience(15, 1000) == 0.0
    assert usual_patience(3, 1000) is None
    monkeypatch.setattr("sys.frozen", True, raising=False)
    assert usual_patience(15, 1000) is None

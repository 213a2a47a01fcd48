"""Teaching the model to read pictures: progress, what is kept beside the model, and another model meanwhile."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from explorer_app.controller.encoder_learning import EncoderLearning
from explorer_app.messages import MessageLog
from explorer_app.rendering.render_events import LearningAdvanced, LearningEnded
from explorer_app.session.model_files import ModelFiles
from gpu_backend import EncoderFile, EncoderReport, LoomError, RequestError, read_encoder
from gpu_backend.model.encoder_file import encoder_shapes

MODEL_ID, W_DIM, NUM_WS = "ab" * 32, 6, 4


class Renders:
    """The render thread: remembers what it was asked."""

    def __init__(self, path: Path) -> None:
        self.model: Any = SimpleNamespace(
            facts=SimpleNamespace(model_id=MODEL_ID, w_dim=W_DIM, num_ws=NUM_WS, path=str(path), name="hills")
        )
        self.calls: list[Any] = []

    def begin_learning(self, number: int, make: Callable[[], object]) -> None:
        self.calls.append((number, make()))

    def stop_learning(self) -> None:
        self.calls.append("stop")

    def cancel_learning(self) -> None:
        self.calls.append("cancel")


class Worker:
    """Does files at once; an error is remembered."""

    failed = ""

    def fetch(self, task: Callable[[], Any], take: Callable[[Any], None], *, failed: str = "") -> None:
        try:
            found = task()
        except LoomError as error:
            self.failed = f"{failed}: {error.sentence}"
        else:
            take(found)

    def submit(self, task: Callable[[], Any]) -> None:
        task()


class Bench:
    """A learning with its fakes."""

    def __init__(self, path: Path) -> None:
        self.now_s = 100.0
        self.renders, self.worker, self.messages = Renders(path), Worker(), MessageLog()
        self.learning = EncoderLearning(
            self.renders,
            cast("Any", self.worker),
            self.messages,
            ModelFiles(path.parent / "own", path.parent / "installed" / path.name),
            lambda model: cast("Any", "training"),
            lambda: self.now_s,
        )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "hills.safetensors")


def encoder() -> EncoderFile:
    shapes = encoder_shapes(8, W_DIM)
    return EncoderFile(8, {name: np.ones(shape, np.float32) for name, shape in shapes.items()}, 7, 0.4)


def test_a_training_shows_the_time_left_and_is_kept_beside_the_model(bench: Bench, tmp_path: Path) -> None:
    learning = bench.learning
    learning.start()
    learning.start()
    assert bench.renders.calls == [(1, "training")], "one at a time"
    for pictures in (32, 64, 96):
        bench.now_s += 10.0
        learning.take_advanced(LearningAdvanced(1, EncoderReport(100, 120, pictures, 0.7, 0.1)))
        assert learning.state.seconds_left is None, "the time of the first pictures says nothing of that of steps"
    bench.now_s += 10.0
    learning.take_advanced(LearningAdvanced(1, EncoderReport(105, 120, 128, 0.7, 0.325)))
    assert learning.state.seconds_left == pytest.approx(30.0), "15 steps of 2 s"
    learning.stop()
    learning.stop()
    assert bench.renders.calls[1:] == ["stop"]
    assert learning.state.is_stopping
    learning.take_ended(LearningEnded(1, encoder()))
    path = tmp_path / "hills.encoder.safetensors"
    assert (learning.state.is_running, learning.state.kept) == (False, path)
    assert read_encoder(path, MODEL_ID, W_DIM, NUM_WS).steps == 7


def test_a_failed_training_says_why_and_keeps_what_it_found(bench: Bench, tmp_path: Path) -> None:
    bench.learning.start()
    bench.learning.take_ended(LearningEnded(1, encoder(), RequestError("The model is gone.")))
    assert "The model is gone." in [message.sentence for message in bench.messages.messages]
    assert (tmp_path / "hills.encoder.safetensors").exists()
    bench.learning.start()
    bench.learning.take_ended(LearningEnded(2, None))
    assert not bench.learning.state.is_running
    assert "nothing to keep" in bench.messages.messages[-1].sentence


def test_an_encoder_of_the_bundled_model_is_kept_in_the_users_folder(bench: Bench, tmp_path: Path) -> None:
    shipped = tmp_path / "installed" / "hills.encoder.safetensors"
    shipped.parent.mkdir()
    shipped.write_bytes(b"shipped")
    bench.renders.model.facts.path = str(tmp_path / "installed" / "hills.safetensors")
    for _ in range(2):
        bench.learning.start()
        bench.learning.take_ended(LearningEnded(bench.renders.calls[-1][0], encoder()))
        assert bench.learning.state.kept == tmp_path / "own" / f"{MODEL_ID[:16]}.encoder.safetensors"
    assert shipped.read_bytes() == b"shipped"


def test_an_encoder_beside_whose_model_nothing_can_be_written_is_kept_in_the_users_folder(
    bench: Bench, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    bench.renders.model.facts.path = str(tmp_path / "file" / "hills.pkl")
    bench.learning.start()
    bench.learning.take_ended(LearningEnded(1, encoder()))
    assert bench.learning.state.kept == tmp_path / "own" / f"{MODEL_ID[:16]}.encoder.safetensors"


def test_a_folder_that_refuses_is_named(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "own").write_text("no folder")
    bench.renders.model.facts.path = str(tmp_path / "file" / "hills.pkl")
    bench.learning.start()
    bench.learning.take_ended(LearningEnded(1, encoder()))
    assert bench.worker.failed.startswith("hills.encoder.safetensors could not be written: ")
    assert bench.learning.state.kept is None


def test_events_of_a_training_of_another_model_are_dropped(bench: Bench, tmp_path: Path) -> None:
    learning = bench.learning
    learning.start()
    learning.forget()
    assert bench.renders.calls[-1] == "cancel"
    learning.take_advanced(LearningAdvanced(1, EncoderReport(1, 2, 9, math.nan, 0.5)))
    learning.take_ended(LearningEnded(1, encoder()))
    assert learning.state.report is None
    assert not list(tmp_path.iterdir())
    bench.renders.model = None
    learning.start()
    assert not learning.state.is_running, "there is no model"


def advanced(found: EncoderFile | None) -> LearningAdvanced:
    return LearningAdvanced(1, EncoderReport(9, 20, 9, 0.4, 0.5), found)


def test_another_model_ends_a_training_and_the_best_encoder_so_far_is_kept(bench: Bench, tmp_path: Path) -> None:
    learning, path = bench.learning, tmp_path / "hills.encoder.safetensors"
    learning.start()
    learning.forget()
    assert "No encoder of hills is kept" in bench.messages.messages[-1].sentence
    assert not path.exists()
    learning.start()
    learning.take_advanced(LearningAdvanced(2, EncoderReport(9, 20, 9, 0.4, 0.5), encoder()))
    assert not path.exists()
    learning.forget()
    assert read_encoder(path, MODEL_ID, W_DIM, NUM_WS).steps == 7
    assert "The encoder of hills is kept" in bench.messages.messages[-1].sentence
    assert learning.state.kept is None, "it is that of another model"
    count = len(bench.messages.messages)
    learning.forget()
    assert len(bench.messages.messages) == count


def test_the_best_encoder_is_written_now_and_then_and_when_the_program_ends(bench: Bench, tmp_path: Path) -> None:
    learning, path = bench.learning, tmp_path / "hills.encoder.safetensors"
    learning.start()
    bench.now_s += 61.0
    learning.take_advanced(advanced(None))
    first = encoder()
    learning.take_advanced(advanced(first))
    assert path.exists()
    path.unlink()
    bench.now_s += 61.0
    learning.take_advanced(advanced(first))
    assert not path.exists(), "it is no better one"
    learning.take_advanced(advanced(encoder()))
    path.unlink()
    bench.now_s += 30.0
    learning.take_advanced(advanced(encoder()))
    assert not path.exists(), "it is too early"
    learning.close()
    assert path.exists()
    assert bench.messages.messages == ()


def test_a_folder_that_refuses_an_unfinished_encoder_is_told_at_the_end(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "own").write_text("no folder")
    bench.renders.model.facts.path = str(tmp_path / "file" / "hills.pkl")
    bench.learning.start()
    bench.now_s += 61.0
    bench.learning.take_advanced(advanced(encoder()))
    assert (bench.messages.messages, bench.worker.failed) == ((), "")
    bench.learning.forget()
    assert bench.worker.failed.startswith("hills.encoder.safetensors could not be written: ")

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt

from explorer_app.rendering.model_loader import ModelLoader, ReadingEnded, ReadingProgress
from gpu_backend import ModelFileError
from tests.helpers.fake_renderer import Library


class Ear:
    def __init__(self, loader: ModelLoader) -> None:
        self.heard: list[Any] = []
        self._loader = loader
        loader.ready.connect(self._take, Qt.ConnectionType.QueuedConnection)

    def _take(self) -> None:
        event = self._loader.take()
        if event is not None:
            self.heard.append(event)

    @property
    def ends(self) -> list[ReadingEnded]:
        return [event for event in self.heard if isinstance(event, ReadingEnded)]


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.fixture
def loader(library: Library, qapp: Any) -> Iterator[ModelLoader]:
    loader = ModelLoader(library)
    yield loader
    loader.close()


@pytest.fixture
def ear(loader: ModelLoader) -> Ear:
    return Ear(loader)


def file(tmp_path: Path, name: str, text: str = "a model") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_file_is_read_on_a_thread_and_reports_progress(
    loader: ModelLoader, ear: Ear, library: Library, tmp_path: Path, qtbot: Any
) -> None:
    library.gate.shut()
    loader.start(file(tmp_path, "cats.pkl"))
    qtbot.waitUntil(lambda: ear.heard == [ReadingProgress(1, 2)])
    library.gate.open()
    qtbot.waitUntil(lambda: bool(ear.ends))
    assert ear.ends[0].model is not None
    assert ear.ends[0].model.facts.name == "cats"


def test_an_error_of_a_file_is_passed_on(loader: ModelLoader, ear: Ear, tmp_path: Path, qtbot: Any) -> None:
    loader.start(file(tmp_path, "cats.pkl", "broken"))
    qtbot.waitUntil(lambda: bool(ear.ends))
    assert isinstance(ear.ends[0].error, ModelFileError)


def test_a_cancelled_reading_ends_silently(
    loader: ModelLoader, ear: Ear, library: Library, tmp_path: Path, qtbot: Any
) -> None:
    library.gate.shut()
    loader.start(file(tmp_path, "cats.pkl"))
    qtbot.waitUntil(lambda: bool(ear.heard))
    loader.cancel()
    library.gate.open()
    loader.close()
    qtbot.wait(1)
    assert ear.ends == []


def test_starting_another_file_cancels_the_first(
    loader: ModelLoader, ear: Ear, library: Library, tmp_path: Path, qtbot: Any
) -> None:
    library.gate.shut()
    loader.start(file(tmp_path, "cats.pkl"))
    loader.start(file(tmp_path, "dogs.pkl"))
    library.gate.open()
    qtbot.waitUntil(lambda: bool(ear.ends))
    loader.close()
    qtbot.wait(1)
    assert [end.path.name for end in ear.ends] == ["dogs.pkl"]


def test_closing_while_files_are_read_leaves_no_thread(loader: ModelLoader, library: Library, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    library.gate.shut()
    for name in ("cats.pkl", "lions.pkl"):
        loader.start(file(tmp_path, name))
    begun = set(threading.enumerate()) - before
    loader.close()
    loader.close()
    assert not [thread for thread in begun if thread.is_alive()]
    loader.start(file(tmp_path, "dogs.pkl"))
    assert tmp_path / "dogs.pkl" not in library.read

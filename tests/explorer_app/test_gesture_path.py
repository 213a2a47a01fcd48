"""A drag passes through the files that ARCHITECTURE.md names, on both threads, and through no others."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication

import explorer_app
from explorer_app.messages import MessageLog
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.window.canvas.canvas import Canvas
from tests.helpers.controller_harness import Harness
from tests.helpers.fake_renderer import FakeRenderer

ROOT = Path(explorer_app.__file__).parent
NAMED = re.findall(r"^\| \d+ \| `(\S+\.py)` \|", (ROOT.parent / "ARCHITECTURE.md").read_text("utf-8"), re.MULTILINE)


@pytest.fixture
def harness(tmp_path: Path, qtbot: Any) -> Iterator[Harness]:
    harness = Harness(tmp_path, qtbot, MessageLog())
    yield harness
    harness.close()


@contextmanager
def calls(watch: Callable[[FrameType], object]) -> Iterator[None]:
    """Watch every call into `explorer_app` on this thread."""

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(ROOT)):
            watch(frame)

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


def file_of(frame: FrameType) -> str:
    return Path(frame.f_code.co_filename).relative_to(ROOT).as_posix()


def stack(frame: FrameType | None) -> set[str]:
    """Files of `explorer_app` on the stack of a call."""
    found: set[str] = set()
    while frame is not None:
        if frame.f_code.co_filename.startswith(str(ROOT)):
            found.add(file_of(frame))
        frame = frame.f_back
    return found


def mouse(kind: QEvent.Type, x: float, button: Qt.MouseButton) -> QMouseEvent:
    at = QPointF(x, 200.0)
    return QMouseEvent(kind, at, at, button, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)


def test_a_drag_passes_fewer_than_thirteen_files() -> None:
    assert 1 < len(NAMED) < 13
    assert all((ROOT / name).is_file() for name in NAMED)


def test_only_the_named_files_are_on_the_stack_of_a_request_a_rendering_and_a_frame(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.start()
    rendering: list[set[str]] = []
    render = FakeRenderer.render

    def watched_render(self: FakeRenderer, *arguments: Any, **options: Any) -> Any:
        rendering.append(stack(sys._getframe()))
        return render(self, *arguments, **options)

    monkeypatch.setattr(FakeRenderer, "render", watched_render)
    preview = harness.controller.engine.preview
    canvas = Canvas()
    canvas.follow(preview)
    canvas.edited.connect(harness.controller.editing.edit)
    canvas.resize(400, 400)
    canvas.show_model(harness.controller.engine.model.facts)
    canvas.show_session(harness.controller.editing.session)
    canvas.show_frame(preview.frame)
    ran: set[str] = set()
    leading: list[set[str]] = []

    def watch(frame: FrameType) -> None:
        ran.add(file_of(frame))
        if frame.f_code in (RenderThread.submit.__code__, Canvas.show_frame.__code__):
            leading.append(stack(frame))

    QApplication.sendEvent(canvas, mouse(QEvent.Type.MouseButtonPress, 100.0, Qt.MouseButton.LeftButton))
    with calls(watch):
        QApplication.sendEvent(canvas, mouse(QEvent.Type.MouseMove, 180.0, Qt.MouseButton.NoButton))
        before = len(leading)
        harness.until(lambda: len(leading) > before)
    QApplication.sendEvent(canvas, mouse(QEvent.Type.MouseButtonRelease, 180.0, Qt.MouseButton.LeftButton))
    canvas.close()
    assert before == 1
    assert harness.x > 0
    assert rendering
    for files in (*leading, *rendering):
        assert files <= set(NAMED)
    assert {"rendering/render_thread.py", "rendering/tasks/preview.py"} <= set().union(*rendering)
    assert set(NAMED) <= ran

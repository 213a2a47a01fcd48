"""What a new picture and new figures do not make the window do: it would be felt as the hand goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QAbstractEventDispatcher, QEvent, QObject, QPoint
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer_app.window.gestures.move_pacer import MovePacer
from explorer_app.window.shell.main_window import MainWindow
from tests.helpers.fake_controller import FakeController
from tests.helpers.kernel_costs import timed_frame
from tests.helpers.mouse import move, press, release
from tests.helpers.windows import dock


class PaintCounter(QObject):
    """Counts events by kind and by the class that they reach."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[tuple[str, str]] = Counter()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        if event.type() in (QEvent.Type.Paint, QEvent.Type.LayoutRequest):
            self.counts[event.type().name, type(watched).__name__] += 1
        return False


@pytest.fixture
def seen(window: MainWindow, qtbot: QtBot) -> Iterator[PaintCounter]:
    assert window.isVisible()
    qtbot.wait(300)  # it comes to rest
    for _ in range(5):
        QApplication.processEvents()  # also on a machine that is busy elsewhere
    seen = PaintCounter()
    application = QApplication.instance()
    assert application is not None
    application.installEventFilter(seen)
    yield seen
    application.removeEventFilter(seen)


def test_a_picture_paints_the_canvas_and_nothing_below_it(window: MainWindow, seen: PaintCounter) -> None:
    window.canvas.repaint()
    assert seen.counts["Paint", "Canvas"] == 1
    assert seen.counts["Paint", "Workspace"] == seen.counts["Paint", "MainWindow"] == 0


def test_a_thousand_events_on_the_canvas_are_one_edit_and_tell_only_what_shows_the_place(
    window: MainWindow, controller: FakeController, seen: PaintCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: Counter[str] = Counter()
    for name in ("sliders", "layers"):
        monkeypatch.setattr(getattr(window, name), "show_session", lambda session, name=name: told.update([name]))
    edits: list[object] = []
    window.canvas.edited.connect(lambda edit, final: edits.append(edit))
    middle = window.canvas.rect().center()
    press(window.canvas, middle)
    for step in range(1000):
        move(window.canvas, middle + QPoint(1 + step % 50, 0))
    assert len(edits) == 1
    release(window.canvas, middle)
    assert told == {}
    assert controller.editing.session.position.x != 0.0


def test_between_the_moves_of_a_fast_mouse_the_window_waits_for_a_frame(
    window: MainWindow, controller: FakeController
) -> None:
    window.canvas.repaint()
    pacer, dispatcher = window.findChild(MovePacer), QAbstractEventDispatcher.instance()
    assert pacer is not None
    assert dispatcher is not None
    pacer.begin(60.0, lambda: None)
    pacer.reported()
    for stamp_ms in (1000, 1001):
        pacer.note(stamp_ms)
    dispatcher.aboutToBlock.emit()
    pacer.end()
    wait_s = controller.engine.preview.waits_s[0]
    assert 0.0 < wait_s <= 60.0


def test_a_ring_that_moves_paints_the_plane_alone(window: MainWindow, seen: PaintCounter) -> None:
    window.latent.plane.repaint()
    assert seen.counts["Paint", "SeedPlane"] == 1
    assert seen.counts["Paint", "DockBody"] == seen.counts["Paint", "LatentPanel"] == 0


def test_new_figures_lay_nothing_out(window: MainWindow, controller: FakeController, seen: PaintCounter) -> None:
    statistics = controller.engine.preview.statistics
    for number in range(1, 4):
        statistics.frame_arrived(timed_frame(1.3 * number, ()), number / 10)
        window.performance.overview.show_times(statistics)
        window.performance.overview.latency.setText(f"gesture to screen {number}.25 ms")
        window.performance.overview.host.show_text(f"host {number}.25 ms")
        window.layers.figures.figures["mean"][0].setText(f"0.0{number}")
        QApplication.processEvents()
    assert seen.counts["LayoutRequest", "Workspace"] == 0
    assert window.performance.overview.latency.text().endswith("3.25 ms")


def test_a_panel_behind_anothers_tab_computes_nothing(window: MainWindow, controller: FakeController) -> None:
    front, behind = dock(window, "performance"), dock(window, "layers")
    window.workspace.tabifyDockWidget(front, behind)
    behind.show()
    front.raise_()
    QApplication.processEvents()
    assert behind.isVisible(), "which is what Qt says of it"
    window.layers.show_frame(controller.engine.preview.frame)
    assert not window.layers._figures_timer.isActive()
    behind.raise_()
    QApplication.processEvents()
    window.performance._beat.stop()
    window.performance.show_statistics(controller.engine.preview.statistics)
    assert not window.performance._beat.isActive()
    window.layers.show_frame(None)
    assert window.layers._figures_timer.isActive()

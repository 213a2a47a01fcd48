"""A person's first ten minutes with the timeline, with everything real and every gesture a mouse or key event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from PySide6.QtCore import QPoint
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QApplication, QMenu

from explorer_app.cli.main import main
from explorer_app.messages import Level
from explorer_app.session.timeline.evaluation import session_at
from explorer_app.session.tracks import NOISE_LOOP, STATE
from explorer_app.window.export.export_dialog import ExportDialog
from explorer_app.window.sliders.direction_list import DirectionRow
from explorer_app.window.timeline.timeline_view import TimelineView
from tests.helpers import mouse, panels
from tests.helpers.person import Person
from tests.helpers.windows import dialog_of


def test_the_first_ten_minutes(sit_down: Callable[..., Person], small_network: Path, tmp_path: Path) -> None:
    person = sit_down(bundled=small_network)
    person.start()
    person.window.resize(1600, 980)

    # The Animate workspace, a first key of the picture.
    person.press_keys("Ctrl+2")
    panel = person.window.timeline
    view = panel.view
    person.until(lambda: view.isVisible() and panel.isEnabled())
    person.press_keys("I")
    first = person.look()

    # The playhead to 2 s, another picture, a second key.
    drag_playhead(view, 0.0, 2.0)
    assert person.controller.playback.time == 2
    middle = person.canvas.rect().center()
    mouse.drag(person.canvas, [middle + QPoint(x, 0) for x in range(0, 97, 8)])
    second = person.look()
    person.press_keys("I")
    state = person.session.timeline.track(STATE)
    assert state is not None
    assert [key.time for key in state.keys] == [0, 2]

    # Scrubbing: between them lies another picture, at them exactly theirs.
    drag_playhead(view, 2.0, 1.0)
    between = person.look()
    assert all(np.abs(between.to_rgb().astype(int) - frame.to_rgb()).mean() > 1 for frame in (first, second))
    drag_playhead(view, 1.0, 0.0)
    assert np.array_equal(person.look().to_rgb(), first.to_rgb())

    # A slider gets a track by its menu; at 2 s it stands elsewhere, which makes a second key.
    row = person.window.sliders.directions.rows[0]
    choose_animate(person, row)
    path = f"slider/{row.shown.direction}"
    drag_playhead(view, 0.0, 2.0)
    slide(row, 0.25)
    choose_animate(person, row)
    track = person.session.timeline.track(path)
    assert track is not None
    assert [key.time for key in track.keys] == [0, 2]
    assert track.keys[1].value > 0.5
    drag_playhead(view, 2.0, 1.0)
    person.until(lambda: abs(row.slider.amount - track.keys[1].value / 2) < 0.02)

    # Playing moves the playhead in exact time; pausing keeps it.
    person.press_keys("Ctrl+Space")
    person.until(lambda: person.controller.playback.time > Fraction(5, 4))
    person.press_keys("Ctrl+Space")
    stopped = person.controller.playback.time
    assert (stopped * 30).denominator == 1
    assert not person.controller.playback.is_playing

    # Recording: what is moved while it plays becomes keys, and one undo takes the take back.
    other = person.window.sliders.directions.rows[1]
    person.click(panel.record_button)
    slide(other, 0.2)
    taken = f"slider/{other.shown.direction}"
    person.until(lambda: person.session.timeline.track(taken) is not None)
    person.press_keys("Ctrl+Space")
    assert person.labels[-1] == f"Record {other.label.full_text}"
    person.press_keys("Ctrl+Z")
    assert person.session.timeline.track(taken) is None

    # Noise that goes round, and an arc between the pictures.
    panel.add_track(NOISE_LOOP)
    states = person.session.timeline.track(STATE)
    assert states is not None
    view.replace_track(replace(states, way="w-slerp"), "Way of the track")

    # A project, and an export of a stretch of its timeline.
    project = tmp_path / "piece.loom"
    person.press_keys("Ctrl+S")
    person.answer_file_dialog(project)
    person.until(project.exists)
    person.press_keys("Ctrl+E")
    dialog = dialog_of(person.window, ExportDialog)
    assert dialog.source.segments["timeline"].isChecked()
    dialog.timeline.end.setValue(0.1)
    person.type_into(dialog.names.folder.line, str(tmp_path / "window"))
    person.type_into(dialog.names.name, "piece")
    person.click(dialog.export)
    exported = tmp_path / "window"
    person.until(lambda: any("Exported 3 frames" in sentence for sentence in person.said()))
    assert person.said(Level.WARNING) == []
    piece = person.session
    person.close()

    # The command line makes the same files, byte for byte.
    words = [
        "render",
        "--project",
        str(project),
        "--network",
        str(small_network),
        "--fps",
        "30",
        "--start",
        "0",
        "--end",
        "0.1",
    ]
    assert main([*words, "--outdir", str(tmp_path / "command")]) == 0
    files = {path.name: path.read_bytes() for path in exported.iterdir()}
    assert sorted(files) == ["piece.manifest.json", *(f"piece_0000{n}.png" for n in range(3))]
    assert {path.name: path.read_bytes() for path in (tmp_path / "command").iterdir()} == files

    # The next day everything is there again.
    again = sit_down(bundled=small_network)
    again.start()
    assert again.session.timeline == piece.timeline
    assert session_at(again.session, 1.0).slider(row.shown.direction) == session_at(piece, 1.0).slider(
        row.shown.direction
    )


def drag_playhead(view: TimelineView, start: float, end: float) -> None:
    """Drag the playhead in the ruler from one second to another."""
    axis, port = view.axis, view.viewport()
    y = view.scene.ruler_px // 2
    mouse.drag(port, [QPoint(round(axis.x(t)), y) for t in (start, (start + end) / 2, end)])


def slide(row: DirectionRow, share: float) -> None:
    """Drag a slider to the right by a share of its width."""
    grip = row.slider.rect().center().toPointF()
    panels.drag(row.slider, grip, grip + QPoint(round(row.slider.width() * share), 0).toPointF(), steps=8)


def choose_animate(person: Person, row: DirectionRow) -> None:
    """Right-click a slider and choose the entry that makes a key."""
    middle = row.slider.rect().center()
    place = row.slider.mapToGlobal(middle)
    QApplication.sendEvent(row.slider, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, middle, place))
    menu = next(menu for menu in row.findChildren(QMenu) if menu.isVisible())
    action = next(item for item in menu.actions() if item.text() == "Animate: key here")
    action.trigger()
    menu.close()
    menu.deleteLater()

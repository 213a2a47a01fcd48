"""The export dialog with sessions, histories and timelines to export."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox
from pytestqt.qtbot import QtBot

from explorer_app.session.history import History
from explorer_app.session.session import ModelReference, Position, Session
from explorer_app.session.timeline.edits import with_key
from explorer_app.session.tracks import Timeline
from explorer_app.settings import Settings
from explorer_app.window.export.export_dialog import ExportDialog
from explorer_app.window.export.presets import PresetName
from gpu_backend import Noise
from tests.helpers.fake_controller import facts

FACTS = facts()
MODEL = ModelReference(FACTS.path, FACTS.name, FACTS.model_id)
SESSION = Session(model=MODEL, position=Position(3.25, 1.5), noise=Noise("random", seed=4))


def history(steps: int = 3, kept: int = 0) -> History:
    made = History()
    for number in range(steps):
        made = made.added(Session(model=MODEL, position=Position(number + 0.5, 0.0)), "Walk")
    for entry in made.entries[:kept]:
        made = made.starred(entry.number, True)
    return made


def opened(qtbot: QtBot, settings: Settings, past: History, session: Session = SESSION, **more: Any) -> ExportDialog:
    dialog = ExportDialog(session, past, FACTS, settings, **more)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def type_seeds(dialog: ExportDialog, text: str) -> None:
    QTest.keyClicks(dialog.path.seeds, text)
    QTest.keyClick(dialog.path.seeds, Qt.Key.Key_Return)


def moving() -> Session:
    """Return a session whose timeline moves psi for 4 s at 12 frames a second, of which 1 s to 3 s loop."""
    timeline = Timeline(fps=Fraction(12), end=Fraction(4), loop=(Fraction(1), Fraction(3)))
    for t, value in ((0, 0.2), (4, 1.0)):
        timeline = with_key(timeline, "truncation.psi", Fraction(t), value)
    return replace(SESSION, timeline=timeline)


def is_possible(combo: QComboBox, row: int) -> bool:
    return bool(combo.model().flags(combo.model().index(row, 0)) & Qt.ItemFlag.ItemIsEnabled)


def choose(dialog: ExportDialog, preset: PresetName) -> None:
    QTest.mouseClick(dialog.presets.segments[preset], Qt.MouseButton.LeftButton)

"""The export dialog on a small screen."""

from __future__ import annotations

from fractions import Fraction

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer_app.session.history import History, KeptSession
from explorer_app.session.session import ModelReference, Position, Session
from explorer_app.session.timeline.edits import with_key
from explorer_app.session.tracks import Timeline
from explorer_app.settings import Settings
from explorer_app.window.export.export_dialog import ExportDialog
from tests.helpers.fake_controller import facts

FACTS = facts()
MODEL = ModelReference(FACTS.path, FACTS.name, FACTS.model_id)


def test_every_preset_fits_a_screen_of_800_px_however_long_names_are(qtbot: QtBot, settings: Settings) -> None:
    past = History().with_kept((KeptSession(Session(model=MODEL), "a lake that mirrors it all " * 4),))
    timeline = with_key(with_key(Timeline(), "truncation.psi", Fraction(0), 0.5), "truncation.psi", Fraction(9), 0.7)
    dialog = ExportDialog(Session(model=MODEL, timeline=timeline), past, FACTS, settings)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(dialog)
    dialog.show()
    for preset in dialog.presets.segments.values():
        preset.click()
        for source in dialog.source.segments.values():
            source.click()
            assert dialog.minimumSizeHint().width() <= 784
            assert not dialog.path.keys.horizontalScrollBar().maximum()


def test_on_a_low_screen_the_estimate_and_why_a_button_is_disabled_are_seen_without_scrolling(
    qtbot: QtBot, settings: Settings
) -> None:
    past = History().with_kept((KeptSession(Session(model=MODEL, position=Position(3.0, 0.0)), "lake"),))
    dialog = ExportDialog(Session(model=MODEL), past, FACTS, settings)
    qtbot.addWidget(dialog)
    dialog.resize(784, 440)
    dialog.show()
    QApplication.processEvents()
    for label in (dialog.estimate, dialog.hint):
        assert label.text()
        assert label.visibleRegion().boundingRect().height() >= label.fontMetrics().height()

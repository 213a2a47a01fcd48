"""The export dialog on a small screen."""

from __future__ import annotations

from fractions import Fraction

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from explorer_app.session.history import History, KeptSession
from explorer_app.session.session import ModelReference, Session
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
            assert not dialog.keys.horizontalScrollBar().maximum()

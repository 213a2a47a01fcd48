"""Export dialogs for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from explorer_app.settings import Settings
from explorer_app.window.export.export_dialog import ExportDialog
from tests.helpers.export_dialogs import history, opened


@pytest.fixture
def made(qtbot: QtBot, settings: Settings, tmp_path: Path) -> ExportDialog:
    """A dialog with a folder, and a path that was emptied."""
    settings.remember_folder("export", tmp_path)
    dialog = opened(qtbot, settings, history())
    dialog.path.keys.selectAll()
    QTest.keyClick(dialog.path.keys, Qt.Key.Key_Delete)
    return dialog

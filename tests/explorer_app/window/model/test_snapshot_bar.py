"""The bar of training snapshots, over stand-ins."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from PySide6.QtCore import QObject, Signal
from pytestqt.qtbot import QtBot

from explorer_app.controller import Snapshots
from explorer_app.window.model.snapshot_bar import SnapshotBar


class FakeSnapshots(QObject):
    """Stands for `Snapshots`: a folder of one file, which is not open."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.files = (Path("/run/net-1.pkl"),)
        self.index = 0
        self.shown: Path | None = None
        self.is_broken, self.is_reading, self.is_left = False, False, True
        self.gone_to: list[int] = []

    def go_to(self, index: int) -> None:
        self.gone_to.append(index)

    def leave(self) -> None:
        pass


def test_it_says_that_another_model_is_shown_and_brings_the_snapshot_back(qtbot: QtBot) -> None:
    snapshots = FakeSnapshots()
    bar = SnapshotBar(cast("Snapshots", snapshots))
    qtbot.addWidget(bar)
    assert bar.name.full_text == "net-1 · another model is shown"
    assert not bar.back_button.isHidden()
    bar.back_button.click()
    assert snapshots.gone_to == [0]
    snapshots.is_left, snapshots.is_reading = False, True
    snapshots.changed.emit()
    assert bar.name.full_text == "net-1 · reading"
    assert bar.back_button.isHidden()

"""The values that sounds and controllers give parameters at the moment, which the session does not hold."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from explorer_app.controller.editing import Editing
from explorer_app.session.parameters import parameter

INTERVAL_MS = 100
"""Shortest time between two changes of the values."""


class PlayedValues(QObject):
    """Follows the patches of the session while pictures come.

    Signals
    -------
    changed()
        `values` changed: at most every `INTERVAL_MS`, the last time when nothing is moved any more.
    """

    changed = Signal()

    def __init__(self, editing: Editing, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._editing = editing
        self._values: dict[str, float] = {}
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(INTERVAL_MS)
        self._timer.timeout.connect(self._read)

    @property
    def values(self) -> Mapping[str, float]:
        """Path of a parameter -> its value in the picture, for those whose value in the session is another."""
        return self._values

    def frame_arrived(self) -> None:
        """Read the values soon, if something moves them; called for every frame."""
        if (self._values or self._editing.session.patches) and not self._timer.isActive():
            self._timer.start()

    @Slot()
    def _read(self) -> None:
        session = self._editing.session
        paths = {patch.parameter for patch in session.patches if patch.is_on}
        values = {}
        if paths:
            effective = self._editing.effective
            for path in paths:
                row = parameter(path)
                value = float(row.read(effective))
                if value != float(row.read(session)):
                    values[path] = value
        if values != self._values:
            self._values = values
            self.changed.emit()

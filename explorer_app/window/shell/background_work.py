"""Shows in the status bar what runs while its dialog is closed: an encoder's training, a search for tiles."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QAction

from explorer_app.controller import EncoderLearning, Tuning
from explorer_app.window.shell.status_bar import StatusBar


class BackgroundWork(QObject):
    """Keeps the text in step with the work; a click on it opens the dialog.

    Parameters
    ----------
    actions
        By key; ``"learn-pictures"`` and ``"tune"`` open the dialogs.
    """

    def __init__(
        self,
        status: StatusBar,
        learning: EncoderLearning,
        tuning: Tuning,
        actions: Mapping[str, QAction],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._status = status
        self._learning = learning
        self._tuning = tuning
        self._actions = actions
        self._key = ""
        learning.changed.connect(self._show)
        tuning.changed.connect(self._show)
        status.work_requested.connect(self._open)
        self._show()

    @Slot()
    def _show(self) -> None:
        learning, tuned = self._learning.state, self._tuning.state.share
        if learning.is_running:
            learned = 0.0 if learning.report is None else learning.report.share
            self._key, text = "learn-pictures", f"Learning to read pictures {100 * learned:.0f} %"
        elif tuned is not None:
            self._key, text = "tune", f"Tuning for this GPU {100 * tuned:.0f} %"
        else:
            self._key, text = "", ""
        self._status.show_work(text)

    @Slot()
    def _open(self) -> None:
        if self._key:
            self._actions[self._key].trigger()

"""The menu of recently opened models."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

from explorer_app.settings import RecentModel
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.look import theme
from explorer_app.window.model.model_names import distinct_names

_WIDEST = 320


class RecentMenu(QMenu):
    """A menu that is rebuilt before each opening, so that it is always current.

    Parameters
    ----------
    recent
        Returns the models, newest first.
    below
        Actions below the list.
    """

    path_chosen = Signal(str)

    def __init__(
        self,
        recent: Callable[[], Sequence[RecentModel]],
        parent: QWidget | None = None,
        below: Sequence[QAction] = (),
    ) -> None:
        super().__init__("Open &recent", parent)
        self._recent = recent
        self._below = below
        self.setToolTipsVisible(True)
        self.aboutToShow.connect(self.fill)

    @Slot()
    def fill(self) -> None:
        """Rebuild the entries."""
        self.clear()
        models = self._recent()
        for model, name in zip(models, distinct_names([(item.name, item.path) for item in models]), strict=True):
            text = self.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, theme.px(_WIDEST))
            action = self.addAction(text.replace("&", "&&"))
            action.setToolTip(plain_tip(model.path))
            action.triggered.connect(lambda _=False, path=model.path: self.path_chosen.emit(path))
        if not models:
            self.addAction("Nothing opened yet").setEnabled(False)
        if self._below:
            self.addSeparator()
            self.addActions(list(self._below))

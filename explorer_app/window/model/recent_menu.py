"""The menu of recently opened models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

from explorer_app.settings import RecentModel
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.look import theme
from gpu_backend import printable

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


def distinct_names(models: Sequence[tuple[str, str]]) -> list[str]:
    """Return what models of these names and paths are called side by side.

    Models of equal names have the end of their folder that tells them apart, in one folder the name of their file.
    """
    names = [name or Path(path).stem for name, path in models]
    shown = []
    for index, (_, path) in enumerate(models):
        name, own = names[index], Path(path).parent.parts
        others = [Path(models[k][1]).parent.parts for k in range(len(models)) if k != index and names[k] == name]
        if own in others:
            name = Path(path).name
        if apart := [parts for parts in others if parts != own]:
            counts = range(1, len(own))
            count = next((n for n in counts if all(parts[-n:] != own[-n:] for parts in apart)), len(own))
            name = f"{name} ({Path(*own[-count:])})"
        shown.append(printable(name))
    return shown

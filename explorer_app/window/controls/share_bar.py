"""A progress bar without text."""

from __future__ import annotations

from PySide6.QtWidgets import QProgressBar, QWidget

_STEPS = 1000


class ShareBar(QProgressBar):
    """A thin bar that shows how much of an operation is done.

    Parameters
    ----------
    name
        For screen readers, such as "Progress of the search".
    """

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextVisible(False)
        self.setRange(0, _STEPS)
        self.setAccessibleName(name)

    def show_share(self, share: float | None) -> None:
        """Show a share in 0..1; None shows an operation of unknown length."""
        self.setRange(0, 0 if share is None else _STEPS)
        if share is not None:
            self.setValue(round(_STEPS * min(max(share, 0.0), 1.0)))

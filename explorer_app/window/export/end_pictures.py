"""Thumbnails of the first and the last frame of an export."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QImage, QPixmap
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from explorer_app.window.look import theme
from gpu_backend import RenderRequest

_SIDE_PX = 72
_REST_MS = 250
"""Frames of the timeline are requested once its start and end have rested so long."""


class EndPictures(QWidget):
    """First and last frame, with an arrow between them.

    Signals
    -------
    thumbnail_wanted(key, request)
        A thumbnail is missing; the result arrives in `show_thumbnail`.
    """

    thumbnail_wanted = Signal(object, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.first, self.last = QLabel(self), QLabel(self)
        for end, told in ((self.first, "First frame"), (self.last, "Last frame")):
            end.setAccessibleName(told)
            end.setToolTip(f"{told}.")
            end.setFixedSize(theme.px(_SIDE_PX), theme.px(_SIDE_PX))
            end.setScaledContents(True)
        self.arrow = QLabel("→", self)
        theme.set_role(self.arrow, "dim")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.px(8))
        for part in (self.first, self.arrow, self.last):
            row.addWidget(part)
        self._requests: tuple[RenderRequest, ...] = ()
        self._made: dict[object, QPixmap] = {}
        self._rest = QTimer(self, singleShot=True, interval=_REST_MS)
        self._rest.timeout.connect(self._request)

    def show_pictures(self, first: QPixmap, last: QPixmap | None, *, is_loop: bool = False) -> None:
        """Show thumbnails that are there; a single picture has no last one."""
        self._requests = ()
        self.first.setPixmap(first)
        self.first.show()
        self.last.setPixmap(last or QPixmap())
        self.last.setToolTip("Last keyframe; then the loop returns to the first." if is_loop else "Last frame.")
        self._show_last(last is not None)

    def show_frames(self, first: RenderRequest, last: RenderRequest) -> None:
        """Show the thumbnails of two frames, as soon as they are rendered."""
        self.last.setToolTip("Last frame.")
        self.first.show()
        self._show_last(True)
        if self._requests != (first, last):
            self._requests = first, last
            self._show_made()
            self._rest.start()

    def show_nothing(self) -> None:
        """Hide both frames: they are not known."""
        self._requests = ()
        self.first.hide()
        self._show_last(False)

    def show_thumbnail(self, key: object, image: QImage) -> None:
        """Show the thumbnail of a frame."""
        self._made[key] = QPixmap.fromImage(image)
        self._show_made()

    def _show_last(self, is_shown: bool) -> None:
        self.arrow.setVisible(is_shown)
        self.last.setVisible(is_shown)

    def _show_made(self) -> None:
        blank = QPixmap(self.first.size())
        blank.fill(theme.alpha(theme.current().edge, 0.4))
        for end, request in zip((self.first, self.last), self._requests, strict=False):
            end.setPixmap(self._made.get(request, blank))

    def _request(self) -> None:
        for request in self._requests:
            if request not in self._made:
                self.thumbnail_wanted.emit(request, request)

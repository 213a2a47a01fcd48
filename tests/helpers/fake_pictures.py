"""Whole pictures without an engine."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from explorer_app.session.session import Session
from gpu_backend import Frame
from tests.helpers.fake_searches import Calls


class FakeWholePictures(QObject):
    """Stands for `WholePictures`; a test adds pictures to `made`."""

    changed = Signal()

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls
        self.made: dict[Session, Frame] = {}

    def get(self, session: Session) -> Frame | None:
        self._calls.append(("whole_picture", session))
        return self.made.get(session)

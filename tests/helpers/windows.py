"""A main window over `FakeController`: how to make one and find its parts."""

from __future__ import annotations

from typing import Protocol, TypeVar

import pytest
from PySide6.QtWidgets import QApplication, QDialog

from explorer_app.window.docks.dock import Dock
from explorer_app.window.shell.main_window import MainWindow
from tests.helpers.fake_controller import FakeController

without_model = pytest.mark.parametrize("first_model", [None], ids=["no model"])
"""For a test whose window is to be that of a start without a model."""

Dialog = TypeVar("Dialog", bound=QDialog)


class Make(Protocol):
    """Shows a window over a controller, at a size."""

    def __call__(self, controller: FakeController, width: int = 1280, height: int = 800) -> MainWindow: ...


def dock(window: MainWindow, name: str) -> Dock:
    return next(dock for dock in window.workspace.docks if dock.objectName() == f"{name}-dock")


def calls(controller: FakeController, what: str) -> list[tuple[object, ...]]:
    return [call for call in controller.calls if call[0] == what]


def dialog_of(window: MainWindow, kind: type[Dialog]) -> Dialog:
    """The open dialog of this class."""
    return next(dialog for dialog in window.findChildren(kind) if dialog.isVisible())


def lay_out(window: MainWindow, width: int, height: int) -> None:
    """Give a window another size, with the docks as they are at a first start of that size."""
    window.resize(width, height)
    window.workspace.restore({}, "explore")
    for _ in range(3):
        QApplication.processEvents()

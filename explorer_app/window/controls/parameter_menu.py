"""The context menu of a parameter's control: a key at the playhead, a controller, sound.

The control sends its wish to its window, so that it knows neither the timeline nor the inputs.
"""

from __future__ import annotations

from typing import ClassVar

from PySide6.QtCore import QCoreApplication, QEvent, QPoint, Qt
from PySide6.QtWidgets import QMenu, QWidget

from explorer_app.session.number_paths import number_path
from explorer_app.session.patches import Patch
from explorer_app.window.controls.drive_menu import add_drive_menu


class _ParameterEvent(QEvent):
    """Sent to the window of a control; `path` is that of its parameter (`explorer_app.session.parameters`)."""

    KIND: ClassVar[QEvent.Type]

    def __init_subclass__(cls) -> None:
        """Register an event type for each class."""
        cls.KIND = QEvent.Type(QEvent.registerEventType())

    def __init__(self, path: str) -> None:
        super().__init__(self.KIND)
        self.path = path


class AnimateRequest(_ParameterEvent):
    """Requests a key of the parameter at the playhead."""


class LearnRequest(_ParameterEvent):
    """A controller is to be learned; `low` and `high` are the values at the ends of the control."""

    def __init__(self, path: str, low: float, high: float) -> None:
        super().__init__(path)
        self.low, self.high = low, high


class ForgetRequest(_ParameterEvent):
    """The controllers of the parameter are to go."""


class DriveRequest(_ParameterEvent):
    """Sound is to move the parameter through a patch."""

    def __init__(self, patch: Patch) -> None:
        super().__init__(patch.parameter)
        self.patch = patch


class SoundQuery(_ParameterEvent):
    """Queries the audible sources; the window sets the names of sounds, and whether a microphone is on."""

    sounds: tuple[str, ...] = ()
    hears = False


class MappingQuery(_ParameterEvent):
    """Queries whether a controller moves the parameter; the window sets `is_mapped`."""

    is_mapped = False


def open_parameter_menu(control: QWidget, path: str, place: QPoint, low: float, high: float) -> QMenu:
    """Open the menu of a control at a place on the screen, and return it; closing deletes it."""
    menu = QMenu(control)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    add_parameter_entries(menu, control, path, low, high)
    menu.popup(place)
    return menu


def add_parameter_entries(menu: QMenu, control: QWidget, path: str, low: float, high: float) -> None:
    """Add what can be done with a parameter to the menu of a control.

    `low` and `high` are the values at the ends of the control, which a learned controller gets as its range.
    """

    def offer(text: str, tip: str, event: type[_ParameterEvent], path: str, *ends: float) -> None:
        action = menu.addAction(text)
        action.setToolTip(tip)
        action.triggered.connect(lambda: QCoreApplication.sendEvent(control.window(), event(path, *ends)))

    menu.setToolTipsVisible(True)
    offer(
        "Animate: key here",
        "Set a key with this value at the playhead, on a track of its own.",
        AnimateRequest,
        path,
    )
    path = number_path(path)
    if path:
        menu.addSeparator()
        offer(
            "Learn controller",
            "Then move a MIDI or OSC control: it will drive this parameter.",
            LearnRequest,
            path,
            low,
            high,
        )
        query = MappingQuery(path)
        QCoreApplication.sendEvent(control.window(), query)
        if query.is_mapped:
            offer("Forget controller", "Remove the controllers of this parameter.", ForgetRequest, path)
        heard = SoundQuery(path)
        QCoreApplication.sendEvent(control.window(), heard)
        menu.addSeparator()
        add_drive_menu(
            menu,
            path,
            heard.sounds,
            lambda patch: QCoreApplication.sendEvent(control.window(), DriveRequest(patch)),
            hears=heard.hears,
        )

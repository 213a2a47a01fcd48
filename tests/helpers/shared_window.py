"""Windows that the tests of a worker use in turn, since building one takes a third of a second.

After a test the controller gets its first state again, the window is told so, and every object of it gets the
attributes that it had when the window was new. A window that then shows anything else than at first is closed, and the
next test gets a new one: no test sees what another one did.
"""

from __future__ import annotations

import contextlib
import enum
from collections import deque
from collections.abc import Iterator
from functools import partial
from types import MethodType
from typing import Any

from PySide6.QtCore import QCoreApplication, QEvent, QMetaMethod, QModelIndex, QObject, QTimer
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractItemView, QApplication, QDialog, QMenu, QWidget
from shiboken6 import isValid

from explorer_app.messages import MessageLog
from explorer_app.settings import Settings
from explorer_app.window.docks.header_tab import HeaderTab
from explorer_app.window.look import fonts
from explorer_app.window.shell.main_window import MainWindow
from gpu_backend import ModelFacts
from tests.helpers.fake_controller import FakeController
from tests.helpers.patience import PATIENCE_MS

SIZE = (1280, 800)

_OWN = ("explorer_app.", "tests.helpers.")
"""Modules whose objects are looked into."""

_TURNS = 4
"""How often events are processed, until layouts and timers of zero have settled."""

_READ = ("text", "value", "isChecked", "currentIndex", "count", "toolTip", "minimum", "maximum", "placeholderText")
"""Methods that say what a widget shows."""

_MOST_WINDOWS = 2


def show(window: MainWindow, width: int, height: int) -> None:
    """Make all panels, and show the window at a size."""
    for dock in window.docks.values():
        dock.make_panel()
    window.resize(width, height)
    window.show_restored()
    window.resize(width, height)
    QApplication.processEvents()


def _slots(kind: type) -> tuple[str, ...]:
    return tuple(name for each in kind.__mro__ for name in getattr(each, "__slots__", ()) if not name.startswith("__"))


def _attributes(value: object) -> dict[str, Any] | None:
    """Return the attributes of an object of this project; None of another one."""
    if not type(value).__module__.startswith(_OWN) or isinstance(value, enum.Enum | type):
        return None
    if isinstance(value, QObject) and not isValid(value):
        return None
    slots = {name: getattr(value, name) for name in _slots(type(value)) if hasattr(value, name)}
    return slots | getattr(value, "__dict__", {})


class _Memento:
    """Attributes of objects of this project, and contents of the lists, sets and dictionaries that they hold."""

    def __init__(self, *roots: object) -> None:
        self.attributes: list[tuple[Any, dict[str, Any]]] = []
        self._contents: list[tuple[Any, Any]] = []
        seen: dict[int, object] = {}
        waiting = list(roots)
        while waiting:
            value = waiting.pop()
            if id(value) in seen:
                continue
            seen[id(value)] = value
            if isinstance(value, list | set | deque):
                self._contents.append((value, value.copy()))
                waiting.extend(value)
            elif isinstance(value, dict):
                self._contents.append((value, value.copy()))
                waiting.extend(value.values())
            elif isinstance(value, tuple):
                waiting.extend(value)
            elif isinstance(value, MethodType):
                waiting.append(value.__self__)
            elif isinstance(value, partial):
                waiting.extend((value.func, value.args))
            elif (attributes := _attributes(value)) is not None:
                self.attributes.append((value, attributes))
                waiting.extend(attributes.values())

    def restore(self) -> bool:
        """Put everything back; return False if something of it is gone: a widget that was replaced meanwhile."""
        for value, attributes in self.attributes:
            own = getattr(value, "__dict__", {})
            if not own.keys() <= attributes.keys():
                for name in own.keys() - attributes.keys():
                    del own[name]
            for name, kept in attributes.items():
                if name in own:
                    own[name] = kept
                elif getattr(value, name, None) is not kept:
                    object.__setattr__(value, name, kept)
        for value, contents in self._contents:
            value.clear()
            value.extend(contents) if isinstance(value, list | deque) else value.update(contents)
        return all(isValid(value) for value, _ in self.attributes if isinstance(value, QObject))


_readable: dict[str, tuple[str, ...]] = {}
"""Those of `_READ` that widgets of a class have, by the name of the class."""


def _readings(widget: QWidget) -> tuple[str, ...]:
    name = type(widget).__name__
    if name not in _readable:
        _readable[name] = tuple(each for each in _READ if hasattr(widget, each))
    return _readable[name]


def _shown(item: QObject, window: MainWindow, covered: set[QWidget]) -> Iterator[object]:
    """What an object of the window shows; `covered` are widgets of docks behind others, whose sizes mean nothing."""
    yield type(item).__name__
    if isinstance(item, QWidget) and item.isVisibleTo(window):
        yield item.isEnabled()
        if item not in covered:
            yield item.geometry().getRect()
        for name in _readings(item):
            with contextlib.suppress(TypeError):  # of a table it takes an argument
                value = getattr(item, name)()
                yield (value.row(), value.column()) if isinstance(value, QModelIndex) else value
    elif isinstance(item, QAction):
        yield item.text(), item.isChecked(), item.isEnabled(), item.isVisible(), item.toolTip()
    elif isinstance(item, QTimer):
        yield item.isActive()


def _condition(window: MainWindow) -> list[str]:
    """What all objects of the window show, in any order: raising a widget changes the order of children."""
    items = [window, *window.findChildren(QObject)]
    behind = [dock for dock in window.docks.values() if not dock.is_seen]
    covered = {item for dock in behind for item in (dock, *dock.findChildren(QWidget))}
    speaking = (QWidget, QAction, QTimer)
    return sorted(
        repr(tuple(_shown(item, window, covered))) if isinstance(item, speaking) else type(item).__name__
        for item in items
    )


_telling: dict[type, tuple[str, ...]] = {}
"""Names of the signals of a class that say that something changed."""


def _tell(source: QObject) -> None:
    """Emit the signals of an object that say that something changed."""
    kind = type(source)
    if kind not in _telling:
        meta = source.metaObject()
        methods = [meta.method(index) for index in range(meta.methodCount())]
        signals = [each for each in methods if each.methodType() == QMetaMethod.MethodType.Signal]
        names = [each.name().toStdString() for each in signals if not each.parameterCount()]
        _telling[kind] = tuple(name for name in names if name.endswith("changed") or name == "moved")
    for name in _telling[kind]:
        getattr(source, name).emit()


class SharedWindow:
    """A window over a controller that obeys at once, with all panels, of `SIZE`.

    It has the font that was chosen when it was made.

    Parameters
    ----------
    model
        The model that is open at first; None for a start without one.
    """

    def __init__(self, model: ModelFacts | None) -> None:
        self.model = model
        self.font = fonts.body().family()
        self.controller = FakeController(with_model=False)
        if model is not None:
            self.controller.show_model(model)
        self.messages = MessageLog()
        self.settings = Settings(None, self.messages)
        self.window = MainWindow(self.controller, self.settings, self.messages)  # type: ignore[arg-type]
        show(self.window, *SIZE)
        self.window.variations.hide()  # made now, as the widgets of the layers, since their tests would make them
        assert not self.window.layers.table.isVisible()
        self._settle()
        switches = [action for action in self.window.actions_by_key.values() if action.isCheckable()]
        self._switches = [(action, action.isChecked()) for action in switches]
        self._tabs = [tab for tab in self.window.findChildren(HeaderTab) if tab.isChecked()]
        roots = (self.controller, self.settings, self.messages)
        self._work = _Memento(*roots)
        self._go_back(lays_out=True)
        self._all = _Memento(*roots, self.window, *self.window.findChildren(QObject))
        self._first = _condition(self.window)

    def lend(self) -> None:
        """Show the window, active and with the focus where a new one has it."""
        self.window.show()
        self.window.activateWindow()
        QTest.qWaitForWindowActive(self.window, PATIENCE_MS)
        self.window.canvas.setFocus()
        QApplication.processEvents()
        self._work.restore()  # nothing that showing it asked for

    def reset(self) -> bool:
        """Put everything back; return whether the window is as it was when it was new."""
        if not self.window.isVisible():
            return False
        for popup in (*self.window.findChildren(QMenu), *self.window.findChildren(QDialog)):
            if popup.isVisible():
                popup.close()
        for lays_out in (False, True):
            self._go_back(lays_out=lays_out)
            if not self._all.restore():
                return False
            if _condition(self.window) == self._first:
                self.window.update()
                return True
        return False

    def _go_back(self, *, lays_out: bool) -> None:
        window = self.window
        for was_checked in (True, False):  # of those that exclude each other the first one ends the others
            for action, is_checked in self._switches:
                if is_checked is was_checked is not action.isChecked():
                    action.trigger()
        for tab in self._tabs:
            if not tab.isChecked():
                tab.click()
        for view in window.findChildren(QAbstractItemView):
            view.setCurrentIndex(QModelIndex())
        for line in (*window.message_strip.earlier.lines, *window.message_strip.lines):
            line.closed.emit()
        self._work.restore()
        window.set_picture_alone(False)
        if lays_out or window.size().toTuple() != SIZE:
            window.resize(*SIZE)
            window.workspace.restore({}, "explore")
        for source, _ in self._work.attributes:
            if isinstance(source, QObject):
                _tell(source)
        self._settle()
        self._work.restore()
        window.canvas.setFocus()

    def _settle(self) -> None:
        """Process events until layouts stand still; what would be shown in a moment is shown now."""
        for turn in range(_TURNS):
            QApplication.processEvents()
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            due = [each for each in self.window.findChildren(QTimer) if each.isSingleShot() and each.isActive()]
            if turn and not due:
                break
            for timer in due:
                if isValid(timer):
                    timer.stop()
                    timer.timeout.emit()

    def close(self) -> None:
        """Close the window for good."""
        self.window.close()
        self.window.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


class Shelf:
    """Where windows wait for the next test that wants one: those that were used last."""

    def __init__(self) -> None:
        self._windows: list[SharedWindow] = []

    @property
    def ids(self) -> set[int]:
        """Identities of the windows that are kept."""
        return {id(shared.window) for shared in self._windows}

    def lend(self, model: ModelFacts | None) -> SharedWindow:
        """Return a window that opened with this model, or with none, in the font that is chosen now."""
        font = fonts.body().family()
        for shared in [each for each in self._windows if each.font != font]:
            self.drop(shared)
        found = next((each for each in self._windows if each.model == model), None)
        if found is None:
            for shared in self._windows[_MOST_WINDOWS - 1 :]:
                self.drop(shared)
            found = SharedWindow(model)
        else:
            self._windows.remove(found)
        self.hide()  # the others
        self._windows.insert(0, found)
        found.lend()
        return found

    def take_back(self, shared: SharedWindow) -> None:
        """Keep a window if it is as when it was new."""
        if not shared.reset():
            self.drop(shared)

    def hide(self) -> None:
        """Hide the windows, since the next test has other ones."""
        for shared in self._windows:
            shared.window.hide()

    def drop(self, shared: SharedWindow) -> None:
        """Close a window that no other test is to get."""
        self._windows.remove(shared)
        shared.close()

    def close(self) -> None:
        """Close all windows."""
        for shared in self._windows[:]:
            self.drop(shared)

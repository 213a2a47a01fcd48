"""The window that tests share comes back as it was, or not at all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from shiboken6 import isValid

from explorer_app.session.edits import PLACE
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Position
from tests.helpers.fake_controller import facts
from tests.helpers.shared_window import SharedWindow, Shelf


@pytest.fixture
def own_shelf(qapp: QApplication) -> Iterator[Shelf]:
    shelf = Shelf()
    yield shelf
    shelf.close()


def edit_and_write(shared: SharedWindow) -> None:
    shared.controller.editing.edit(SetParameter(PLACE, Position(3.0, 1.0)))
    shared.controller.editing.set_drifting(True)
    shared.settings.change(theme="light")
    shared.window.status_bar.message.setText("written by a test")


def rearrange(shared: SharedWindow) -> None:
    shared.window.resize(1100, 700)
    shared.window.docks["mix"].toggleViewAction().trigger()
    QTest.keySequence(shared.window.canvas, "G")
    QTest.keySequence(shared.window.canvas, "P")
    QApplication.processEvents()


def replace_a_method(shared: SharedWindow) -> None:
    shared.window.history.show_thumbnail = None  # type: ignore[assignment, method-assign]
    shared.controller.calls.append(("nothing",))


def test_what_a_test_did_is_undone(own_shelf: Shelf) -> None:
    shared = own_shelf.lend(facts())
    calls = shared.controller.calls[:]
    for change in (edit_and_write, rearrange, replace_a_method):
        change(shared)
        own_shelf.take_back(shared)
        assert own_shelf.lend(facts()) is shared, "it shows what it showed when it was new"
        assert shared.controller.calls == calls
        assert shared.controller.editing.session.position == Position(0.0, 0.0)
        assert callable(shared.window.history.show_thumbnail)
        assert not shared.window.canvas.glides
        assert shared.settings.values.theme == "system"


def test_a_window_that_cannot_be_put_back_is_closed_and_another_model_has_another_window(own_shelf: Shelf) -> None:
    first, without = own_shelf.lend(facts()), own_shelf.lend(None)
    assert without.window.state.isVisible()
    assert not first.window.isVisible()
    assert own_shelf.lend(facts()) is first
    first.window.setFixedWidth(1000)
    own_shelf.take_back(first)
    assert not isValid(first.window)
    assert isValid(without.window)

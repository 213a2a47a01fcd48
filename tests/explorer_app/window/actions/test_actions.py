"""The table of actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import get_type_hints

import pytest
from PySide6.QtCore import QObject
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QApplication

from explorer_app.window.actions.action_table import ACTIONS, MENUS, ActionSpec
from explorer_app.window.actions.actions import enable, make_actions
from explorer_app.window.look import icons
from explorer_app.window.shell.commands import Commands
from explorer_app.window.shell.dock_table import DOCKS


class Recorder(QObject):
    """Stands for `Commands`: remembers which command was requested, as "group.method"."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def __getattr__(self, group: str) -> RecordingGroup:
        if group.startswith("_"):
            raise AttributeError(group)
        return RecordingGroup(group, self.calls)


class RecordingGroup:
    """One group of commands."""

    def __init__(self, name: str, calls: list[str]) -> None:
        self._name = name
        self._calls = calls

    def __getattr__(self, method: str) -> Callable[..., None]:
        return lambda *_: self._calls.append(f"{self._name}.{method}")


@pytest.mark.parametrize("spec", ACTIONS, ids=lambda spec: spec.key)
def test_each_line_has_a_shortcut_a_sentence_an_icon_that_exists_and_a_command(spec: ActionSpec) -> None:
    assert spec.shortcuts
    assert all(not QKeySequence(text).isEmpty() for text in spec.shortcuts)
    assert spec.tip.endswith(".")
    assert spec.tip[0].isupper()
    assert not spec.icon or spec.icon in icons.GLYPHS
    group, method = spec.command.split(".")
    assert callable(getattr(get_type_hints(Commands)[group], method))
    assert spec.menu in MENUS


def test_no_two_actions_share_a_key_or_a_shortcut() -> None:
    assert not [key for key, count in Counter(spec.key for spec in ACTIONS).items() if count > 1]
    docks = [spec.shortcut for spec in DOCKS]
    assert all(QKeySequence(text).toString() == text for text in docks)
    shortcuts = Counter(
        QKeySequence(text).toString() for text in [*docks, *(text for spec in ACTIONS for text in spec.shortcuts)]
    )
    assert not [text for text, count in shortcuts.items() if count > 1]


def test_no_two_actions_of_a_menu_share_their_letter() -> None:
    for menu in MENUS:
        rows = [spec for spec in ACTIONS if menu in (spec.menu, spec.also)]
        inside = {spec.submenu for spec in rows}
        for submenu in inside:
            titles = [spec.text for spec in rows if spec.submenu == submenu]
            if not submenu:
                titles += [title for title in inside if title]
                titles += ["Pane&ls", "&Output"] if menu == "View" else []
            letters = Counter(title[title.index("&") + 1].lower() for title in titles)
            assert not [letter for letter, count in letters.items() if count > 1], (menu, submenu)


def test_triggering_an_action_asks_for_its_command(qapp: QApplication) -> None:
    recorder = Recorder()
    actions = make_actions(recorder, recorder)
    for spec in ACTIONS:
        actions[spec.key].trigger()
    assert recorder.calls == [spec.command for spec in ACTIONS]


def test_tooltips_tell_the_shortcut(qapp: QApplication) -> None:
    recorder = Recorder()
    actions = make_actions(recorder, recorder)
    assert actions["undo"].toolTip() == "Undo the last step; one drag is one step (Ctrl+Z)."


def test_unavailable_actions_are_disabled(qapp: QApplication) -> None:
    recorder = Recorder()
    actions = make_actions(recorder, recorder)
    enable(actions, set())
    assert not actions["save-picture"].isEnabled()
    assert not actions["undo"].isEnabled()
    assert actions["open-model"].isEnabled()
    enable(actions, {"picture", "undo"})
    assert actions["save-picture"].isEnabled()
    assert actions["undo"].isEnabled()
    assert not actions["redo"].isEnabled()

"""Names of files and of what is in them: none can break a line, turn the reading direction or become HTML."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer_app.session.class_names import class_text
from explorer_app.session.direction_names import default_name
from explorer_app.settings import RecentModel
from explorer_app.window.controls.elided_label import ElidedLabel
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.model import model_text
from explorer_app.window.model.recent_menu import RecentMenu
from explorer_app.window.shell.main_window import MainWindow
from tests.helpers.fake_controller import FakeController, facts

HOSTILE = "a<b>B</b>\nSaved.\u202egnp & <img src='x'>"
SHOWN = "a<b>B</b>\\nSaved.\\u202egnp & <img src='x'>"


def test_the_name_of_a_model_stays_on_its_line_wherever_it_is_shown(
    window: MainWindow, controller: FakeController
) -> None:
    hostile = replace(facts(), name=HOSTILE, path=f"/models/{HOSTILE}.pkl", names_requested=("os\nsystem",))
    window.top_bar.show_model(hostile.name, hostile.path)
    window.model.show_model(hostile)
    assert window.model.name.text() == SHOWN
    assert "\n" not in window.top_bar.model_button.text()
    assert "\u202e" not in window.top_bar.model_button.text()
    for tip in (window.top_bar.model_button.toolTip(), window.model.name.toolTip()):
        assert "<img" not in tip
        assert "\u202e" not in tip
    texts = dict(model_text.all_facts(hostile))
    assert (texts["Name"], texts["Names requested"]) == (SHOWN, "os\\nsystem")
    assert model_text.safety_details(hostile).splitlines()[1] == "  os\\nsystem"


def test_recent_models_keep_to_their_lines(window: MainWindow) -> None:
    menu = RecentMenu(lambda: [RecentModel(f"/{HOSTILE}", HOSTILE, "")], window)
    menu.fill()
    action = menu.actions()[0]
    assert "\n" not in action.text()
    assert "<img" not in action.toolTip()


@pytest.mark.parametrize("kind", [ElidedLabel, WrappedLabel])
def test_labels_show_escapes(kind: type[ElidedLabel] | type[WrappedLabel], window: MainWindow) -> None:
    label = kind("before\u202e", window)
    assert label.text() == "before\\u202e"
    label.setText("\x1b[2J")
    assert label.text() == "\\x1b[2J"


def test_classes_and_directions_are_called_by_printable_names() -> None:
    assert class_text(0, ["cat\nforged"]) == "0 cat\\nforged"
    assert default_name("set/age\u202e") == "Age\\u202e"


def test_a_tooltip_is_never_html_of_a_file() -> None:
    assert plain_tip("plain\npath") == "plain\npath"
    assert plain_tip("<b>bold</b>\nx") == "<span>&lt;b&gt;bold&lt;/b&gt;<br>x</span>"

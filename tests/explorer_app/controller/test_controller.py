"""The Controller: its objects, and nothing that they do better themselves."""

from __future__ import annotations

from PySide6.QtCore import SIGNAL, QObject

from explorer_app.controller import Controller
from tests.helpers.controller_harness import Harness


def test_the_controller_itself_only_starts_and_closes() -> None:
    public = {name for name in vars(Controller) if not name.startswith("_") and name != "staticMetaObject"}
    assert public == {"start", "restore_last", "close"}


def test_each_object_has_signals_of_its_own(harness: Harness) -> None:
    controller = harness.controller
    for part, signals in {
        controller.engine: {"model_changed", "options_changed", "comparison_changed"},
        controller.engine.model: {"loading_changed"},
        controller.engine.devices: {"changed"},
        controller.engine.preview: {"frame_changed", "statistics_changed"},
        controller.editing: {"session_changed", "history_changed", "drifting_changed"},
        controller.export: {"changed"},
        controller.directions: {"changed"},
        controller.thumbnails: {"changed"},
        controller.whole_pictures: {"changed"},
    }.items():
        assert isinstance(part, QObject)
        assert signals <= set(dir(part))


def test_a_frame_reaches_the_controller_in_two_calls_and_a_grid_only_while_it_is_shown(open_harness: Harness) -> None:
    controller = open_harness.controller
    harness_itself = 1

    def receivers() -> int:
        return controller.engine.preview.receivers(SIGNAL("frame_changed()")) - harness_itself

    assert receivers() == 2
    for _ in range(2):
        controller.grid.set_on(True)
        assert receivers() == 3
        controller.grid.set_on(False)
        assert receivers() == 2

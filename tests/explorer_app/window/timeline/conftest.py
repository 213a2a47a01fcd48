"""A timeline's panel for its tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from explorer_app.window.timeline.timeline_panel import TimelinePanel
from explorer_app.window.timeline.timeline_view import TimelineView
from tests.helpers.panels import Edits, model_directions, model_facts
from tests.helpers.timelines import piece


@pytest.fixture
def edits(qtbot: QtBot) -> Iterator[Edits]:
    panel = TimelinePanel()
    qtbot.addWidget(panel)
    panel.show_model(model_facts(), model_directions(4))
    panel.resize(1000, 320)
    panel.show()
    heard = Edits(panel, piece())
    yield heard
    panel.close()


@pytest.fixture
def view(edits: Edits) -> TimelineView:
    found: TimelineView = edits.panel.view
    return found

"""Channels of layers from the render thread to the panel, and drafts of edited pictures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer_app.controller.drafts import draft_with_edits
from explorer_app.controller.thumbnail_service import thumbnail_request
from explorer_app.session.edits import AddBend
from explorer_app.session.local_edits import bendable_layers
from gpu_backend import NO_EDITS, Bend, ChannelMaps, DeviceError, LocalEdits, RenderRequest, StyleOffset
from tests.helpers.controller_harness import Harness
from tests.helpers.fake_controller import facts
from tests.helpers.panels import model_facts


def test_the_channels_that_were_requested_arrive_or_why_there_are_none(harness: Harness) -> None:
    harness.start()
    local = harness.controller.local_editing
    made: list[ChannelMaps] = []
    failures: list[str] = []
    local.maps_made.connect(made.append)
    local.maps_failed.connect(failures.append)
    local.request_maps("b8.conv0")
    harness.until(lambda: made)
    assert made[0].layer == "b8.conv0"
    assert local.maps is made[0]
    harness.engine.failing = DeviceError("The device is busy.")
    local.request_maps("b4.conv1")
    harness.until(lambda: failures)
    harness.engine.failing = None
    assert failures == ["The device is busy."]


def test_a_bend_reaches_the_renderer_and_is_one_step_of_undo(harness: Harness) -> None:
    harness.start()
    editing = harness.controller.editing
    model = harness.controller.engine.model.facts
    assert model is not None
    layer = next(iter(bendable_layers(model)))
    editing.edit(AddBend(layer, "gain", (0,)))
    harness.until(lambda: (frame := harness.controller.engine.preview.frame) and frame.request.edits != NO_EDITS)
    editing.undo()
    assert editing.session.bends == ()


@pytest.mark.parametrize(
    ("layer", "resolution", "draft"),
    [("b8.conv0", 16, 16), ("b16.conv1", 16, 32), ("b32.conv0", 16, None), ("b8.conv0", None, None)],
)
def test_a_draft_goes_beyond_the_layers_that_are_edited(layer: str, resolution: int | None, draft: int | None) -> None:
    model = replace(model_facts(64), draft_resolutions=(16, 32))
    bends, offsets = LocalEdits((Bend(layer, "gain", 2.0),)), LocalEdits((), (StyleOffset(layer, 0, 1.0),))
    assert draft_with_edits(resolution, bends, model) == draft
    assert draft_with_edits(resolution, offsets, model) == draft
    assert draft_with_edits(resolution, NO_EDITS, model) == resolution


def test_a_thumbnail_keeps_the_edits_that_its_model_has() -> None:
    model = facts()
    layer = next(iter(bendable_layers(model)))
    edits = LocalEdits((Bend(layer, "gain", 2.0), Bend("b999.conv0", "gain", 2.0)))
    assert thumbnail_request(RenderRequest("other", edits=edits), model).edits == LocalEdits(edits.bends[:1])

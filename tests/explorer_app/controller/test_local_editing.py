"""Channels of layers from the render thread to the panel, and drafts of edited pictures."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from explorer_app.controller.drafts import draft_with_edits
from explorer_app.controller.local_editing import NO_MASK, LocalEditing
from explorer_app.controller.thumbnail_service import thumbnail_request
from explorer_app.messages import MessageLog
from explorer_app.session.edits import AddBend, GoToSeed
from explorer_app.session.local_edits import StyleChannel, bendable_layers
from explorer_app.session.parameters import SetParameter
from explorer_app.session.picture_mask import inverted
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Session
from gpu_backend import (
    MAX_BLENDS,
    NO_EDITS,
    Bend,
    ChannelMaps,
    DeviceError,
    FoundStyle,
    LocalEdits,
    Point,
    RenderRequest,
    StoredLatent,
    StyleOffset,
    TorchError,
    Transform,
)
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


class ScriptedSearch:
    """Finds one channel with its second pass; `error` ends it instead."""

    def __init__(self, error: Exception | None = None) -> None:
        self.passes = 0
        self.error = error

    @property
    def share(self) -> float:
        return self.passes / 2

    def step(self) -> tuple[FoundStyle, ...] | None:
        self.passes += 1
        if self.error is not None:
            raise self.error
        return (FoundStyle("b8.conv0", 3, 1.0, 0.1, 6.5),) if self.passes == 2 else None


BENT = SetParameter("bend/1/gain", 2.0).apply(AddBend("b8.conv0", "gain").apply(Session(mask=inverted(None))))


@dataclass
class FakeEditing:
    """What the search needs of `Editing`."""

    session: Session
    shown_latent: StoredLatent | None = field(default_factory=lambda: StoredLatent(bytes(16), 1, 4))

    def edit(self, edit: Any) -> None:
        self.session = edit.apply(self.session)


@pytest.fixture
def searching(qtbot: QtBot) -> Iterator[tuple[LocalEditing, FakeEditing, MessageLog]]:
    editing, messages = FakeEditing(BENT), MessageLog()
    renders = SimpleNamespace(model=SimpleNamespace(facts=SimpleNamespace(model_id="")))
    local = LocalEditing(renders, editing, lambda sessions, take: None, messages)  # type: ignore[arg-type]
    yield local, editing, messages
    local.close()


def test_a_search_shows_the_channels_of_the_painted_region_as_sliders(
    searching: tuple[LocalEditing, FakeEditing, MessageLog], qtbot: QtBot
) -> None:
    local, editing, messages = searching
    masks: list[float] = []
    made: list[LocalEdits] = []

    def make(model: object, noise: object, edits: LocalEdits, latent: object, mask: np.ndarray) -> ScriptedSearch:
        made.append(edits)
        masks.append(float(mask.mean()))
        return ScriptedSearch()

    local.make_search = make
    painted, editing.session = editing.session, Session()
    local.find_style_channels()
    assert not local.is_searching
    assert messages.messages[-1].sentence == NO_MASK
    editing.session = painted
    local.find_style_channels()
    assert local.is_searching
    assert local.text
    qtbot.waitUntil(lambda: not local.is_searching)
    assert editing.session.style_channels == (StyleChannel("b8.conv0", 3, 0.0, 6.5),)
    assert masks == [1.0]
    assert made == [resolve(BENT).edits], "the region is that of the picture with its edits"
    assert local.text == ""


def test_a_search_that_fails_or_is_stopped_leaves_the_session(
    searching: tuple[LocalEditing, FakeEditing, MessageLog], qtbot: QtBot
) -> None:
    local, editing, messages = searching
    local.make_search = lambda *parts: ScriptedSearch(TorchError("PyTorch is missing."))
    local.find_style_channels()
    qtbot.waitUntil(lambda: not local.is_searching)
    assert messages.messages[-1].sentence == "PyTorch is missing."
    local.make_search = lambda *parts: ScriptedSearch(RuntimeError("DefaultCPUAllocator: can't allocate memory"))
    local.find_style_channels()
    qtbot.waitUntil(lambda: not local.is_searching)
    assert "not enough memory" in messages.messages[-1].sentence
    gate = threading.Event()

    def waits(*parts: object) -> ScriptedSearch:
        gate.wait()
        return ScriptedSearch()

    local.make_search = waits
    local.find_style_channels()
    local.stop_search()
    gate.set()
    assert not local.is_searching
    local.close()
    assert editing.session.style_channels == ()
    editing.shown_latent = None
    local.find_style_channels()
    assert "wait a moment" in messages.messages[-1].sentence


def test_another_model_ends_a_search(searching: tuple[LocalEditing, FakeEditing, MessageLog], qtbot: QtBot) -> None:
    local, editing, messages = searching
    local.forget()
    assert not messages.messages
    gate = threading.Event()

    def waits(*parts: object) -> ScriptedSearch:
        gate.wait()
        return ScriptedSearch()

    local.make_search = waits
    local.find_style_channels()
    local.forget()
    gate.set()
    assert not local.is_searching
    assert "another model" in messages.messages[-1].sentence
    local.make_search = lambda *parts: ScriptedSearch()
    local.find_style_channels()
    qtbot.waitUntil(lambda: not local.is_searching)
    assert len(editing.session.style_channels) == 1, "the new search, and not the former one"


def test_a_region_of_a_transformed_picture_is_not_searched(
    searching: tuple[LocalEditing, FakeEditing, MessageLog],
) -> None:
    local, editing, messages = searching
    editing.session = replace(editing.session, transform=Transform(degrees=20.0))
    local.find_style_channels()
    assert not local.is_searching
    assert "reset the transform first" in messages.messages[-1].sentence


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


def test_seeds_kept_pictures_and_what_is_shown_become_second_latents(harness: Harness) -> None:
    harness.start()
    editing, local = harness.controller.editing, harness.controller.local_editing
    needed: list[int] = []
    local.mask_needed.connect(needed.append)
    local.blend_with_seed(7)
    (blend,) = editing.session.blends
    assert (blend.latent.point, blend.label, blend.mask) == (Point(((7, 1.0),)), "seed 7", None)
    editing.edit(SetParameter("mask", inverted(None)))
    editing.edit(GoToSeed(9))
    local.blend_with_shown()
    assert editing.session.blends[1].latent.point == Point(((9, 1.0),))
    assert editing.session.blends[1].mask == inverted(None), "what is frozen is the first mask"
    assert editing.session.mask is None, "it is frozen no longer"
    editing.undo()
    assert (len(editing.session.blends), editing.session.mask) == (1, inverted(None)), "one step of undo"
    editing.redo()
    entry = editing.history.current
    assert entry is not None
    editing.kept.star(entry.number, True)
    editing.edit(GoToSeed(3))
    local.blend_with_kept(entry.number, 1)
    assert editing.session.blends[0].latent.point == Point(((9, 1.0),))
    assert editing.session.blends[0].number == 1
    editing.undo()
    assert editing.session.blends[0].label == "seed 7", "latent and name are one step"
    local.blend_with_seed(11)
    local.blend_with_seed(12)
    assert len(editing.session.blends) == MAX_BLENDS == 3
    assert "at most 3 blends" in harness.messages.messages[-1].sentence
    assert needed == [1, 3], "nothing is frozen any more when the third one is added"


def test_a_picture_between_two_latents_becomes_a_second_latent_as_it_is_shown(harness: Harness) -> None:
    harness.engine.gives_rows = True
    harness.start()
    editing = harness.controller.editing
    first, second = (resolve(GoToSeed(seed).apply(editing.session)).blend[0][0] for seed in (3, 4))
    editing.edit(SetParameter("pinned_blend", ((first, 0.5), (second, 0.5))))
    harness.rest()
    shown = editing.shown_latent
    assert shown is not None
    harness.controller.local_editing.blend_with_shown(0)
    assert editing.session.blends[0].latent.point == shown
    harness.rest()

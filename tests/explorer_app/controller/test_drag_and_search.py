"""A point drag and a search for a photo at the same time: the window behind the dialog of a search stays usable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from explorer_app.controller import PhotoProjection, PointDrag
from explorer_app.session.edited_latent import TakeBlendRows, edited_latent
from explorer_app.session.edits import AddBlend
from explorer_app.session.model_files import ModelFiles
from explorer_app.session.parameters import SetParameter
from explorer_app.session.resolve import resolve_blend
from explorer_app.session.timeline.edits import SetTimeline, with_state
from explorer_app.session.tracks import Timeline
from gpu_backend import MASK_SIDE, Crop, Latent, LocalEdits, Noise, PictureMask, Recipe, StoredLatent
from tests.helpers.controller_harness import Harness
from tests.helpers.fake_drag import FakeDragMaker, FakeDragRenders
from tests.helpers.fake_projection import FakeProjection, FakeProjectionRenders


@dataclass
class Both:
    """Both over one controller that is at rest."""

    harness: Harness
    drags: FakeDragRenders
    drag: PointDrag
    searches: FakeProjectionRenders
    projection: PhotoProjection

    @property
    def rows(self) -> float:
        edited = edited_latent(self.harness.controller.editing.session)
        assert edited is not None
        return float(np.frombuffer(edited.rows.rows, "<f4")[0])

    @property
    def shown_rows(self) -> float:
        ((recipe, _),) = resolve_blend(self.harness.controller.editing.session)
        assert isinstance(recipe.latent.point, StoredLatent)
        return float(np.frombuffer(recipe.latent.point.rows, "<f4")[0])

    def search(self, steps: int) -> None:
        assert self.projection.begin(Path("/photos/my garden.jpg"), Crop(1.0, 2.0, 30.0))
        self.searches.advance(steps)

    def pull(self, steps: int) -> None:
        assert self.drag.begin((4.0, 4.0))
        self.drag.aim(30.0, 0.0)
        for _ in range(steps):
            self.drags.advance()


@pytest.fixture
def both(harness: Harness) -> Iterator[Both]:
    harness.engine.gives_rows = True
    harness.start()
    controller = harness.controller
    engine, editing = controller.engine, controller.editing
    facts = engine.model.facts
    assert facts is not None
    width, maker = facts.w_dim, FakeDragMaker()
    drags, searches = FakeDragRenders(), FakeProjectionRenders()
    drag = PointDrag(
        drags,
        engine.model,
        engine.preview,
        editing,
        controller.playback,
        harness.messages,
        lambda: maker,
        lambda: harness.now_s,
    )

    def make(
        model: object, noise: Noise, edits: LocalEdits, path: Path, crop: Crop, *, tune: Callable[[], bool] | None
    ) -> FakeProjection:
        searches.make(model, noise, edits, path, crop, tune=tune)
        return FakeProjection(searches.steps, width)

    projection = PhotoProjection(
        searches,
        editing,
        controller.playback,
        harness.messages,
        searches.worker,  # type: ignore[arg-type]
        ModelFiles(None, None),
        searches.opened.append,
        make,
        lambda: harness.now_s,
    )
    drags.point_drag, searches.projection = drag, projection
    zeros = StoredLatent(np.zeros((1, width), "<f4").tobytes(), 1, width)
    editing.edit(SetParameter("pinned_blend", ((Recipe(Latent(zeros)), 1.0),)))
    harness.rest()
    yield Both(harness, drags, drag, searches, projection)
    drag.close()
    projection.close()


def test_a_stroke_ends_a_search_with_what_it_has_found(both: Both) -> None:
    before = list(both.harness.labels)
    both.search(2)
    both.pull(1)
    assert (both.projection.phase, both.drag.phase) == ("rest", "moving")
    assert both.harness.labels == [*before, "From my garden"]
    both.searches.advance(2)
    both.drags.advance()
    both.drag.finish()
    assert both.harness.labels == [*before, "From my garden", "Drag a point"]
    both.harness.controller.editing.undo()
    assert both.rows == 2.0, "what was found"


def test_a_search_ends_a_stroke_that_settles_with_what_it_has_reached(both: Both) -> None:
    before = list(both.harness.labels)
    both.pull(2)
    both.drag.release()
    both.harness.rest()
    both.search(2)
    assert (both.projection.phase, both.drag.phase, both.drags.drag) == ("searching", "rest", None)
    assert both.harness.labels == [*before, "Drag a point"]
    both.projection.finish()
    assert both.harness.labels == [*before, "Drag a point", "From my garden"]
    both.harness.controller.editing.undo()
    assert both.rows == 2.0, "where the stroke led"


def test_what_a_search_has_found_stays_on_the_screen_if_the_timeline_played_meanwhile(both: Both) -> None:
    editing, playback = both.harness.controller.editing, both.harness.controller.playback
    timeline = with_state(with_state(Timeline(), editing.session, Fraction(0)), editing.session, Fraction(10))
    editing.edit(SetTimeline(timeline))
    both.harness.rest()
    both.search(2)
    playback.set_playing(True)
    both.searches.advance(both.searches.steps)
    assert both.projection.phase == "rest"
    both.harness.now_s += 1.0
    playback._tick()
    assert both.rows == both.searches.steps
    assert not playback.is_playing


@pytest.mark.parametrize("how", ["settles", "another edit"])
def test_what_a_stroke_has_led_to_stays_on_the_screen_if_the_timeline_played_meanwhile(both: Both, how: str) -> None:
    editing, playback = both.harness.controller.editing, both.harness.controller.playback
    timeline = with_state(with_state(Timeline(), editing.session, Fraction(0)), editing.session, Fraction(10))
    editing.edit(SetTimeline(timeline))
    both.harness.rest()
    both.pull(1)
    both.drag.release()
    playback.set_playing(True)
    if how == "settles":
        both.drags.run_to_rest()
    else:
        editing.edit(SetParameter("noise.gain", 0.5))
    assert both.drag.phase == "rest"
    assert "Drag a point" in both.harness.labels
    reached = both.rows
    assert playback.is_playing == (how == "another edit"), "that one does not concern the drag"
    both.harness.now_s += 1.0
    playback._tick()
    if how == "settles":
        assert both.rows == reached


@pytest.mark.parametrize("with_blend", [False, True])
def test_strokes_after_a_search_fade_back_to_what_was_found(both: Both, with_blend: bool) -> None:
    editing = both.harness.controller.editing
    both.search(2)
    both.projection.finish()
    if with_blend:  # a stroke of its second picture is a step of the same name
        mask = PictureMask(bytes(MASK_SIDE**2))
        editing.edit(AddBlend(Latent(), mask, "seed 0"))
        found = edited_latent(editing.session)
        assert found is not None
        editing.edit(TakeBlendRows(editing.session.blends[0].number, found.rows))
    for rows in (3.0, 4.0):
        both.harness.rest()
        both.pull(1)
        both.drag.finish()
        assert both.rows == rows
    both.drag.fade(0.0)
    assert both.shown_rows == 2.0

"""The search for a photo's latent over the real session and history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from explorer_app.controller import PhotoProjection
from explorer_app.messages import Level
from explorer_app.rendering.render_events import ProjectionAdvanced
from explorer_app.session.edited_latent import edited_latent
from explorer_app.session.edits import GoToSeed
from gpu_backend import Crop, ProjectionReport, RequestError
from tests.helpers.controller_harness import Harness
from tests.helpers.fake_projection import FakeProjection, FakeProjectionRenders

CROP = Crop(1.0, 2.0, 30.0)


@dataclass
class Search:
    """A search over a controller that is at rest, and what it is tested with."""

    harness: Harness
    renders: FakeProjectionRenders
    projection: PhotoProjection
    ends: list[bool]

    @property
    def rows(self) -> float | None:
        edited = edited_latent(self.harness.controller.editing.session)
        return None if edited is None else float(np.frombuffer(edited.rows.rows, "<f4")[0])

    def begin(self) -> None:
        assert self.projection.begin(Path("/photos/my garden.jpg"), CROP)


@pytest.fixture
def search(harness: Harness) -> Iterator[Search]:
    harness.engine.gives_rows = True
    harness.start()
    controller = harness.controller
    facts = controller.engine.model.facts
    assert facts is not None
    width = facts.w_dim
    renders = FakeProjectionRenders()

    def make(model: object, noise: object, path: Path, crop: Crop) -> FakeProjection:
        renders.make(model, noise, path, crop)  # type: ignore[arg-type]
        return FakeProjection(renders.steps, width)

    projection = PhotoProjection(
        renders, controller.editing, controller.playback, harness.messages, make, lambda: harness.now_s
    )
    renders.projection = projection
    ends: list[bool] = []
    projection.ended.connect(ends.append)
    yield Search(harness, renders, projection, ends)
    projection.close()


def test_the_best_latent_shows_while_it_is_searched_and_the_end_is_one_step_that_is_kept(search: Search) -> None:
    before = list(search.harness.labels)
    search.begin()
    assert search.renders.calls == [(Path("/photos/my garden.jpg"), CROP)]
    search.renders.advance(2)
    assert search.rows == 2.0
    assert search.harness.labels == before
    search.renders.advance(3)
    assert search.rows == 5.0
    assert search.harness.labels == [*before, "From my garden"]
    assert [entry.label for entry in search.harness.controller.editing.history.kept] == ["my garden"]
    assert search.ends == [True]
    search.harness.controller.editing.undo()
    assert search.rows is None


def test_stopping_keeps_the_best_so_far(search: Search) -> None:
    search.begin()
    search.renders.advance(3)
    search.projection.stop()
    assert search.rows == 3.0
    assert search.harness.labels[-1] == "From my garden"
    assert search.projection.phase == "rest"


def test_cancelling_brings_the_picture_back(search: Search) -> None:
    before = list(search.harness.labels)
    search.begin()
    search.renders.advance(2)
    search.projection.cancel()
    assert search.rows is None
    assert search.harness.labels == before
    assert search.ends == [False]


def test_an_edit_from_elsewhere_ends_the_search_with_what_it_has_found(search: Search) -> None:
    search.begin()
    search.renders.advance(2)
    search.harness.controller.editing.edit(GoToSeed(9))
    assert search.harness.labels[-2:] == ["From my garden", "Go to seed"]
    search.renders.advance(2)
    assert search.harness.controller.editing.session.position.x == 9.0, "its reports no longer count"


def test_undo_during_a_search_reverts_it(search: Search) -> None:
    search.begin()
    search.renders.advance(2)
    search.harness.controller.editing.undo()
    assert search.rows is None
    assert search.projection.phase == "rest"


def test_step_loss_and_time_left_are_told(search: Search) -> None:
    search.renders.steps = 100
    assert search.projection.text == ""
    search.begin()
    assert "network is opened" in search.projection.text
    before = ProjectionReport("random", 0, 500, float("inf"), 32)
    search.projection.take_advanced(ProjectionAdvanced(search.renders.number, before, None))
    assert search.projection.text == "Preparing: drafts are matched to pictures.", "there is no loss yet"
    for _ in range(11):
        search.renders.advance()
        search.harness.now_s += 2.0
    assert search.projection.text == "Each layer's row: 11 of 100, loss 0.091, at least 3 min 16 s left"
    assert search.projection.share == pytest.approx(0.1 + 0.9 * 0.11)


def test_a_photo_that_cannot_be_read_says_so_and_leaves_the_picture(search: Search) -> None:
    before = list(search.harness.labels)
    search.renders.error = RequestError("garden.jpg should be a picture.")
    search.projection.begin(Path("garden.jpg"), CROP)
    assert search.harness.said(Level.ERROR) == ["garden.jpg should be a picture."]
    assert (search.harness.labels, search.ends, search.projection.phase) == (before, [False], "rest")


def test_without_a_model_nothing_begins(search: Search) -> None:
    search.renders.model = None
    assert not search.projection.begin(Path("garden.jpg"), CROP)
    assert "wait a moment" in search.harness.said(Level.WARNING)[-1]


def test_a_search_on_the_real_render_thread(harness: Harness) -> None:
    harness.engine.gives_rows = True
    harness.make_projection = lambda model, noise, path, crop: FakeProjection(4, model.facts.w_dim)
    harness.start()
    projection = harness.controller.photo_projection
    assert projection.begin(Path("garden.jpg"), CROP)
    harness.until(lambda: projection.phase == "rest")
    assert harness.labels[-1] == "From garden"


def test_a_picture_without_a_recipe_is_a_photo_when_it_is_dropped_and_an_error_when_it_is_restored(
    open_harness: Harness,
) -> None:
    from PIL import Image

    files = open_harness.controller.files
    opened: list[Path] = []
    files.photo_opened.connect(opened.append)
    path = open_harness.folder / "photo.png"
    Image.new("RGB", (20, 20)).save(path)
    files.open(path)
    open_harness.until(lambda: opened)
    assert opened == [path]
    files.open(open_harness.folder / "photo.bmp")
    assert opened[-1] == open_harness.folder / "photo.bmp"
    files.open_picture(path)
    open_harness.until(lambda: open_harness.said(Level.ERROR))
    assert "holds no Latent Loom recipe" in open_harness.said(Level.ERROR)[-1]

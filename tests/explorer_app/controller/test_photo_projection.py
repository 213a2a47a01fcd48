"""The search for a photo's latent over the real session and history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from explorer_app.controller import ExportProgress, PhotoProjection, photo_projection
from explorer_app.controller.photo_projection import _project
from explorer_app.messages import Level
from explorer_app.rendering.render_events import ProjectionAdvanced, ProjectionEnded
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.session.edited_latent import FadeEdit, edited_latent
from explorer_app.session.edits import AddBend, Edit, GoToSeed, set_transform
from explorer_app.session.model_files import ModelFiles
from explorer_app.session.parameters import SetParameter
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Session
from explorer_app.session.timeline.edits import SetTimeline
from explorer_app.session.tracks import WALK, Timeline, Track
from gpu_backend import (
    Bend,
    Crop,
    LocalEdits,
    Noise,
    Projection,
    ProjectionReport,
    RequestError,
    StoredLatent,
    Tap,
    Transform,
    TunedProjection,
    read_model,
    write_safetensors,
)
from tests.helpers.controller_harness import Harness
from tests.helpers.fake_projection import FakeProjection, FakeProjectionRenders
from tests.helpers.networks import make_stylegan2

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

    def make(
        model: object, noise: Noise, edits: LocalEdits, path: Path, crop: Crop, *, tune: Callable[[], bool] | None
    ) -> FakeProjection:
        renders.make(model, noise, edits, path, crop, tune=tune)
        return FakeProjection(renders.steps, width)

    projection = PhotoProjection(
        renders,
        controller.editing,
        controller.playback,
        harness.messages,
        renders.worker,  # type: ignore[arg-type]
        ModelFiles(None, None),
        renders.opened.append,
        make,
        lambda: harness.now_s,
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


def test_the_pictures_of_a_search_delay_no_thumbnails(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    by_hand: list[bool] = []
    submit = RenderThread.submit

    def noted(thread: RenderThread, *arguments: Any, **options: Any) -> None:
        by_hand.append(options["by_hand"])
        submit(thread, *arguments, **options)

    search.begin()
    monkeypatch.setattr(RenderThread, "submit", noted)
    search.renders.advance(2)
    assert by_hand == [False, False]
    search.harness.controller.editing.edit(GoToSeed(7))
    assert by_hand == [False, False, True]


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_an_edit_before_the_search_is_part_of_the_picture_that_a_fade_goes_back_to(
    search: Search, share: float
) -> None:
    editing = search.harness.controller.editing
    search.begin()
    search.renders.advance(2)
    search.projection.finish()
    editing.edit(FadeEdit(share))
    search.harness.rest()
    shown = editing.shown_latent
    assert shown is not None
    search.begin()
    search.renders.advance(3)
    edited = edited_latent(editing.session)
    assert edited is not None
    before = edited.before.latent.point
    assert isinstance(before, StoredLatent)
    assert before.rows == shown.rows[: len(before.rows)], "the fake search finds one row for all layers"


def test_a_search_compares_pictures_with_the_edits_and_its_result_keeps_them(search: Search) -> None:
    editing = search.harness.controller.editing
    editing.edit(AddBend("b8.conv0", "gain"))
    editing.edit(SetParameter("bend/1/gain", 2.0))
    search.begin()
    search.renders.advance(5)
    assert search.renders.edits == [LocalEdits((Bend("b8.conv0", "gain", 2.0),))]
    assert resolve(editing.session).edits == search.renders.edits[0]
    assert search.rows == 5.0


@pytest.mark.parametrize("tune", [False, True])
def test_the_network_of_a_search_has_the_edits(tmp_path: Path, tune: bool, caplog: pytest.LogCaptureFixture) -> None:
    photo = tmp_path / "garden.png"
    Image.new("RGB", (16, 16), (90, 140, 60)).save(photo)
    edits = LocalEdits((Bend("b8.conv0", "gain", 2.0),))
    found = _project(
        ModelFiles(None, None),
        make_stylegan2(resolution=16),
        Noise(),
        edits,
        photo,
        CROP,
        tune=(lambda: False) if tune else None,
    )
    assert isinstance(found, TunedProjection if tune else Projection)
    assert found._network.edits == edits
    assert "without its discriminator" in caplog.text, "the file of this model was never written"
    caplog.clear()


def test_the_time_left_follows_the_pace_of_the_newest_steps(search: Search) -> None:
    search.renders.steps = 200
    search.begin()
    for seconds in [0.1] * 50 + [2.0] * 14:
        search.renders.advance()
        search.harness.now_s += seconds
    assert search.projection.seconds_left == pytest.approx(2.0 * 12 / 11 * 136)


def test_what_a_search_finds_is_shown_in_full(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    preview = search.harness.controller.engine.preview
    live: list[bool] = []
    request = preview.request

    def recorded(session: Session, **options: bool) -> None:
        live.append(options["live"])
        request(session, **options)

    monkeypatch.setattr(preview, "request", recorded)
    search.begin()
    search.renders.advance(3)
    assert live == [False] * 3


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


@pytest.mark.parametrize("index", [None, 3])
def test_redo_during_a_search_ends_it_with_what_it_has_found(search: Search, index: int | None) -> None:
    editing = search.harness.controller.editing
    for seed in (3, 5, 7):
        editing.edit(GoToSeed(seed))
    for _ in range(3):
        editing.undo()
    search.harness.rest()
    search.begin()
    search.renders.advance(2)
    found = search.rows
    editing.redo() if index is None else editing.go_to(index)
    assert (search.projection.phase, search.rows) == ("rest", found)
    assert search.harness.labels[-1] == "From my garden"
    assert [entry.label for entry in editing.history.kept] == ["my garden"]
    assert search.ends == [True]
    search.renders.advance(2)
    assert search.rows == found, "its reports no longer count"


def test_step_loss_and_time_left_are_reported(search: Search) -> None:
    search.renders.steps = 100
    assert search.projection.text == ""
    search.begin()
    assert "opening the network" in search.projection.text
    before = ProjectionReport("drafts", 3, 12, float("inf"), 32)
    search.projection.take_advanced(ProjectionAdvanced(search.renders.number, before, None))
    assert search.projection.text == "Matching drafts to pictures: 3 of 12", "there is no loss yet"
    assert search.projection.share == 0.0
    for _ in range(11):
        search.renders.advance()
        search.harness.now_s += 2.0
    assert search.projection.text == "Each layer's row: 11 of 100, loss 0.091, at least 3 min 16 s left"
    assert search.projection.share == pytest.approx(0.1 + 0.9 * 0.11)


def test_a_photo_that_cannot_be_read_reports_it_and_leaves_the_picture(search: Search) -> None:
    before = list(search.harness.labels)
    search.renders.error = RequestError("garden.jpg should be a picture.")
    search.projection.begin(Path("garden.jpg"), CROP)
    assert search.harness.said(Level.ERROR) == ["garden.jpg should be a picture."]
    assert (search.harness.labels, search.ends, search.projection.phase) == (before, [False], "rest")


def test_a_model_that_is_tuned_is_kept_beside_the_model_and_opened(search: Search, tmp_path: Path) -> None:
    path = tmp_path / "hills.safetensors"
    write_safetensors(make_stylegan2(), path)
    model = read_model(path)
    search.renders.model = model
    changes = {"synthesis.b4.torgb.bias": np.full_like(model.weights["synthesis.b4.torgb.bias"], 0.5)}
    assert search.projection.begin(Path("/photos/lake.jpg"), CROP, tune=True)
    assert search.renders.tuned == [True]
    number, work = search.renders.number, search.renders.work
    work.report = ProjectionReport("rows", 150, 300, 0.5, 64)
    search.projection.take_advanced(ProjectionAdvanced(number, work.report, work.latent))
    assert search.projection.share == pytest.approx(0.5 * 0.55)
    search.projection.take_advanced(ProjectionAdvanced(number, ProjectionReport("weights", 75, 150, 0.1, 64), None))
    assert search.projection.share == pytest.approx(0.75)
    assert search.projection.text.startswith("Weights of the model: 75 of 150, loss 0.100")
    for _ in range(2):
        search.projection.finish()
        search.harness.rest()
        assert search.projection.begin(Path("/photos/lake.jpg"), CROP, tune=True)
        search.projection.take_ended(ProjectionEnded(search.renders.number, work.latent, changes))
    names = ["hills.lake.safetensors", "hills.lake 2.safetensors"]
    assert search.renders.opened == [tmp_path / name for name in names]
    tuned = read_model(tmp_path / names[0])
    np.testing.assert_allclose(
        tuned.weights["synthesis.b4.torgb.bias"], model.weights["synthesis.b4.torgb.bias"] + 0.5, atol=1e-3
    )
    assert "tuned to lake" in search.harness.said(Level.INFO)[-1]


@pytest.mark.parametrize("tune", [False, True])
def test_a_search_that_is_stopped_before_its_tuning_says_that_nothing_was_tuned(search: Search, tune: bool) -> None:
    assert search.projection.begin(Path("/photos/lake.jpg"), CROP, tune=tune)
    search.renders.advance(2)
    assert search.projection.tuning_is_ahead == tune
    search.projection.stop()
    said = search.harness.said(Level.INFO)[-1]
    assert said.startswith("The latent of lake is kept")
    assert ("kept without a tuned model, since the search was ended early;" in said) == tune
    assert not search.projection.tuning_is_ahead


@pytest.mark.parametrize("tune", [False, True])
def test_a_tuning_can_begin_before_the_search_is_done_once_something_was_found(search: Search, tune: bool) -> None:
    projection, renders = search.projection, search.renders
    for _ in range(2):  # the second search does not remember the wish of the first
        assert projection.begin(Path("/photos/lake.jpg"), CROP, tune=tune)
        projection.tune_now()
        assert not renders.tunes_now(), "there is nothing to tune to yet"
        renders.advance(2)
        assert projection.can_tune_now == tune
        projection.tune_now()
        assert renders.tunes_now() == tune
        assert not projection.can_tune_now
        projection.stop()
        search.harness.rest()


def test_without_a_model_nothing_begins(search: Search) -> None:
    search.renders.model = None
    assert not search.projection.begin(Path("garden.jpg"), CROP)
    assert "wait a moment" in search.harness.said(Level.WARNING)[-1]


def test_a_search_on_the_real_render_thread(harness: Harness) -> None:
    harness.engine.gives_rows = True
    harness.make_projection = lambda model, noise, edits, path, crop, tune: FakeProjection(4, model.facts.w_dim)
    harness.start()
    projection = harness.controller.photo_projection
    assert projection.begin(Path("garden.jpg"), CROP)
    harness.until(lambda: projection.phase == "rest")
    assert harness.labels[-1] == "From garden"


def test_another_model_ends_the_search_with_what_it_has_found(harness: Harness) -> None:
    harness.engine.gives_rows = True
    harness.make_projection = lambda model, noise, edits, path, crop, tune: FakeProjection(10**9, model.facts.w_dim)
    harness.start()
    editing, projection = harness.controller.editing, harness.controller.photo_projection
    assert projection.begin(Path("garden.jpg"), CROP)
    harness.until(lambda: edited_latent(editing.session) is not None)
    harness.open("dogs")
    assert projection.phase == "rest"
    assert harness.labels[-2:] == ["From garden", "Open dogs"]
    assert [entry.label for entry in editing.history.kept] == ["garden"]
    assert editing.history.kept[0].session.model.name == "cats"


def test_a_tuned_model_has_to_wait_for_an_export(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    class Tuned(FakeProjection):
        def changes(self) -> dict[str, np.ndarray]:
            return {"synthesis.b4.torgb.bias": np.zeros(3, np.float32)}

    harness.engine.gives_rows = True
    harness.make_projection = lambda model, noise, edits, path, crop, tune: Tuned(4, model.facts.w_dim)
    written = harness.path("dogs")
    monkeypatch.setattr(photo_projection, "_write_tuned", lambda changes, files, facts, photo: written)
    harness.start()
    monkeypatch.setattr(harness.controller.export, "_progress", ExportProgress("walk", 0, 6))
    assert harness.controller.photo_projection.begin(Path("garden.jpg"), CROP, tune=True)
    harness.until(lambda: harness.has_said("An export is running with this model"))
    assert harness.has_said("The model was tuned to garden; dogs.pkl holds the changes")
    assert harness.controller.engine.model.loading is None


def test_a_picture_without_a_recipe_is_a_photo_when_it_is_dropped_and_an_error_when_it_is_restored(
    open_harness: Harness,
) -> None:
    from PIL import Image

    files = open_harness.controller.files
    opened: list[Path] = []
    files.photo_opened.connect(lambda photo: opened.append(photo.path))
    path = open_harness.folder / "photo.png"
    Image.new("RGB", (20, 20)).save(path)
    files.open(path)
    open_harness.until(lambda: opened)
    assert opened == [path]
    other = open_harness.folder / "photo.bmp"
    Image.new("RGB", (20, 20)).save(other)
    files.open(other)
    open_harness.until(lambda: opened == [path, other])
    files.open_picture(path)
    open_harness.until(lambda: open_harness.said(Level.ERROR))
    assert "holds no Latent Loom recipe" in open_harness.said(Level.ERROR)[-1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (SetParameter("layer", Tap("b8.conv0")), "A layer is shown"),
        (set_transform(Transform(x=0.25)), "transform"),
        (SetTimeline(Timeline(tracks=(Track(WALK, radius=0.5, period=Fraction(1)),)), "Walk"), "A walk moves"),
    ],
)
def test_no_search_begins_where_its_picture_would_not_be_shown(search: Search, change: Edit, words: str) -> None:
    editing = search.harness.controller.editing
    editing._editor.set_transient(change.apply(editing.session))
    assert words in search.projection.obstacle
    assert not search.projection.begin(Path("/photos/garden.jpg"), CROP)
    assert search.harness.said(Level.WARNING) == [search.projection.obstacle]
    assert (search.renders.calls, search.projection.phase) == ([], "rest")

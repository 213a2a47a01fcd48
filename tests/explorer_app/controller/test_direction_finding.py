"""Directions that are found from the window: searched, kept, shown and taken back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from explorer_app.controller.progress import ExportProgress
from explorer_app.messages import Level
from explorer_app.session.direction_files import DirectionFiles
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Session
from gpu_backend import (
    Base,
    DirectionSearch,
    Model,
    ModelFileError,
    NamedDirections,
    RowRange,
    read_directions,
    read_model,
    write_directions,
    write_safetensors,
    write_tuned,
)
from tests.helpers.controller_harness import Harness
from tests.helpers.fake_renderer import Library, fake_model
from tests.helpers.networks import make_stylegan2

SEFA = DirectionSearch("sefa", "mine", RowRange(0, 2), 3)


def found(harness: Harness) -> bool:
    return harness.controller.directions.state.added is not None


class DirectedLibrary(Library):
    """Reads the directions beside a model with it."""

    def __call__(self, path: Path, **arguments: Any) -> Model:
        model = super().__call__(path, **arguments)
        beside = path.with_name(f"{path.stem}.directions.safetensors")
        if not beside.exists():
            return model
        facts = model.facts
        kept = read_directions(beside, facts.model_id, facts.w_dim, facts.num_ws)
        return replace(model, directions=kept, facts=replace(facts, named_directions=kept.names))


@pytest.fixture
def dogs(harness: Harness) -> Harness:
    """A harness with a model open whose named directions are read with it."""
    harness.library = DirectedLibrary()
    harness.start()
    harness.open("dogs")
    return harness


def names(harness: Harness) -> tuple[str, ...] | None:
    """Named directions of the model that is open; None while one is read."""
    model = harness.controller.engine.model
    return None if model.loading is not None or model.facts is None else model.facts.named_directions


def find(harness: Harness) -> None:
    """Find directions, and wait until the model was read with them."""
    harness.controller.directions.find(SEFA)
    harness.until(lambda: names(harness) == ("mine/0", "mine/1", "mine/2"))


def undo(harness: Harness, times: int) -> None:
    """Undo, and wait until the model was read without what was found."""
    for _ in range(times):
        harness.controller.editing.undo()
    harness.until(lambda: names(harness) == ())


def test_found_directions_are_saved_beside_the_model_and_undo_removes_them(open_harness: Harness) -> None:
    open_harness.open("dogs")
    controller, path = open_harness.controller, open_harness.folder / "dogs.directions.safetensors"
    reads = len(open_harness.library.read)
    controller.directions.find(SEFA)
    open_harness.until(lambda: found(open_harness))
    facts = controller.engine.model.facts
    assert facts is not None
    kept = read_directions(path, facts.model_id, facts.w_dim, facts.num_ws)
    assert kept.names == ("mine/0", "mine/1", "mine/2")
    assert controller.directions.state.share is None
    assert "3 directions are found" in open_harness.said(Level.INFO)[-1]
    open_harness.until(lambda: len(open_harness.library.read) == reads + 1)
    open_harness.until(lambda: controller.engine.model.loading is None)
    controller.directions.take_back()
    open_harness.until(lambda: not path.exists())
    open_harness.until(lambda: len(open_harness.library.read) == reads + 2)
    assert not found(open_harness)


def test_a_model_that_the_user_opens_while_directions_are_found_stays(dogs: Harness) -> None:
    dogs.library.gate.shut()
    dogs.controller.files.open_model(dogs.path("cats"))
    dogs.controller.directions.find(SEFA)
    dogs.until((dogs.folder / "dogs.directions.safetensors").exists)
    dogs.until(lambda: found(dogs))
    dogs.library.gate.open()
    model = dogs.controller.engine.model
    dogs.until(lambda: model.loading is None and model.facts is not None)
    assert model.facts is not None
    assert model.facts.name == "cats"


def test_undo_takes_found_directions_back_and_redo_brings_them_again(dogs: Harness) -> None:
    controller, path = dogs.controller, dogs.folder / "dogs.directions.safetensors"
    editing = controller.editing
    before = editing.session
    find(dogs)
    written = path.read_bytes()
    assert (editing.history.undo_label, editing.session) == ("Find directions", before)
    editing.edit(SetParameter("slider/mine/1", 1.5))
    moved = editing.session
    undo(dogs, 2)
    assert not path.exists()
    assert not found(dogs)
    assert editing.session == before
    editing.redo()
    editing.redo()
    dogs.until(path.exists)
    dogs.until(lambda: names(dogs))
    assert path.read_bytes() == written
    assert found(dogs)
    dogs.until(lambda: editing.session == moved)


def test_taking_back_is_undo_while_the_search_is_the_newest_step_and_keeps_later_edits(dogs: Harness) -> None:
    controller, path = dogs.controller, dogs.folder / "dogs.directions.safetensors"
    editing = controller.editing
    find(dogs)
    controller.directions.take_back()
    assert editing.history.redo_label == "Find directions"
    dogs.until(lambda: not path.exists())
    dogs.until(lambda: names(dogs) == ())
    find(dogs)
    editing.edit(SetParameter("truncation.psi", 0.4))
    controller.directions.take_back()
    dogs.until(lambda: not path.exists())
    assert (editing.session.truncation.psi, editing.history.can_redo) == (0.4, False)
    dogs.until(lambda: names(dogs) == ())
    editing.undo()
    editing.undo()
    editing.redo()
    assert not path.exists(), "what was taken back by hand stays away"


def test_an_export_keeps_the_directions_of_its_model_until_it_ends(dogs: Harness) -> None:
    controller, path = dogs.controller, dogs.folder / "dogs.directions.safetensors"
    find(dogs)
    controller.export._progress = ExportProgress("walk", 0, 10, 0.0)
    controller.directions.find(SEFA)
    assert "An export is running" in dogs.said(Level.WARNING)[-1]
    assert controller.directions.state.share is None
    controller.directions.take_back()
    assert not controller.editing.history.can_redo
    controller.editing.undo()
    assert found(dogs)
    assert path.exists()
    controller.export._progress = None
    controller.export.changed.emit()
    dogs.until(lambda: not path.exists())
    assert not found(dogs)
    dogs.until(lambda: names(dogs) == ())


def test_what_is_found_after_another_model_was_opened_is_said_and_becomes_no_step(dogs: Harness) -> None:
    controller = dogs.controller
    find(dogs)
    facts, added = controller.engine.model.facts, controller.directions.state.added
    assert facts is not None
    assert added is not None
    dogs.open("cats")
    steps = len(controller.editing.history.entries)
    controller.directions._take_added(facts, added)
    assert dogs.said(Level.INFO)[-1] == "3 directions are found in dogs."
    assert len(controller.editing.history.entries) == steps
    assert not found(dogs)


def test_a_new_edit_after_undo_leaves_what_was_found_away_for_good(dogs: Harness) -> None:
    controller, path = dogs.controller, dogs.folder / "dogs.directions.safetensors"
    find(dogs)
    undo(dogs, 1)
    controller.editing.edit(SetParameter("truncation.psi", 0.4))
    controller.editing.edit(SetParameter("truncation.psi", 0.5))
    controller.editing.undo()
    assert not path.exists()


def test_a_file_that_another_program_changed_is_left_alone(dogs: Harness) -> None:
    path = dogs.folder / "dogs.directions.safetensors"
    find(dogs)
    path.write_bytes(b"another program's")
    dogs.controller.editing.undo()
    dogs.until(lambda: dogs.said(Level.ERROR))
    assert "was changed by another program" in dogs.said(Level.ERROR)[-1]
    assert path.read_bytes() == b"another program's"


def test_directions_of_the_bundled_model_are_kept_in_the_users_folder(open_harness: Harness) -> None:
    controller = open_harness.controller
    assert controller.engine.model.is_bundled
    controller.directions.find(SEFA)
    open_harness.until(lambda: found(open_harness))
    assert [path.suffix for path in open_harness.folder.glob("cats*")] == [".pkl"]
    files = DirectionFiles(open_harness.state / "directions", open_harness.bundled)
    model = files.with_own(fake_model(open_harness.path("cats")))
    assert model.facts.named_directions == ("mine/0", "mine/1", "mine/2")


def test_nothing_is_written_beside_the_bundled_model_by_whatever_path_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpu_backend.training.directions.search import find_directions

    bundled = tmp_path / "installed" / "cats.pkl"
    bundled.parent.mkdir()
    model = fake_model(bundled)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("installed")
    found = find_directions(SEFA, SimpleNamespace(facts=model.facts, model=model))
    for path in ("installed/cats.pkl", "link/cats.pkl"):
        facts = replace(model.facts, path=path)
        added = DirectionFiles(tmp_path / "own", bundled).add(facts, found)
        assert added.path.parent == tmp_path / "own"


def test_a_search_without_examples_reports_it_and_a_cancelled_one_says_nothing(open_harness: Harness) -> None:
    controller = open_harness.controller
    controller.directions.find(DirectionSearch("examples", "smile", RowRange()), [Session()], [])
    assert "both sides" in open_harness.said(Level.ERROR)[-1]
    assert controller.directions.state.share is None
    controller.directions.find(SEFA)
    assert controller.directions.state.share == 0.0
    controller.directions.cancel()
    assert controller.directions.state.share is None


def test_a_search_that_does_not_fit_the_model_is_reported(open_harness: Harness) -> None:
    open_harness.controller.directions.find(DirectionSearch("sefa", "mine", RowRange(0, 99)))
    open_harness.until(lambda: open_harness.said(Level.ERROR))
    assert "Rows of this model" in open_harness.said(Level.ERROR)[-1]
    assert open_harness.controller.directions.state.share is None


@pytest.fixture
def files(tmp_path: Path) -> DirectionFiles:
    return DirectionFiles(tmp_path / "own", None)


def test_directions_join_those_that_a_file_holds(tmp_path: Path, files: DirectionFiles) -> None:
    from gpu_backend.training.directions.search import find_directions

    model = fake_model(tmp_path / "dogs.pkl")

    renderer = SimpleNamespace(facts=model.facts, model=model)
    first = files.add(model.facts, find_directions(SEFA, renderer))
    second = files.add(model.facts, find_directions(DirectionSearch("sefa", "more", RowRange(0, 1), 1), renderer))
    facts = model.facts
    assert first.before is None
    assert read_directions(second.path, facts.model_id, facts.w_dim, facts.num_ws).names == (*first.names, "more/0")
    files.take_back(second)
    assert read_directions(first.path, facts.model_id, facts.w_dim, facts.num_ws).names == first.names


def test_where_the_models_folder_cannot_be_written_the_users_is(tmp_path: Path, files: DirectionFiles) -> None:
    from gpu_backend.training.directions.search import find_directions

    (tmp_path / "file").write_text("no folder")
    model = fake_model(tmp_path / "file" / "dogs.pkl")

    renderer = SimpleNamespace(facts=model.facts, model=model)
    added = files.add(model.facts, find_directions(SEFA, renderer))
    assert added.path.parent == tmp_path / "own"
    assert files.with_own(model).facts.named_directions == added.names


def test_a_tuned_model_has_the_directions_that_were_found_in_the_first_one(
    tmp_path: Path, files: DirectionFiles
) -> None:
    hills = tmp_path / "hills.safetensors"
    write_safetensors(make_stylegan2(), hills)
    facts = read_model(hills).facts
    write_tuned({}, Base(hills, facts.model_id, "photo.png"), tmp_path / "tuned.safetensors")
    named = NamedDirections(
        names=("mine/0", "mine/1"),
        vectors=np.ones((2, facts.w_dim), np.float32),
        rows=(RowRange(0, facts.num_ws - 1),) * 2,
        reach=(3.0,) * 2,
        centre=(0.0,) * 2,
        measures=({},) * 2,
    )
    own = tmp_path / "own" / f"{facts.model_id}.directions.safetensors"
    own.parent.mkdir()
    write_directions(named, own, facts.model_id)
    tuned = files.with_own(read_model(tmp_path / "tuned.safetensors"))
    assert tuned.facts.named_directions == named.names

    # What is found in the tuned model wins, also if it has a name of the first one's.
    found = replace(named, names=("mine/1", "more/0"), vectors=2.0 * named.vectors)
    files.add(tuned.facts, found)
    tuned = files.with_own(read_model(tmp_path / "tuned.safetensors"))
    assert tuned.facts.named_directions == ("mine/0", "mine/1", "more/0")
    assert tuned.directions is not None
    assert tuned.directions.reach == (3.0, 3.0, 3.0)
    assert tuned.directions.vectors[:, 0].tolist() == [1.0, 2.0, 2.0]


def test_a_damaged_file_is_not_written_over_and_warned_of(tmp_path: Path, files: DirectionFiles) -> None:
    model = fake_model(tmp_path / "dogs.pkl")
    path = tmp_path / "own" / f"{model.facts.model_id}.directions.safetensors"
    path.parent.mkdir()
    path.write_bytes(b"damaged")
    assert "directions" in files.with_own(model).facts.warnings[-1]
    (tmp_path / "dogs.directions.safetensors").write_bytes(b"damaged")
    with pytest.raises(ModelFileError):
        files.add(model.facts, None)  # type: ignore[arg-type]
    assert path.read_bytes() == b"damaged"

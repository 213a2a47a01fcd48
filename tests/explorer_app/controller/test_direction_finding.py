"""Directions that are found from the window: searched, kept, shown and taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer_app.messages import Level
from explorer_app.session.direction_files import DirectionFiles
from explorer_app.session.session import Session
from gpu_backend import DirectionSearch, ModelFileError, RowRange, read_directions
from tests.helpers.controller_harness import Harness
from tests.helpers.fake_renderer import fake_model

SEFA = DirectionSearch("sefa", "mine", RowRange(0, 2), 3)


def found(harness: Harness) -> bool:
    return harness.controller.directions.state.added is not None


def test_what_is_found_lies_beside_the_model_and_is_taken_back(open_harness: Harness):
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


def test_directions_of_the_bundled_model_are_kept_in_the_users_folder(open_harness: Harness):
    controller = open_harness.controller
    assert controller.engine.model.is_bundled
    controller.directions.find(SEFA)
    open_harness.until(lambda: found(open_harness))
    assert [path.suffix for path in open_harness.folder.glob("cats*")] == [".pkl"]
    files = DirectionFiles(open_harness.state / "directions", open_harness.bundled)
    model = files.with_own(fake_model(open_harness.path("cats")))
    assert model.facts.named_directions == ("mine/0", "mine/1", "mine/2")


def test_a_search_without_examples_says_so_and_a_cancelled_one_says_nothing(open_harness: Harness):
    controller = open_harness.controller
    controller.directions.find(DirectionSearch("examples", "smile", RowRange()), [Session()], [])
    assert "both sides" in open_harness.said(Level.ERROR)[-1]
    assert controller.directions.state.share is None
    controller.directions.find(SEFA)
    assert controller.directions.state.share == 0.0
    controller.directions.cancel()
    assert controller.directions.state.share is None


def test_a_search_that_does_not_fit_the_model_is_told(open_harness: Harness):
    open_harness.controller.directions.find(DirectionSearch("sefa", "mine", RowRange(0, 99)))
    open_harness.until(lambda: open_harness.said(Level.ERROR))
    assert "Rows of this model" in open_harness.said(Level.ERROR)[-1]
    assert open_harness.controller.directions.state.share is None


@pytest.fixture
def files(tmp_path: Path) -> DirectionFiles:
    return DirectionFiles(tmp_path / "own", None)


def test_directions_join_those_that_a_file_holds(tmp_path: Path, files: DirectionFiles):
    from gpu_backend.training.directions.search import find_directions

    model = fake_model(tmp_path / "dogs.pkl")

    class Renderer:
        facts, model = fake_model(tmp_path / "dogs.pkl").facts, fake_model(tmp_path / "dogs.pkl")

    first = files.add(model.facts, find_directions(SEFA, Renderer()))
    second = files.add(model.facts, find_directions(DirectionSearch("sefa", "more", RowRange(0, 1), 1), Renderer()))
    facts = model.facts
    assert first.before is None
    assert read_directions(second.path, facts.model_id, facts.w_dim, facts.num_ws).names == (*first.names, "more/0")
    files.take_back(second)
    assert read_directions(first.path, facts.model_id, facts.w_dim, facts.num_ws).names == first.names


def test_where_the_models_folder_cannot_be_written_the_users_is(tmp_path: Path, files: DirectionFiles):
    from gpu_backend.training.directions.search import find_directions

    (tmp_path / "file").write_text("no folder")
    model = fake_model(tmp_path / "file" / "dogs.pkl")

    class Renderer:
        facts, model = fake_model(tmp_path / "file" / "dogs.pkl").facts, fake_model(tmp_path / "file" / "dogs.pkl")

    added = files.add(model.facts, find_directions(SEFA, Renderer()))
    assert added.path.parent == tmp_path / "own"
    assert files.with_own(model).facts.named_directions == added.names


def test_a_damaged_file_is_not_written_over_and_warned_of(tmp_path: Path, files: DirectionFiles):
    model = fake_model(tmp_path / "dogs.pkl")
    path = tmp_path / "own" / f"{model.facts.model_id}.directions.safetensors"
    path.parent.mkdir()
    path.write_bytes(b"damaged")
    assert "directions" in files.with_own(model).facts.warnings[-1]
    (tmp_path / "dogs.directions.safetensors").write_bytes(b"damaged")
    with pytest.raises(ModelFileError):
        files.add(model.facts, None)  # type: ignore[arg-type]
    assert path.read_bytes() == b"damaged"

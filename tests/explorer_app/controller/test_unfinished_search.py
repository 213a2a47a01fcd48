"""The search of a killed program: what its file keeps, and what the next start offers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from explorer_app.controller import Photo, PhotoProjection
from explorer_app.controller.unfinished_search import NAME, UnfinishedSearch, UnfinishedSearchFile
from explorer_app.messages import Action
from explorer_app.session.model_files import ModelFiles
from gpu_backend import Crop
from tests.helpers.controller_harness import Harness
from tests.helpers.fake_projection import FakeProjectionRenders

SEARCH = UnfinishedSearch(Path("/photos/my garden.jpg"), Crop(1.0, 2.5, 30.0), True)


class AtOnce:
    """Runs tasks at once."""

    def submit(self, task: Callable[[], object]) -> None:
        task()

    def fetch(
        self, task: Callable[[], UnfinishedSearch | None], take: Callable[[UnfinishedSearch | None], None]
    ) -> None:
        take(task())


def taken(file: UnfinishedSearchFile) -> UnfinishedSearch | None:
    found: list[UnfinishedSearch | None] = []
    file.take(found.append)
    return found[0]


def test_a_search_is_read_once_and_one_that_ended_not_at_all(tmp_path: Path) -> None:
    file = UnfinishedSearchFile(AtOnce(), lambda: tmp_path)
    assert taken(file) is None
    file.remember(SEARCH)
    assert taken(UnfinishedSearchFile(AtOnce(), lambda: tmp_path)) == SEARCH
    assert taken(file) is None
    file.remember(SEARCH)
    file.forget()
    file.forget()
    assert taken(file) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "[]", '{"photo": "x"}', '{"photo": "x", "crop": [1, 2, 1e999], "tunes": true}'])
def test_a_damaged_file_is_removed_without_a_word(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    assert taken(UnfinishedSearchFile(AtOnce(), lambda: tmp_path)) is None
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_is_kept_or_nothing_can_be_written_a_search_goes_on(tmp_path: Path) -> None:
    UnfinishedSearchFile(AtOnce(), lambda: None).remember(SEARCH)
    file = UnfinishedSearchFile(AtOnce(), lambda: tmp_path / "none")
    file.remember(SEARCH)
    file.forget()
    assert taken(file) is None


def test_the_next_start_offers_a_search_that_was_killed(harness: Harness, tmp_path: Path) -> None:
    photo = tmp_path / "garden.png"
    Image.new("RGB", (80, 40), (90, 140, 60)).save(photo)
    search = UnfinishedSearch(photo, Crop(3.0, 4.0, 20.0))
    harness.state.mkdir(parents=True)
    UnfinishedSearchFile(AtOnce(), lambda: harness.state).remember(search)  # the program ends here without a word
    photos: list[Photo] = []
    harness.controller.files.photo_opened.connect(photos.append)
    harness.start()

    def offers() -> list[Action]:
        found = [message.action for message in harness.messages.messages if "was cut short" in message.sentence]
        return [action for action in found if action is not None]

    harness.until(offers)
    (offer,) = offers()
    assert harness.has_said("The search for the latent of garden was cut short")
    offer.call()
    harness.until(lambda: photos)
    assert photos[0].path == photo
    assert harness.controller.photo_projection.continued == search


@pytest.mark.parametrize("end", ["cancel", "finish"])
def test_a_search_leaves_its_file_until_it_ends(harness: Harness, tmp_path: Path, end: str) -> None:
    harness.engine.gives_rows = True
    harness.start()
    controller, renders = harness.controller, FakeProjectionRenders()
    projection = renders.projection = PhotoProjection(
        renders,
        controller.editing,
        controller.playback,
        harness.messages,
        renders.worker,  # type: ignore[arg-type]
        ModelFiles(None, None),
        renders.opened.append,
        renders.make,
        unfinished=UnfinishedSearchFile(AtOnce(), lambda: tmp_path),
    )
    assert projection.begin(tmp_path / "garden.png", Crop(0.0, 0.0, 20.0))
    assert (tmp_path / NAME).exists()
    getattr(projection, end)()
    assert not (tmp_path / NAME).exists()

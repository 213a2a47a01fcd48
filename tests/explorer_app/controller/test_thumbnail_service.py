"""Small pictures that are kept on disk for later runs."""

from __future__ import annotations

from explorer_app.rendering.thumbnail_file import ThumbnailFile, session_digest
from explorer_app.session.edits import GoToSeed
from tests.helpers.controller_harness import Harness


def test_a_picture_that_is_kept_on_disk_shows_in_a_later_run_without_a_model(open_harness: Harness) -> None:
    harness = open_harness
    thumbnails = harness.controller.thumbnails
    there = GoToSeed(7).apply(harness.controller.editing.session)
    thumbnails.request("there", there, on_disk=True)
    thumbnails.request("not kept", GoToSeed(8).apply(there))
    harness.until(lambda: len(thumbnails.store) == 2)
    again = harness.reopened()  # not started: no model is open
    later = again.controller.thumbnails
    later.request("kept", there, on_disk=True)
    later.request("other", GoToSeed(8).apply(there), on_disk=True)
    again.until(lambda: len(later.store) == 1)
    found, made = later.store.get("kept"), thumbnails.store.get("there")
    assert found is not None
    assert made is not None
    assert (found.pixels == made.pixels).all()
    again.start()
    later.request("other", GoToSeed(8).apply(there), on_disk=True)
    again.until(lambda: "other" in later.store)


def test_a_picture_made_with_another_model_is_not_kept_for_its_own(open_harness: Harness) -> None:
    harness = open_harness
    there = GoToSeed(7).apply(harness.controller.editing.session)
    harness.open("dogs")
    harness.controller.thumbnails.request("there", there, on_disk=True)
    harness.until(lambda: len(harness.controller.thumbnails.store) == 1)
    harness.reopened()
    file = ThumbnailFile(harness.state / "thumbnails.sqlite")
    assert file.get(session_digest(there)) is None
    file.close()

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from explorer_app.controller.draft_colours import DraftColours
from explorer_app.controller.preview import Preview
from gpu_backend import Frame, FrameTimings, RenderRequest, Tap
from tests.helpers.controller_harness import Harness

REQUEST = RenderRequest("a model")
OTHER = replace(REQUEST, model_id="another model")
TIMES = FrameTimings(1.0, 0.5, 0.5)


def colours(side: int, seed: int = 0) -> NDArray[np.uint8]:
    """A picture of blocks in many colours of the middle, the same at each size; its fourth bytes are alpha."""
    blocks = np.random.default_rng(seed).integers(60, 160, (32, 32, 4), np.uint8)
    return blocks.repeat(side // 32, 0).repeat(side // 32, 1)


def frame(pixels: NDArray[np.uint8], request: RenderRequest = REQUEST, *, is_full: bool = False) -> Frame:
    side = None if is_full else len(pixels)
    pixels.flags.writeable = False
    return Frame(replace(request, resolution=side), pixels, TIMES, is_draft=not is_full, has_alpha=True)


def strong(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """What later layers add in these tests: more contrast, channels mixed, more light in one of them."""
    mixed = (pixels[..., :3] - 110.0) @ np.array([[1.3, 0.1, 0.0], [0.0, 1.2, 0.2], [-0.2, 0.0, 1.1]]) + [120, 105, 110]
    return np.dstack([mixed.clip(0, 255).astype(np.uint8), pixels[..., 3]])


def learned(*seeds: int) -> DraftColours:
    found = DraftColours()
    for seed in seeds:
        found.learn(frame(colours(64, seed)), frame(strong(colours(256, seed)), is_full=True))
    return found


def test_a_draft_gets_the_colours_of_its_full_picture_and_stays_a_draft() -> None:
    draft = frame(colours(64, 5))
    before = draft.pixels.copy()
    corrected = learned(0).corrected(draft)
    assert np.abs(corrected.pixels.astype(int) - strong(before)).max() <= 2
    assert (corrected.is_draft, corrected.request, corrected.timings) == (True, draft.request, draft.timings)
    assert np.array_equal(corrected.pixels[..., 3], before[..., 3])
    assert not corrected.pixels.flags.writeable
    assert np.array_equal(draft.pixels, before)


def test_a_full_picture_is_the_same_frame_that_came() -> None:
    full = frame(colours(256), is_full=True)
    assert learned(0).corrected(full) is full


def test_each_size_has_colours_of_its_own_and_none_before_it_was_seen() -> None:
    found = learned(0)
    draft = frame(colours(128))
    assert found.corrected(draft) is draft
    found.learn(draft, frame(strong(colours(256)), is_full=True))
    assert np.abs(found.corrected(draft).pixels.astype(int) - strong(colours(128))).max() <= 2


def test_frames_of_another_picture_and_drafts_are_not_learned_from() -> None:
    found = DraftColours()
    draft = frame(colours(64))
    found.learn(draft, frame(strong(colours(256)), OTHER, is_full=True))
    found.learn(draft, frame(strong(colours(64))))
    assert found.corrected(draft) is draft


def test_the_newest_picture_counts_most_and_those_before_still() -> None:
    found = DraftColours()
    grey = np.full((64, 64, 4), 128, np.uint8)
    for light in (60, 180):
        full = np.full((256, 256, 4), light, np.uint8)
        found.learn(frame(grey.copy()), frame(full, is_full=True))
    shown = int(found.corrected(frame(grey.copy())).pixels[0, 0, 0])
    assert 122 < shown < 170


def test_a_picture_in_one_colour_leaves_other_colours_almost_as_they_are() -> None:
    found = DraftColours()
    found.learn(frame(np.full((64, 64, 4), 130, np.uint8)), frame(np.full((256, 256, 4), 134, np.uint8), is_full=True))
    draft = frame(colours(64))
    change = found.corrected(draft).pixels[..., :3].astype(int) - draft.pixels[..., :3]
    assert change.min() >= 3
    assert change.max() <= 5


def test_grey_stays_grey() -> None:
    grey = np.random.default_rng(0).integers(60, 160, (32, 32, 1), np.uint8).repeat(4, 2)
    found = DraftColours()
    found.learn(frame(grey.repeat(2, 0).repeat(2, 1)), frame((grey + 20).repeat(8, 0).repeat(8, 1), is_full=True))
    shown = found.corrected(frame(grey.repeat(2, 0).repeat(2, 1))).pixels[..., :3].astype(int)
    assert np.ptp(shown, axis=2).max() <= 1
    assert shown.mean() > grey.mean() + 18


def test_colours_that_leave_the_range_end_at_its_bounds() -> None:
    draft = np.zeros((64, 64, 4), np.uint8)
    draft[32:] = 255
    shown = learned(0).corrected(frame(draft)).pixels
    assert shown[0, 0, :3].max() <= strong(np.zeros((1, 1, 4), np.uint8)).max() + 2
    assert shown[-1, -1, :3].min() >= 253


def test_a_draft_is_wanted_once_for_each_full_picture_that_is_no_layer() -> None:
    found = DraftColours()
    full = frame(colours(256), is_full=True)
    wanted = found.wanted(full, 64)
    assert wanted == replace(REQUEST, resolution=64)
    found.learn(frame(colours(64)), full)
    measured = Frame(replace(full.request, measure_steps=True), full.pixels, TIMES)
    assert found.wanted(measured, 64) is None
    assert found.wanted(full, 128) is not None
    assert found.wanted(frame(colours(256), OTHER, is_full=True), 64) is not None
    assert found.wanted(frame(colours(64), OTHER), 64) is None
    assert found.wanted(frame(colours(256), replace(REQUEST, tap=Tap("b4.conv1")), is_full=True), 64) is None


def test_another_model_starts_over() -> None:
    found = learned(0)
    found.clear()
    draft = frame(colours(64))
    assert found.corrected(draft) is draft
    assert found.wanted(frame(colours(256), is_full=True), 64) is not None


@pytest.fixture
def learned_from(monkeypatch: pytest.MonkeyPatch) -> list[Frame]:
    """Drafts that colours were learned from."""
    frames: list[Frame] = []
    usual = Preview.take_draft

    def take(preview: Preview, draft: Frame) -> None:
        usual(preview, draft)
        frames.append(draft)

    monkeypatch.setattr(Preview, "take_draft", take)
    return frames


def test_drafts_have_the_colours_of_the_full_picture_that_they_move_away_from(
    harness: Harness, learned_from: list[Frame]
) -> None:
    harness.bundled_seed = 100
    harness.engine.paleness = 30
    harness.engine.full_ms = 50.0
    harness.start()
    full = harness.frames[-1]
    harness.until(lambda: learned_from and learned_from[-1].request == replace(full.request, resolution=64))
    assert harness.frames[-1] is full, "what colours are learned from is not shown"
    assert (full.pixels[0, 0, 0], learned_from[-1].pixels[0, 0, 0]) == (100, 70)
    harness.drag(harness.x + 0.01, release=False)
    assert 27 <= harness.draft().pixels[0, 0, 0] <= 33, "it came with nothing of blue"
    harness.rest()
    assert harness.frames[-1].pixels[0, 0, 0] == 0


def test_colours_are_learned_once_from_a_picture_and_only_where_drafts_follow(
    harness: Harness, learned_from: list[Frame]
) -> None:
    harness.start()
    harness.drag(0.5)
    harness.rest()
    harness.engine.full_ms = 50.0
    for _ in range(5):
        harness.drag(harness.x + 0.5)
        harness.rest()
    harness.until(lambda: learned_from)
    assert all(draft.request.blend != harness.frames[0].request.blend for draft in learned_from)
    count = len(learned_from)
    harness.until(lambda: learned_from[-1].request.blend == harness.frames[-1].request.blend)
    harness.controller.engine.set_measuring(True)
    harness.until(lambda: harness.controller.engine.preview.statistics.steps)
    harness.drag(harness.x + 0.5)
    harness.rest()
    harness.until(lambda: learned_from[-1].request.blend == harness.frames[-1].request.blend)
    pictures = [draft.request.blend for draft in learned_from]
    assert len(set(pictures)) == len(pictures) > count

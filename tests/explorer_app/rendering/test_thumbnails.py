from dataclasses import replace

import numpy as np
import pytest

from explorer_app.rendering.thumbnails import ThumbnailStore, shrink
from gpu_backend import Frame, FrameTimings, RenderRequest
from tests.helpers.fake_engine import fake_frame

FRAME = fake_frame(RenderRequest("model"))


def frame_of(pixels: np.ndarray) -> Frame:
    return Frame(RenderRequest("model"), pixels, FrameTimings(1, 0, 1))


def test_the_thumbnail_that_was_not_used_for_longest_makes_room() -> None:
    store = ThumbnailStore(3)
    for key in "abc":
        store.put(key, FRAME)
    assert store.get("a") is FRAME
    store.put("d", FRAME)
    assert [key in store for key in "abcd"] == [True, False, True, True]
    assert len(store) == 3


def test_clearing_forgets_all() -> None:
    store = ThumbnailStore()
    store.put("a", FRAME)
    store.clear()
    assert store.get("a") is None


def test_a_large_frame_shrinks_to_the_mean_of_its_blocks() -> None:
    pixels = np.zeros((256, 256, 4), np.uint8)
    pixels[:, ::2] = 200
    small = shrink(frame_of(pixels))
    assert (small.width, small.height) == (64, 64)
    assert (small.pixels == 100).all()
    assert small.pixels.flags.c_contiguous


@pytest.mark.parametrize(("width", "height", "side"), [(100, 70, 30), (300, 300, 1)])
def test_a_block_s_mean_is_rounded_from_the_exact_sum_however_large_it_is(width: int, height: int, side: int) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (height, width, 4), np.uint8)
    small = shrink(frame_of(pixels), side).pixels
    factor = -(-width // side)
    means = [
        pixels[y * factor : (y + 1) * factor, x * factor : (x + 1) * factor].reshape(-1, 4).mean(axis=0)
        for y in range(height // factor)
        for x in range(width // factor)
    ]
    assert small.reshape(-1, 4).tolist() == np.rint(np.array(means).reshape(-1, 4)).tolist()


def test_a_frame_that_is_small_already_stays_as_it_is() -> None:
    assert shrink(FRAME) is FRAME
    assert shrink(replace(FRAME), 6).width == 6


def test_a_small_frame_that_borrows_its_pixels_gets_its_own() -> None:
    borrowed = np.arange(32 * 32 * 4, dtype=np.uint8).reshape(32, 32, 4)[:]
    small = shrink(frame_of(borrowed))
    assert not np.shares_memory(small.pixels, borrowed)
    assert (small.pixels == borrowed).all()
    assert not small.pixels.flags.writeable
    assert shrink(small) is small


def test_a_stored_picture_leaves_its_rows_of_w_behind_as_a_signature() -> None:
    store = ThumbnailStore(1)
    store.put("first", replace(FRAME, ws=np.ones((6, 4), np.float32)))
    frame = store.get("first")
    assert frame is not None
    assert frame.ws is None
    signature = store.signature("first")
    assert signature is not None
    assert signature.tolist() == [1.0] * 12
    store.put("second", FRAME)
    assert store.signature("first") is store.signature("second") is None

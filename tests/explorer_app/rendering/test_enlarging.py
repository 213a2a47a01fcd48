"""Drafts are enlarged by cubic interpolation."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from explorer_app.rendering.enlarging import enlarged


def ramp(side: int) -> np.ndarray:
    row = np.linspace(20, 220, side)
    return np.broadcast_to(row[None, :, None], (side, side, 4)).round().astype(np.uint8)


@pytest.mark.parametrize(("side", "large"), [(64, 256), (128, 256), (32, 256), (100, 200), (256, 256), (512, 512)])
def test_a_draft_is_enlarged_to_one_size_and_a_larger_picture_stays(side: int, large: int) -> None:
    assert enlarged(ramp(side)).shape == (large, large, 4)


def test_one_colour_stays_that_colour_to_the_edges() -> None:
    flat = np.full((64, 64, 4), 137, np.uint8)
    assert (enlarged(flat) == 137).all()


def test_it_is_the_cubic_interpolation_of_pillow() -> None:
    picture = np.random.default_rng(3).integers(90, 160, (64, 64, 4), np.uint8)  # Pillow cuts off between the axes
    wanted = np.asarray(Image.fromarray(picture[..., :3]).resize((256, 256), Image.Resampling.BICUBIC))
    inner = (slice(12, -12),) * 2  # at the edges Pillow leaves taps out instead of continuing the picture
    assert np.abs(enlarged(picture)[..., :3].astype(int) - wanted)[inner].max() <= 2


def test_the_input_frame_stays_unchanged_and_the_result_is_read_only() -> None:
    picture = ramp(64)
    before = picture.copy()
    large = enlarged(picture)
    assert np.array_equal(picture, before)
    assert not large.flags.writeable

"""Masks at the positions of layers."""

import numpy as np
import pytest

from gpu_backend import MASK_SIDE, PictureMask, layer_mask


def half(softness: float = 0.0, side: int = MASK_SIDE, extent: float = 1.0) -> np.ndarray:
    """A row of a mask that covers the right half."""
    values = np.zeros((MASK_SIDE, MASK_SIDE), np.uint8)
    values[:, MASK_SIDE // 2 :] = 255
    return layer_mask(PictureMask(values.tobytes()), side, extent, softness)[side // 2]


def test_at_its_own_side_a_mask_is_what_was_painted() -> None:
    values = np.random.default_rng(0).integers(0, 256, (MASK_SIDE, MASK_SIDE), np.uint8)
    np.testing.assert_allclose(layer_mask(PictureMask(values.tobytes()), MASK_SIDE, 1.0, 0.0), values / 255, atol=1e-6)


def test_a_smaller_layer_has_the_mean_of_what_it_covers() -> None:
    values = np.random.default_rng(0).integers(0, 256, (MASK_SIDE, MASK_SIDE), np.uint8)
    means = values.reshape(4, MASK_SIDE // 4, 4, MASK_SIDE // 4).mean((1, 3)) / 255
    np.testing.assert_allclose(layer_mask(PictureMask(values.tobytes()), 4, 1.0, 0.0), means, atol=1e-6)
    np.testing.assert_allclose(half(side=5), [0, 0, 0.5, 1, 1], atol=1e-6)


def test_a_soft_edge_fades_over_its_width_and_stays_where_it_was() -> None:
    row = half(0.25)
    middle, quarter = MASK_SIDE // 2, MASK_SIDE // 8
    assert row[middle - 1] + row[middle] == pytest.approx(1.0, abs=1e-5)
    assert 0.4 < row[middle - 1] < 0.6
    assert row[middle - quarter - 2] < 0.03
    assert row[middle + quarter + 2] > 0.97
    assert row[0] == pytest.approx(0.0, abs=1e-5), "the covered edge opposite does not wrap round"
    assert row[-1] == pytest.approx(1.0, abs=1e-5), "beyond the picture the mask goes on"


def test_a_layer_with_a_margin_has_the_picture_in_its_middle_and_the_edge_around() -> None:
    values = np.zeros((MASK_SIDE, MASK_SIDE), np.uint8)
    values[: MASK_SIDE // 2] = 255
    mask = layer_mask(PictureMask(values.tobytes()), 36, 36 / 16, 0.0)
    assert mask[:18].min() == 1.0
    assert mask[18:].max() == 0.0
    corner = layer_mask(PictureMask(bytes([255]) + bytes(MASK_SIDE**2 - 1)), 36, 36 / 16, 0.0)
    assert corner[:10, :10].min() == 1.0
    assert corner[10, 10] == pytest.approx(1 / 64)


def test_what_several_plans_share_is_read_only() -> None:
    mask = PictureMask(bytes(MASK_SIDE * MASK_SIDE))
    assert not layer_mask(mask, 8, 1.0, 0.0).flags.writeable

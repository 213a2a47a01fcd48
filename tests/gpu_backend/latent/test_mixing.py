import math

import numpy as np
import pytest

from gpu_backend.errors import RequestError
from gpu_backend.latent.mixing import mix_rows

ROWS = np.arange(12.0).reshape(4, 3) / 7
SOURCE = -ROWS * 3 + 1


def test_each_row_goes_towards_the_source_by_its_strength() -> None:
    mixed = mix_rows(ROWS, SOURCE, (0.0, 0.25, 1.0))
    assert np.array_equal(mixed[0], ROWS[0])
    assert mixed[1] == pytest.approx(0.75 * ROWS[1] + 0.25 * SOURCE[1])
    assert np.array_equal(mixed[2], SOURCE[2])
    assert np.array_equal(mixed[3], ROWS[3]), "rows past the strengths' end stay"


def test_the_rows_that_came_are_left_alone() -> None:
    before = ROWS.copy()
    mix_rows(ROWS, SOURCE, (1.0,) * 4)
    assert np.array_equal(ROWS, before)


@pytest.mark.parametrize("strength", [-0.01, 1.01, math.nan, math.inf])
def test_a_strength_outside_zero_to_one_is_refused_with_its_row(strength: float) -> None:
    with pytest.raises(RequestError, match=r"must be in 0\.\.1, but that of row 2 is"):
        mix_rows(ROWS, SOURCE, (0.0, 1.0, strength))


def test_more_strengths_than_rows_are_refused() -> None:
    with pytest.raises(RequestError, match="each of the 4 rows of w, but has 5"):
        mix_rows(ROWS, SOURCE, (0.5,) * 5)

import math

import numpy as np
import pytest

from gpu_backend.errors import RequestError
from gpu_backend.latent.mixing import mix_rows

ROWS = np.arange(12.0).reshape(4, 3) / 7
SOURCE = -ROWS * 3 + 1


def mixed_rows(source: np.ndarray, strengths: tuple[float, ...]) -> np.ndarray:
    rows = ROWS.copy()
    mix_rows(rows, source, strengths)
    return rows


def test_each_row_goes_towards_the_source_by_its_strength() -> None:
    mixed = mixed_rows(SOURCE, (0.0, 0.25, 1.0))
    assert np.array_equal(mixed[0], ROWS[0])
    assert mixed[1] == pytest.approx(0.75 * ROWS[1] + 0.25 * SOURCE[1])
    assert np.array_equal(mixed[2], SOURCE[2])
    assert np.array_equal(mixed[3], ROWS[3]), "rows past the strengths' end stay"


def test_the_source_is_left_alone() -> None:
    before = SOURCE.copy()
    mixed_rows(SOURCE, (1.0,) * 4)
    assert np.array_equal(SOURCE, before)


def test_a_source_that_is_the_same_in_all_rows_may_be_one_row() -> None:
    for strengths in ((0.0, 0.25, 1.0), (1.0,) * 4, (0.5, 0.5)):
        assert np.array_equal(
            mixed_rows(SOURCE[:1], strengths), mixed_rows(np.repeat(SOURCE[:1], 4, axis=0), strengths)
        )


def test_many_different_strengths_give_what_each_alone_gives() -> None:
    generator = np.random.default_rng(2)
    rows, source = generator.normal(size=(2, 18, 5))
    strengths = (0.0, 1.0, *generator.uniform(size=7), 0.0, 1.0, 0.25, 0.5, 0.75)
    together = rows.copy()
    mix_rows(together, source, strengths)
    for row, strength in enumerate(strengths):
        alone = rows.copy()
        mix_rows(alone, source, (0.0,) * row + (strength,))
        assert np.array_equal(together[row], alone[row])
    assert np.array_equal(together[len(strengths) :], rows[len(strengths) :])


def test_a_source_that_is_not_finite_shows_only_where_it_is_mixed_in() -> None:
    broken = np.full_like(SOURCE, math.inf)
    assert np.array_equal(mixed_rows(broken, (0.0,) * 4), ROWS)


@pytest.mark.parametrize("strength", [-0.01, 1.01, math.nan, math.inf])
def test_a_strength_outside_zero_to_one_is_refused_with_its_row(strength: float) -> None:
    with pytest.raises(RequestError, match=r"must be in 0\.\.1, but that of row 2 is"):
        mixed_rows(SOURCE, (0.0, 1.0, strength))


def test_more_strengths_than_rows_are_refused() -> None:
    with pytest.raises(RequestError, match="each of the 4 rows of w, but has 5"):
        mixed_rows(SOURCE, (0.5,) * 5)

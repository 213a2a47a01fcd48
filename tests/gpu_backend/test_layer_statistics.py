"""Statistics over several pictures are those of all their numbers together."""

import math

import numpy as np
import pytest

from gpu_backend.layer_statistics import gather_statistics


def test_pictures_count_together() -> None:
    pictures = np.random.default_rng(0).normal(2.0, 3.0, (4, 1, 5, 6, 7)).astype(np.float32)
    found = gather_statistics({"layer": picture} for picture in pictures)["layer"]
    assert found.mean == pytest.approx(pictures.mean(dtype=np.float64))
    assert found.std == pytest.approx(pictures.std(dtype=np.float64))
    assert found.max == pictures.max()
    assert found.shape == (4, 5, 6, 7)


def test_one_and_the_same_number_has_no_spread() -> None:
    found = gather_statistics([{"layer": np.full((1, 3, 8, 8), 0.1, np.float32)}])["layer"]
    assert found.std == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("bad", [(math.inf,), (math.inf, -math.inf), (math.nan,)])
def test_numbers_that_are_not_finite_are_not_hidden(bad: tuple[float, ...]) -> None:
    picture = np.zeros((1, 1, 2, 2), np.float32)
    picture.flat[: len(bad)] = bad
    found = gather_statistics([{"layer": picture}])["layer"]
    assert not math.isfinite(found.mean)
    assert math.isnan(found.std)
    assert not math.isfinite(found.max)

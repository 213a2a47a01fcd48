"""Statistics over several pictures are those of all their numbers together; waves stand where they belong."""

import math

import numpy as np
import pytest

from gpu_backend.layer_statistics import gather_statistics, log_spectrum


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


def test_a_wave_of_amplitude_one_is_two_peaks_at_0_db() -> None:
    rows, columns = np.mgrid[:64, :48]
    wave = 3.0 + np.sin(2 * np.pi * (5 * rows / 64 - 7 * columns / 48))
    found = log_spectrum(wave.astype(np.float32))
    assert found.shape == (64, 48)
    assert found.dtype == np.float32
    for row, column in ((32 + 5, 24 - 7), (32 - 5, 24 + 7)):
        assert found[row, column] == pytest.approx(0.0, abs=0.01)
        found[row - 2 : row + 3, column - 2 : column + 3] = -200
    assert found.max() < -80, "no other wave, no cross, and nothing of the mean"


def test_a_channel_without_waves_or_with_numbers_that_are_none_has_a_spectrum() -> None:
    assert (log_spectrum(np.full((5, 5), 7.0, np.float32)) < -100).all()
    broken = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    broken[0] = np.nan, np.inf, -np.inf, 1, 1, 1, 1, 1
    assert np.isfinite(log_spectrum(broken)).all()

import numpy as np
import pytest

from gpu_backend import Noise, NoiseMode, RequestError
from gpu_backend.plan.noise_inputs import check_noise, noise_gains, noise_source


def test_gain_scales_all_layers_and_layer_gains_each() -> None:
    assert noise_gains(Noise(gain=2.0, layer_gains=(0.5, 3.0)), 4).tolist() == [1.0, 6.0, 2.0, 2.0]


def test_a_draft_takes_the_first_layer_gains() -> None:
    assert noise_gains(Noise(layer_gains=(0.5, 3.0, 4.0)), 2).tolist() == [0.5, 3.0]


def test_no_noise_is_gain_zero_everywhere() -> None:
    assert not noise_gains(Noise("none", gain=5.0), 3).any()


def test_only_random_noise_has_a_source_of_its_own() -> None:
    assert noise_source(Noise()).tolist() == noise_source(Noise("none", seed=3)).tolist() == [0, 0, 0, 0]
    assert noise_source(Noise("random", seed=2**32 - 1)).tolist() == [1, 2**32 - 1, 0, 0]
    assert noise_source(Noise("random")).dtype == np.uint32


@pytest.mark.parametrize("gain", [float("nan"), float("inf"), -1e30])
def test_a_gain_that_no_float32_survives_is_refused(gain: float) -> None:
    with pytest.raises(RequestError, match=r"must be a number in -1000\.\.1000"):
        check_noise(Noise(layer_gains=(1.0, gain)), 4)


def test_a_phase_is_half_turns_and_closes() -> None:
    def half_turns(degrees: float, mode: NoiseMode = "random") -> float:
        return float(noise_source(Noise(mode, phase=degrees))[3:].view(np.float32)[0])

    assert [half_turns(degrees) for degrees in (0.0, 90.0, 270.0, 360.0, -90.0)] == [0.0, 0.5, -0.5, 0.0, -0.5]
    assert half_turns(90.0, "const") == 0.5
    assert noise_source(Noise(phase=-360.0)).tolist() == noise_source(Noise("none", phase=90.0)).tolist() == [0] * 4


def test_a_phase_that_is_no_number_is_refused() -> None:
    with pytest.raises(RequestError, match="phase"):
        check_noise(Noise(phase=float("inf")), 4)

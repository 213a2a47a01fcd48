import numpy as np
import pytest

from gpu_backend import Noise, RequestError
from gpu_backend.plan.noise_inputs import check_noise, noise_gains, noise_pictures
from tests.helpers.networks import make_stylegan2

MODEL = make_stylegan2(resolution=16)
LAYERS = tuple(layer for layer in MODEL.spec.layers if layer.has_noise)


def test_gain_scales_all_layers_and_layer_gains_each() -> None:
    assert noise_gains(Noise(gain=2.0, layer_gains=(0.5, 3.0)), 4).tolist() == [1.0, 6.0, 2.0, 2.0]


def test_a_draft_takes_the_first_layer_gains() -> None:
    assert noise_gains(Noise(layer_gains=(0.5, 3.0, 4.0)), 2).tolist() == [0.5, 3.0]


def test_no_noise_is_gain_zero_everywhere() -> None:
    assert not noise_gains(Noise("none", gain=5.0), 3).any()


def test_constant_noise_is_what_the_model_stores() -> None:
    for layer, picture in zip(LAYERS, noise_pictures(Noise(), LAYERS, MODEL.weights), strict=True):
        assert np.array_equal(picture, MODEL.weights[f"synthesis.{layer.name}.noise_const"])


def test_random_noise_depends_on_seed_and_layer_and_is_normal() -> None:
    first, again, other = (list(noise_pictures(Noise("random", seed), LAYERS, MODEL.weights)) for seed in (7, 7, 8))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[-1], other[-1])
    assert not np.array_equal(first[-1], first[-2])
    assert abs(float(first[-1].mean())) < 0.3
    assert 0.7 < float(first[-1].std()) < 1.3


def test_a_draft_gets_the_noise_of_the_full_picture() -> None:
    full = list(noise_pictures(Noise("random", 7), LAYERS, MODEL.weights))
    draft = list(noise_pictures(Noise("random", 7), LAYERS[:3], MODEL.weights))
    assert all(np.array_equal(a, b) for a, b in zip(draft, full, strict=False))


@pytest.mark.parametrize("gain", [float("nan"), float("inf"), -1e30])
def test_a_gain_that_no_float32_survives_is_refused(gain: float) -> None:
    with pytest.raises(RequestError, match=r"must be a number in -1000\.\.1000"):
        check_noise(Noise(layer_gains=(1.0, gain)), 4)

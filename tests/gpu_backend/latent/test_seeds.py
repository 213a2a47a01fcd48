import numpy as np
import pytest

from gpu_backend.errors import RequestError
from gpu_backend.latent.seeds import blend_z, seed_class, seed_to_z, z_angle


@pytest.mark.parametrize(
    ("seed", "start"),
    [
        (0, [1.76405235, 0.40015721, 0.97873798, 2.24089320]),
        (5, [0.44122749, -0.33087015, 2.43077119]),
        (85, [0.17685072, 2.37775412, 0.99873286, -1.3101508]),
    ],
)
def test_a_seed_gives_the_numbers_that_the_official_tools_draw(seed: int, start: list[float]) -> None:
    assert seed_to_z(seed, 512)[: len(start)] == pytest.approx(start, abs=1e-6)


def test_z_is_float32_and_the_same_each_time() -> None:
    z = seed_to_z(2**32 - 1, 64)
    assert z.dtype == np.float32
    assert z.shape == (64,)
    assert np.array_equal(z, seed_to_z(2**32 - 1, 64))


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_outside_the_generators_range_is_refused_with_a_sentence(seed: int) -> None:
    with pytest.raises(RequestError, match=f"must be in 0..4294967295, not {seed}"):
        seed_to_z(seed, 8)


def test_blended_z_is_the_weighted_sum() -> None:
    expected = 0.25 * seed_to_z(1, 16) - 2.0 * seed_to_z(7, 16)
    assert blend_z([(1, 0.25), (7, -2.0)], 16) == pytest.approx(expected, abs=1e-6)


def test_one_seed_of_weight_one_is_its_z_bit_for_bit() -> None:
    assert np.array_equal(blend_z([(42, 1.0)], 512), seed_to_z(42, 512))


def test_the_angle_between_two_seeds_is_that_of_their_vectors() -> None:
    a, b = seed_to_z(3, 32).astype(np.float64), seed_to_z(4, 32).astype(np.float64)
    angle, first, second = z_angle(3, 4, 32)
    assert first == pytest.approx(np.linalg.norm(a), rel=1e-6)
    assert second == pytest.approx(np.linalg.norm(b), rel=1e-6)
    assert np.cos(angle) * first * second == pytest.approx(a @ b, rel=1e-5)
    assert z_angle(3, 3, 32)[0] == pytest.approx(0.0, abs=1e-6)


def test_a_seed_chooses_a_class_as_the_official_tools_draw_it() -> None:
    assert [seed_class(seed, 1000) for seed in range(4)] == [684, 37, 168, 874]
    assert seed_class(0, 1) == 0
    with pytest.raises(RequestError, match="must be in 0"):
        seed_class(-1, 5)
    with pytest.raises(RequestError, match="at least one"):
        seed_class(0, 0)

"""What the noise of each layer is, for each source."""

import numpy as np
import pytest
import torch

from gpu_backend.cpu.noise_pictures import NoisePictures
from gpu_backend.ops.noise import noise_picture
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from tests.helpers.networks import make_stylegan2

MODEL = make_stylegan2(resolution=16)
PLAN = build_synthesis_plan(MODEL.spec, "id", batch=2)
WEIGHTS = {name: torch.from_numpy(array) for name, array in MODEL.weights.items()}
STEPS = [step for step in PLAN.steps if "noise_const" in step.weights]


def source(mode: int, seed: int = 0, half_turns: float = 0.0) -> np.ndarray:
    phase = int(np.array(half_turns, np.float32).view(np.uint32))
    return np.array([mode, seed & 0xFFFFFFFF, seed >> 32, phase], np.uint32)


def pictures_of(noise: NoisePictures) -> list[np.ndarray]:
    return [noise.of(step).numpy().copy() for step in STEPS]


def test_they_start_as_the_model_stores_them_and_come_back_to_it() -> None:
    noise = NoisePictures(PLAN, WEIGHTS)
    stored = [MODEL.weights[step.weights["noise_const"]] for step in STEPS]
    assert all(np.array_equal(a, b) for a, b in zip(pictures_of(noise), stored, strict=True))
    noise.follow(source(1, 7))
    noise.follow(source(0))
    assert all(np.array_equal(a, b) for a, b in zip(pictures_of(noise), stored, strict=True))


def test_random_ones_are_those_of_the_seed_and_the_layer_and_normal() -> None:
    noise = NoisePictures(PLAN, WEIGHTS)
    seed = 5 | 3 << 32
    noise.follow(source(1, seed))
    found = pictures_of(noise)
    for index, picture in enumerate(found):
        assert np.array_equal(picture, noise_picture(seed, index, picture.shape[0])[0])
    assert not np.array_equal(found[-1], found[-2])
    assert abs(float(found[-1].mean())) < 0.3
    assert 0.7 < float(found[-1].std()) < 1.3


def test_a_draft_gets_the_noise_of_the_full_picture() -> None:
    full = NoisePictures(PLAN, WEIGHTS)
    draft = NoisePictures(build_synthesis_plan(MODEL.spec, "id", resolution=8), WEIGHTS)
    for noise in (full, draft):
        noise.follow(source(1, 7))
    for step in STEPS[:3]:
        assert torch.equal(draft.of(step), full.of(step))


def test_the_same_source_rebuilds_nothing_and_pictures_keep_their_place() -> None:
    noise = NoisePictures(PLAN, WEIGHTS)
    places = [noise.of(step).data_ptr() for step in STEPS]
    noise.follow(source(1, 7))
    noise.of(STEPS[0]).fill_(5.0)
    noise.follow(source(1, 7))
    assert bool((noise.of(STEPS[0]) == 5.0).all())
    assert [noise.of(step).data_ptr() for step in STEPS] == places


def test_the_model_s_own_noise_is_not_written_over() -> None:
    before = {name: tensor.clone() for name, tensor in WEIGHTS.items()}
    NoisePictures(PLAN, WEIGHTS).follow(source(1, 1))
    assert all(torch.equal(tensor, before[name]) for name, tensor in WEIGHTS.items())


def test_a_phase_turns_pairs_of_pixels_stored_and_random_ones() -> None:
    for mode, seed in ((0, 0), (1, 7)):
        noise = NoisePictures(PLAN, WEIGHTS)
        noise.follow(source(mode, seed))
        start = pictures_of(noise)
        noise.follow(source(mode, seed, 0.5))
        for before, after in zip(start, pictures_of(noise), strict=True):
            pairs = before.reshape(-1, 2)
            assert after.reshape(-1, 2) == pytest.approx(np.stack([-pairs[:, 1], pairs[:, 0]], 1), abs=1e-6)
        noise.follow(source(mode, seed, 0.25))
        for before, after in zip(start, pictures_of(noise), strict=True):
            assert np.linalg.norm(after) == pytest.approx(np.linalg.norm(before), rel=1e-5)
        noise.follow(source(mode, seed))
        assert all(np.array_equal(a, b) for a, b in zip(start, pictures_of(noise), strict=True))


def test_a_loop_of_the_noise_draws_the_numbers_of_a_seed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    def counted(seed: int, layer: int, resolution: int) -> np.ndarray:
        drawn.append(seed)
        return noise_picture(seed, layer, resolution)

    monkeypatch.setattr("gpu_backend.cpu.noise_pictures.noise_picture", counted)
    noise = NoisePictures(PLAN, WEIGHTS)
    for phase in (0.25, 0.5, -0.5):
        noise.follow(source(1, 7, phase))
    assert len(drawn) == len(STEPS)

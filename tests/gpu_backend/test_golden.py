"""The golden networks through the front door: every array, within the tolerance that stands beside them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_backend import Latent, MixSource, Noise, Point, Recipe, Renderer, RenderRequest, Truncation, open_renderer

GOLDEN = Path(__file__).resolve().parents[1] / "data" / "golden"
CASES = ("S1_sg2ada_skip_64", "S2_sg3repo_sg2_cond_128")


@dataclass
class Case:
    renderer: Renderer
    arrays: dict[str, Any]
    tolerance: dict[str, float]
    z_seed: int

    @property
    def c(self) -> np.ndarray | None:
        return self.arrays.get("c")

    def assert_matches(self, found: np.ndarray, name: str) -> None:
        assert found.dtype == np.float32
        assert found.shape == self.arrays[name].shape
        assert np.abs(found - self.arrays[name]).max() <= self.tolerance[name]


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    entry = next(
        item for item in json.loads((GOLDEN / "manifest.json").read_text())["cases"] if item["case"] == request.param
    )
    with np.load(GOLDEN / f"{request.param}.npz") as file:
        arrays = {name: file[name] for name in file.files}
    renderer = open_renderer(GOLDEN / f"{request.param}.pkl", "cpu")
    yield Case(renderer, arrays, entry["tolerance"], entry["z_numpy_seed"])
    renderer.close()


def test_z_of_the_golden_seed(case: Case) -> None:
    z = np.random.RandomState(case.z_seed).randn(4, case.renderer.facts.z_dim).astype(np.float32)
    assert np.array_equal(z, case.arrays["z"])


def test_mapping(case: Case) -> None:
    case.assert_matches(case.renderer.map(case.arrays["z"], case.c), "w")


def test_mapping_with_truncation_on_all_rows(case: Case) -> None:
    case.assert_matches(case.renderer.map(case.arrays["z"], case.c, psi=0.7), "w_psi07")


def test_mapping_with_truncation_on_the_first_four_rows(case: Case) -> None:
    case.assert_matches(case.renderer.map(case.arrays["z"], case.c, psi=0.5, cutoff=4), "w_psi05_cut4")


def test_synthesis_of_a_batch_of_two(case: Case) -> None:
    case.assert_matches(case.renderer.synthesize(case.arrays["w"][:2]), "img_psi1")


def test_synthesis_of_truncated_rows(case: Case) -> None:
    case.assert_matches(case.renderer.synthesize(case.arrays["w_psi07"][:2], noise="const"), "img_psi07")


def test_synthesis_without_noise(case: Case) -> None:
    case.assert_matches(case.renderer.synthesize(case.arrays["w"][:1], noise="none"), "img_noise_none")
    case.assert_matches(case.renderer.synthesize(case.arrays["w"][:1], noise=Noise(gain=0.0)), "img_noise_none")


def test_synthesis_of_mixed_rows(case: Case) -> None:
    rows, k = case.arrays["w"], int(case.arrays["mix_k"])
    mixed = np.concatenate([rows[:1, :k], rows[1:2, k:]], axis=1)
    case.assert_matches(case.renderer.synthesize(mixed), "img_mix")


def test_every_layer_equals_the_golden_one(case: Case) -> None:
    found = case.renderer.layer_statistics(case.arrays["w"][:1])
    assert list(found) == case.arrays["layer_names"].tolist()
    for index, layer in enumerate(found.values()):
        assert layer.shape == tuple(case.arrays["layer_shape"][index])
        assert abs(layer.mean - case.arrays["layer_mean"][index]) <= case.tolerance["layer_mean"]
        assert abs(layer.std - case.arrays["layer_std"][index]) <= case.tolerance["layer_std"]
        assert layer.max >= layer.mean


@pytest.mark.parametrize("batch", [1, 3, 4])
def test_a_picture_does_not_depend_on_its_batch(case: Case, batch: int) -> None:
    images = case.renderer.synthesize(case.arrays["w"][:batch])
    assert images.shape[0] == batch
    assert np.abs(images[0] - case.arrays["img_psi1"][0]).max() <= case.tolerance["img_psi1"]


def to_bytes(image: np.ndarray) -> np.ndarray:
    """(3, height, width) in the network's range -> (height, width, 3) uint8, by the official rule."""
    return np.clip(image * 127.5 + 128, 0, 255).astype(np.uint8).transpose(1, 2, 0)


def test_a_request_gives_the_bytes_of_the_synthesized_picture(case: Case) -> None:
    classes = ((2, 1.0),) if case.renderer.facts.c_dim else ()
    mix = (MixSource(Latent(Point(((6, 1.0),)), classes), (0.0,) * 4 + (1.0,) * (case.renderer.facts.num_ws - 4)),)
    recipe = Recipe(Latent(Point(((5, 1.0),)), classes, mix), Truncation(0.7, 6))
    frame = case.renderer.render(RenderRequest(case.renderer.facts.model_id, ((recipe, 1.0),)))

    z = np.stack([np.random.RandomState(seed).randn(case.renderer.facts.z_dim) for seed in (5, 6)])
    c = np.eye(case.renderer.facts.c_dim)[[2, 2]] if classes else None
    rows = case.renderer.map(z, c, psi=0.7, cutoff=6)
    rows[0, 4:] = rows[1, 4:]
    expected = to_bytes(case.renderer.synthesize(rows[:1])[0])
    difference = np.abs(frame.to_rgb().astype(int) - expected.astype(int))
    assert difference.max() <= 1, "rounding may tip a byte over"
    assert (difference > 0).mean() < 0.001

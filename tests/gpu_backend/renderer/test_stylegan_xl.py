"""StyleGAN-XL through the front door: classes, each with an average of w of its own, and pictures."""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend import (
    DirectionAmount,
    Latent,
    MixSource,
    Model,
    Point,
    Recipe,
    Renderer,
    RenderOptions,
    RenderRequest,
    RequestError,
    Truncation,
    read_model,
)
from gpu_backend.cuda.compiling.compilation import Compilation
from gpu_backend.cuda.compiling.compiler import CompiledKernel
from gpu_backend.cuda.executor import CudaExecutor
from gpu_backend.cuda.running.self_check import SelfCheckRecord
from gpu_backend.reference.stylegan3 import run_stylegan3
from tests.helpers.fake_gpu import COMPARISON, FAKE_GPU, FakeDriver, FakeKernel
from tests.helpers.golden import to_bytes
from tests.helpers.network_file import write_nvidia_pickle
from tests.helpers.requests import request_for
from tests.helpers.stylegan3 import R
from tests.helpers.stylegan_xl import make_stylegan_xl

MODEL = make_stylegan_xl(resolution=32)
NUM_WS = MODEL.spec.num_ws
Z = np.random.RandomState(5).randn(3, 6)
LABELS = np.eye(4, dtype=np.float32)


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    renderer = Renderer(MODEL, "cpu")
    yield renderer
    renderer.close()


def mapped(z: np.ndarray, picked: int | None, model: Model = MODEL) -> np.ndarray:
    """The mapping network by its formulas, (n, w_dim) in double precision; no class for a network without any."""
    weights = {name: array.astype(np.float64) for name, array in model.weights.items()}

    def normal(x: np.ndarray) -> np.ndarray:
        return x / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-8)

    def connected(x: np.ndarray, name: str, rate: float) -> np.ndarray:
        y = x @ weights[f"{name}.weight"].T * (rate / math.sqrt(x.shape[1])) + weights[f"{name}.bias"] * rate
        return np.asarray(np.maximum(y, 0.2 * y) * math.sqrt(2))

    x = normal(z.astype(np.float32).astype(np.float64))
    if picked is not None:
        row = weights["mapping.embed.weight"][picked][None]
        y = normal(connected(row, "mapping.embed_proj", 1.0))
        x = np.concatenate([x, np.repeat(y, len(x), axis=0)], axis=1)
    for layer in range(2):
        x = connected(x, f"mapping.fc{layer}", 0.01)
    return x


@pytest.mark.parametrize("picked", range(4))
def test_a_class_is_mapped_and_truncated_towards_its_own_average(renderer: Renderer, picked: int) -> None:
    c = np.repeat(LABELS[picked][None], 3, axis=0)
    w = mapped(Z, picked)
    assert renderer.map(Z, c)[:, 0] == pytest.approx(w, abs=1e-5)
    own = MODEL.weights["mapping.w_avg"][picked]
    rows = renderer.map(Z, c, psi=0.4, cutoff=3)
    assert rows[:, :3] == pytest.approx(np.repeat((own + 0.4 * (w - own))[:, None], 3, axis=1), abs=1e-5)
    assert rows[:, 3:] == pytest.approx(np.repeat(w[:, None], NUM_WS - 3, axis=1), abs=1e-5)
    assert renderer.map(Z, c, psi=0.0)[:, 0] == pytest.approx(np.tile(own, (3, 1)), abs=1e-6)


def test_labels_of_one_call_may_be_of_different_classes(renderer: Renderer) -> None:
    rows = renderer.map(Z, LABELS[[2, 0, 3]], psi=0.5)
    for index, picked in enumerate((2, 0, 3)):
        own = MODEL.weights["mapping.w_avg"][picked]
        assert rows[index, 0] == pytest.approx(own + 0.5 * (mapped(Z, picked)[index] - own), abs=1e-5)


def test_no_class_is_class_0_as_the_largest_number_of_an_empty_label_is_the_first(renderer: Renderer) -> None:
    assert np.array_equal(renderer.map(Z, psi=0.3), renderer.map(Z, np.repeat(LABELS[:1], 3, axis=0), psi=0.3))
    none, zeroth = (request_for(renderer, Latent(classes=classes), psi=0.3) for classes in ((), ((0, 1.0),)))
    assert np.array_equal(renderer.render(none).pixels, renderer.render(zeroth).pixels)


def test_the_averages_are_reported(renderer: Renderer) -> None:
    assert np.array_equal(renderer.w_avg, MODEL.weights["mapping.w_avg"])
    assert MODEL.mean_w == pytest.approx(MODEL.weights["mapping.w_avg"].mean(axis=0))


@pytest.mark.parametrize("network", [{}, R, {"c_dim": 0}], ids=["T", "R", "no classes"])
def test_a_picture_of_a_seed_is_the_one_that_the_formulas_give(network: dict[str, Any], tmp_path: Path) -> None:
    made = make_stylegan_xl(resolution=32, **network)
    model = read_model(write_nvidia_pickle(tmp_path / "n.pkl", made))
    renderer = Renderer(model, "cpu")
    picked = 2 if made.spec.mapping.c_dim else None
    w = mapped(np.random.RandomState(7).randn(1, 6), picked, made)
    average = made.weights["mapping.w_avg"] if picked is None else made.weights["mapping.w_avg"][picked]
    ws = np.repeat((average + 0.7 * (w - average))[:, None], made.spec.num_ws, axis=1)
    weights = {name: torch.from_numpy(array).double() for name, array in made.weights.items()}
    image = run_stylegan3(made.spec, weights, torch.from_numpy(ws)).numpy()
    assert renderer.synthesize(ws) == pytest.approx(image, abs=2e-5)
    latent = Latent(Point(((7, 1.0),)), classes=() if picked is None else ((picked, 1.0),))
    request = request_for(renderer, latent, psi=0.7)
    own = renderer.synthesize(rows_of(renderer, *request.blend)[None])[0]
    halves = own.transpose(1, 2, 0) * np.float32(127.5) + np.float32(127.5)
    expected = np.clip(halves, 0, 255).astype(np.uint8)
    for options in (RenderOptions(), RenderOptions(use_fused=False)):
        renderer.options = options
        found = renderer.render(request).to_rgb()
        assert np.mean(found != expected) <= (0.001 if options.use_fused else 0.01), "rounding aside"
        assert np.mean(found != to_bytes(own).transpose(1, 2, 0)) > 0.3, "which is half a level darker"
    renderer.close()


def rows_of(renderer: Renderer, *recipes: tuple[Recipe, float]) -> np.ndarray:
    return renderer._rows(recipes)


def test_everything_in_a_mix_is_truncated_towards_the_average_of_its_own_class(renderer: Renderer) -> None:
    averages = MODEL.weights["mapping.w_avg"]

    def truncated(seed: int, picked: int) -> np.ndarray:
        w = mapped(np.random.RandomState(seed).randn(1, 6), picked)[0]
        return np.asarray(averages[picked] + 0.5 * (w - averages[picked]))

    source = MixSource(Latent(Point(((2, 1.0),)), ((3, 1.0),)), (0.0, 1.0, 0.25))
    pushed = DirectionAmount("axis/4", 1.5)
    latent = Latent(Point(((1, 1.0),)), ((1, 1.0),), (source,), (pushed,))
    rows = rows_of(renderer, (Recipe(latent, Truncation(0.5)), 1.0))
    expected = np.tile(truncated(1, 1), (NUM_WS, 1))
    expected[1] = truncated(2, 3)
    expected[2] += 0.25 * (truncated(2, 3) - expected[2])
    expected[:, 4] += 1.5
    assert rows == pytest.approx(expected, abs=1e-5)
    both = rows_of(
        renderer,
        (Recipe(Latent(Point(((1, 1.0),)), ((1, 1.0),)), Truncation(0.5)), 0.4),
        (Recipe(Latent(Point(((2, 1.0),)), ((3, 1.0),)), Truncation(0.5)), 0.6),
    )
    assert both[0] == pytest.approx(0.4 * truncated(1, 1) + 0.6 * truncated(2, 3), abs=1e-5)


def test_a_place_between_seeds_goes_to_the_average_of_its_class(renderer: Renderer) -> None:
    for space in ("w", "z"):
        latent = Latent(Point(((1, 0.25), (2, 0.75)), space), ((2, 1.0),))
        rows = rows_of(renderer, (Recipe(latent, Truncation(0.0)), 1.0))
        assert rows == pytest.approx(np.tile(MODEL.weights["mapping.w_avg"][2], (NUM_WS, 1)), abs=1e-6)


def test_several_classes_share_the_table_and_the_average_by_weight(renderer: Renderer) -> None:
    averages = MODEL.weights["mapping.w_avg"]
    for classes in (((1, 0.25), (3, 0.75)), ((1, 0.5), (3, 1.5))):
        rows = rows_of(renderer, (Recipe(Latent(classes=classes), Truncation(0.0)), 1.0))
        assert rows[0] == pytest.approx(0.25 * averages[1] + 0.75 * averages[3], abs=1e-6)
    table = MODEL.weights["mapping.embed.weight"].copy()
    table[2] = 0.25 * table[1] + 0.75 * table[3]
    other = Model(MODEL.spec, {**MODEL.weights, "mapping.embed.weight": table}, MODEL.facts)
    blended = renderer.map(Z, np.repeat([[0, 0.25, 0, 0.75]], 3, axis=0))
    assert blended[:, 0] == pytest.approx(mapped(Z, 2, other), abs=1e-5)


def test_a_missing_class_is_refused(renderer: Renderer) -> None:
    request = request_for(renderer, Latent(classes=((4, 1.0),)))
    with pytest.raises(RequestError, match=r"must be in 0\.\.3 for this network, not 4"):
        renderer.render(request)


@pytest.mark.parametrize("precision", ["fp16", "tf32", "bf16x3", "fp32"])
def test_everything_is_bound_on_a_gpu(precision: Any, tmp_path: Path) -> None:
    """On one made of Python, whose kernels do nothing."""
    driver = FakeDriver(kernels=defaultdict(lambda: FakeKernel(lambda *_, **__: None), comparison=COMPARISON))
    executor = CudaExecutor(
        MODEL,
        precision=precision,
        driver=driver,
        gpu=FAKE_GPU,
        record=SelfCheckRecord(tmp_path, "driver"),
        compiled=lambda recipes, _: Compilation({recipe: CompiledKernel(b"", 32, 0, 16) for recipe in recipes}, {}),
    )
    renderer = Renderer(MODEL, executor=executor)
    assert renderer.map(Z, LABELS[:3]).shape == (3, NUM_WS, 8)
    assert renderer.render(request_for(renderer, Latent(classes=((2, 1.0),)))).pixels.shape == (32, 32, 4)
    assert not executor.fallbacks
    renderer.close()


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp16", "tf32", "bf16x3", "fp32"])
@pytest.mark.parametrize("network", [{}, {"resolution": 64, "channel_base": 640, "channel_max": 40, **R}, {"c_dim": 0}])
def test_a_gpu_gives_the_rows_and_pictures_of_the_processor(gpu: Any, network: dict[str, Any], precision: Any) -> None:
    model = make_stylegan_xl(**{"resolution": 32, "w_dim": 20, **network})
    here, there = Renderer(model, "cpu"), Renderer(model, "cuda", precision=precision)
    z = np.random.RandomState(1).randn(5, 6)
    labels = LABELS[[0, 3, 1, 2, 3]] if model.spec.mapping.c_dim else None
    assert there.map(z, labels, psi=0.6) == pytest.approx(here.map(z, labels, psi=0.6), abs=1e-4)
    for seed in range(3):
        classes = ((seed, 1.0),) if model.spec.mapping.c_dim else ()
        recipe = Recipe(Latent(Point(((seed, 1.0),)), classes), Truncation(0.8))
        request = RenderRequest(model.facts.model_id, ((recipe, 1.0),))
        apart = np.abs(there.render(request).pixels.astype(int) - here.render(request).pixels)
        assert apart.max() <= {"fp16": 12, "tf32": 12, "bf16x3": 1, "fp32": 1}[precision]
        plain = replace(request, measure_steps=True)
        assert np.array_equal(there.render(plain).pixels, there.render(request).pixels)
    here.close()
    there.close()

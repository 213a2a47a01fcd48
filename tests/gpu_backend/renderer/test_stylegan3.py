"""StyleGAN3 through the front door: transforms, layers, and what is refused."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from gpu_backend import (
    CancelledError,
    Latent,
    Model,
    Noise,
    Renderer,
    RenderOptions,
    RenderRequest,
    RequestError,
    Tap,
    Transform,
)
from tests.helpers.golden import to_bytes
from tests.helpers.networks import make_stylegan2
from tests.helpers.requests import request_for
from tests.helpers.stylegan3 import R, make_stylegan3

MODEL = make_stylegan3(resolution=32, num_layers=6, **R)


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    renderer = Renderer(MODEL, "cpu")
    yield renderer
    renderer.close()


def rows_of(model: Model, count: int = 1) -> np.ndarray:
    return np.random.default_rng(3).standard_normal((count, model.spec.num_ws, model.spec.w_dim))


def test_a_request_gives_the_bytes_of_the_synthesized_picture(renderer: Renderer) -> None:
    transform = Transform(0.2, -0.1, 40.0, 1.5)
    request = replace(request_for(renderer, Latent(), psi=0.6), transform=transform.matrix)
    frame = renderer.render(request)
    rows = renderer.map(np.random.RandomState(0).randn(1, 8), psi=0.6)
    image = renderer.synthesize(rows, transform=np.reshape(transform.matrix, (3, 3)))[0]
    expected = to_bytes(image).transpose(1, 2, 0)
    assert np.abs(frame.to_rgb() - expected).max() <= 1
    assert frame.request == request
    assert not frame.is_draft
    still = renderer.render(replace(request, transform=None))
    assert np.abs(still.to_rgb().astype(int) - frame.to_rgb()).max() > 1
    assert np.array_equal(renderer.render(request).pixels, frame.pixels), "it comes back as it was"


def test_no_transform_leaves_the_one_that_the_model_stores() -> None:
    matrix = np.reshape(Transform(degrees=90.0).matrix, (3, 3))
    weights = {**MODEL.weights, "synthesis.input.transform": matrix.astype(np.float32)}
    turned = Renderer(Model(MODEL.spec, weights, MODEL.facts), "cpu")
    ws = rows_of(MODEL)
    own = turned.synthesize(ws)
    assert own == pytest.approx(turned.synthesize(ws, transform=matrix), abs=1e-6)
    turned.synthesize(ws, transform=np.eye(3))
    assert np.array_equal(turned.synthesize(ws), own)
    turned.close()


def test_a_drag_of_the_transform_builds_no_plan(renderer: Renderer) -> None:
    renderer.render(request_for(renderer))
    keys = renderer._runner._plan_cache.keys
    for degrees in range(5):
        renderer.render(replace(request_for(renderer), transform=Transform(degrees=degrees).matrix))
    assert renderer._runner._plan_cache.keys == keys


def test_missing_noise_changes_nothing(renderer: Renderer) -> None:
    request = request_for(renderer)
    for noise in (Noise("none"), Noise("random", 7), Noise(gain=3.0)):
        assert np.array_equal(renderer.render(replace(request, noise=noise)).pixels, renderer.render(request).pixels)
    with pytest.raises(RequestError, match="0 noise layers, but has 1"):
        renderer.render(replace(request, noise=Noise(layer_gains=(1.0,))))


@pytest.mark.parametrize("model", [MODEL, make_stylegan2(resolution=16, img_channels=4)])
def test_every_layer_can_be_the_picture(model: Model) -> None:
    renderer = Renderer(model, "cpu")
    request = request_for(renderer)
    for layer in renderer.facts.layers:
        channels = (0, layer.channels - 1, 0) if layer.channels > 1 else (0,)
        frame = renderer.render(replace(request, tap=Tap(layer.name, channels)))
        assert frame.pixels.shape == (layer.side, layer.side, 4)
        assert not frame.is_draft
        assert not frame.has_alpha
    dark = renderer.render(replace(request, tap=Tap(layer.name, gain_db=-200.0))).pixels
    assert (dark[..., :3] == 128).all()
    renderer.close()


def test_a_shown_layer_can_be_measured_compared_and_cancelled(renderer: Renderer) -> None:
    name = MODEL.spec.layers[2].name
    request = replace(request_for(renderer), tap=Tap(name), transform=Transform(x=0.1).matrix)
    steps = renderer.render(replace(request, measure_steps=True)).timings.steps
    assert steps[-2].layer == f"synthesis.{name}"
    assert renderer.compare(request).largest_difference <= 1
    with pytest.raises(CancelledError):
        renderer.render(request, should_cancel=lambda: True)
    renderer.options = RenderOptions(use_fused=False)
    plain = renderer.render(request).pixels.astype(int)
    renderer.options = RenderOptions()
    assert np.abs(renderer.render(request).pixels - plain).max() <= 1


def refusals(good: RenderRequest) -> list[tuple[RenderRequest, str]]:
    name = MODEL.spec.layers[0].name
    return [
        (replace(good, transform=(1.0,) * 8), "A transform must be nine finite numbers"),
        (replace(good, transform=(math.nan,) * 9), "A transform must be nine finite numbers"),
        (replace(good, resolution=16), "The resolution must be one of 32 for this network, not 16"),
        (replace(good, tap=Tap("b8.conv0")), f"one of this network's, input to {MODEL.spec.layers[-1].name}, not"),
        (replace(good, tap=Tap(name, (6,))), f"{name} has the channels 0 to 5, but channel 6 was requested"),
        (replace(good, tap=Tap(name, (-1,))), "but channel -1 was requested"),
        (replace(good, tap=Tap(name, (0, 1))), "by one channel or by three, not by 2"),
        (replace(good, tap=Tap(name, gain_db=math.nan)), "in -200..200 dB, not nan"),
        (replace(good, tap=Tap(name), resolution=32), "A layer comes at its own resolution"),
    ]


def test_a_feature_the_model_lacks_is_refused_with_one_sentence(renderer: Renderer) -> None:
    for request, words in refusals(request_for(renderer)):
        with pytest.raises(RequestError, match=re.escape(words)) as caught:
            renderer.render(request)
        assert caught.value.sentence.endswith(".")
    with pytest.raises(RequestError, match="nine finite numbers"):
        renderer.synthesize(rows_of(MODEL), transform=np.eye(2))
    with pytest.raises(RequestError, match="array of nine numbers, but is not"):
        renderer.synthesize(rows_of(MODEL), transform="left")
    renderer.render(request_for(renderer))


def test_layer_statistics_follow_the_transform(renderer: Renderer) -> None:
    ws = rows_of(MODEL)
    still = renderer.layer_statistics(ws)
    moved = renderer.layer_statistics(ws, transform=np.reshape(Transform(x=0.3).matrix, (3, 3)))
    assert list(still) == ["synthesis.input", *(f"synthesis.{layer.name}" for layer in MODEL.spec.layers)]
    assert still["synthesis.input"].mean != moved["synthesis.input"].mean

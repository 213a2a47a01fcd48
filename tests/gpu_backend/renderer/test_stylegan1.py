"""StyleGAN1 through the front door: drafts, batches, layers, and what is refused."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from gpu_backend import CancelledError, Latent, Noise, Renderer, RenderRequest, RequestError, Tap
from gpu_backend.latent.sefa import sefa_directions
from tests.helpers.golden import to_bytes
from tests.helpers.requests import request_for
from tests.helpers.stylegan1 import make_stylegan1

MODEL = make_stylegan1(resolution=32, channel_base=256)


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    renderer = Renderer(MODEL, "cpu")
    yield renderer
    renderer.close()


def test_a_request_gives_the_bytes_of_the_synthesized_picture(renderer: Renderer) -> None:
    frame = renderer.render(request_for(renderer, Latent(), psi=0.6))
    rows = renderer.map(np.random.RandomState(0).randn(1, 8), psi=0.6)
    expected = to_bytes(renderer.synthesize(rows)[0]).transpose(1, 2, 0)
    assert np.abs(frame.to_rgb().astype(int) - expected).max() <= 1


def test_pictures_of_a_batch_are_those_of_each_alone(renderer: Renderer) -> None:
    rows = renderer.map(np.random.RandomState(0).randn(11, 8))
    together = renderer.synthesize(rows)
    for index in (0, 7, 10):
        np.testing.assert_allclose(together[index], renderer.synthesize(rows[index : index + 1])[0], atol=1e-4)


def test_noise_changes_the_picture_layer_by_layer_and_comes_back(renderer: Renderer) -> None:
    request = request_for(renderer, Latent())
    first = renderer.render(request).to_rgb()
    assert len(renderer.facts.noise_layers) == 8
    others = [Noise(mode="none"), Noise(mode="random", seed=4), Noise(gain=2.0)]
    others += [Noise(layer_gains=(1.0,) * place + (3.0,)) for place in range(8)]
    for noise in others:
        assert np.abs(renderer.render(replace(request, noise=noise)).to_rgb().astype(int) - first).max() > 1, noise
    np.testing.assert_array_equal(renderer.render(request).to_rgb(), first)
    with pytest.raises(RequestError, match="8 noise layers"):
        renderer.render(replace(request, noise=Noise(layer_gains=(1.0,) * 9)))


def test_a_draft_has_the_noise_of_its_layers(renderer: Renderer) -> None:
    request = replace(request_for(renderer, Latent()), resolution=8)
    silent = renderer.render(replace(request, noise=Noise(mode="none")))
    loud = renderer.render(replace(request, noise=Noise(layer_gains=(1.0, 5.0))))
    assert silent.is_draft
    assert silent.to_rgb().shape == (8, 8, 3)
    assert np.abs(silent.to_rgb().astype(int) - loud.to_rgb()).max() > 1
    above = renderer.render(replace(request, noise=Noise(layer_gains=(1.0,) * 4 + (5.0,) * 4)))
    np.testing.assert_array_equal(above.to_rgb(), renderer.render(request).to_rgb())


def test_a_network_whose_file_kept_one_picture_has_no_drafts() -> None:
    lone = Renderer(make_stylegan1(pictures=()), "cpu")
    assert lone.facts.draft_resolutions == ()
    with pytest.raises(RequestError, match="must be one of 16"):
        lone.render(replace(request_for(lone, Latent()), resolution=8))
    lone.close()


def test_each_layer_can_be_shown(renderer: Renderer) -> None:
    for layer in renderer.facts.layers:
        request = replace(request_for(renderer, Latent()), tap=Tap(layer.name, (0, 1, 2), is_normalized=True))
        assert renderer.render(request).to_rgb().shape == (layer.side, layer.side, 3)


def test_the_plain_way_gives_the_same_picture(renderer: Renderer) -> None:
    assert renderer.compare(request_for(renderer, Latent())).largest_difference <= 1


def test_directions_are_those_of_all_styles_scales_and_shifts(renderer: Renderer) -> None:
    styled = [layer.name for layer in MODEL.spec.layers if layer.kind != "to_rgb"]
    expected = sefa_directions(
        [MODEL.weights[f"synthesis.{name}.affine.weight"] for name in styled],
        [MODEL.weights[f"synthesis.{name}.affine.bias"] for name in styled],
        MODEL.weights["mapping.w_avg"],
    )
    np.testing.assert_array_equal(renderer.directions.vectors, expected.vectors)


def test_a_transform_is_refused_with_a_sentence(renderer: Renderer) -> None:
    request = replace(request_for(renderer, Latent()), transform=(1.0, 0.0, 0.1, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0))
    with pytest.raises(RequestError, match="A StyleGAN1 network takes no transform"):
        renderer.render(request)


def test_an_outdated_picture_is_cancelled(renderer: Renderer) -> None:
    request = RenderRequest(model_id=renderer.facts.model_id)
    with pytest.raises(CancelledError):
        renderer.render(request, should_cancel=lambda: True)
    assert renderer.render(request).to_rgb().shape == (32, 32, 3)

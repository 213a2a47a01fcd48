"""Style channels that move a region, against finite differences of the renderer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpu_backend import LocalEdits, Model, Renderer, StyleOffset
from gpu_backend.gradients.network import differentiable_network
from gpu_backend.gradients.style_search import MOST_FOUND, StyleSearch, style_deviations
from gpu_backend.plan.edit_inputs import style_lengths
from tests.helpers.networks import make_stylegan2
from tests.helpers.requests import request_for
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import make_stylegan3

MODELS: dict[str, Model] = {
    "skip": make_stylegan2(resolution=16),
    "resnet": make_stylegan2(resolution=16, architecture="resnet"),
    "AdaIN": make_stylegan1(resolution=16),
    "T": make_stylegan3(num_layers=5),
}
FAMILIES = pytest.mark.parametrize("name", MODELS)


@FAMILIES
def test_an_offset_changes_the_differentiable_picture_as_the_renderers(name: str) -> None:
    model = MODELS[name]
    styled = list(style_lengths(model.spec).items())
    chosen = [(layer, length - 1) for layer, length in (styled[0], styled[len(styled) // 2], styled[-1])]
    network = differentiable_network(model)
    network.style_offsets = {
        layer: torch.nn.functional.one_hot(torch.tensor(place), dict(styled)[layer]).float() * 0.5
        for layer, place in chosen
    }
    edits = LocalEdits(style_offsets=tuple(StyleOffset(layer, place, 0.5) for layer, place in chosen))
    with Renderer(model, "cpu") as renderer:
        request = request_for(renderer, edits=edits, wants_image=True)
        rows = torch.from_numpy(renderer.rows_of(request.blend))[None]
        image = renderer.render(request).image
    assert image is not None
    found = network.picture(rows)[0].permute(1, 2, 0).numpy()
    np.testing.assert_allclose(found, image, atol=1e-4 * max(1.0, float(np.abs(image).max())))


@FAMILIES
def test_a_search_ends_with_channels_that_move_the_region_more_than_the_rest(name: str) -> None:
    model = MODELS[name]
    mask = np.zeros((128, 128), np.float32)
    mask[:, :64] = 1.0
    rows = np.random.default_rng(0).standard_normal((model.spec.num_ws, model.spec.w_dim)).astype(np.float32)
    search = StyleSearch(differentiable_network(model), rows, mask, probes=4)
    shares = []
    while (found := search.step()) is None:
        shares.append(search.share)
    assert shares == sorted(shares)
    assert search.share == 1.0
    assert 0 < len(found) <= MOST_FOUND
    assert len({(item.layer, item.channel) for item in found}) == len(found)
    scores = [item.inside**2 / (item.inside + item.outside) for item in found]
    assert scores == sorted(scores, reverse=True)
    lengths = style_lengths(model.spec)
    assert all(item.channel < lengths[item.layer] and item.reach > 0 for item in found)


def test_a_normalised_style_deviates_alike_whatever_the_size_of_its_affine_layer() -> None:
    small = MODELS["T"]
    large = replace(
        small,
        weights={name: array * np.float32(4) if ".affine." in name else array for name, array in small.weights.items()},
    )
    expected, found = (style_deviations(differentiable_network(model, dtype=torch.float64)) for model in (small, large))
    layer = next(iter(expected))
    torch.testing.assert_close(found[layer], expected[layer])


def test_what_is_estimated_is_the_change_of_the_picture() -> None:
    model = MODELS["skip"]
    network = differentiable_network(model, dtype=torch.float64)
    rows = np.random.default_rng(1).standard_normal((model.spec.num_ws, model.spec.w_dim)).astype(np.float32)
    search = StyleSearch(network, rows, np.ones((128, 128), np.float32), probes=200)
    while (found := search.step()) is None:
        pass
    best = found[0]
    deviation = float(style_deviations(network)[best.layer][best.channel])
    ws, step = network.tensor(rows)[None], 1e-4
    network.style_offsets = {best.layer: torch.zeros(style_lengths(model.spec)[best.layer], dtype=torch.float64)}
    before = network.picture(ws)
    network.style_offsets[best.layer][best.channel] = step
    change = (network.picture(ws) - before) / step * deviation
    # A probe is smooth only where the picture is larger than its grid: here each pixel is a number of its own.
    expected = float(change.square().sum().div(16 * 16).sqrt())
    assert best.inside == pytest.approx(expected, rel=0.25)

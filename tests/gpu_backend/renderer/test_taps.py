"""Frames of layers: what they say of the layer, and what the hand may move without a new plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from gpu_backend import Renderer, RenderRequest, Tap, request_from_json, request_to_json
from tests.helpers.networks import make_stylegan2
from tests.helpers.requests import request_for

MODEL = make_stylegan2(resolution=16)
LAYER = "b16.conv0"


@pytest.fixture
def renderer() -> Iterator[Renderer]:
    renderer = Renderer(MODEL, "cpu")
    yield renderer
    renderer.close()


def test_a_picture_has_no_layer(renderer: Renderer) -> None:
    assert renderer.render(replace(request_for(renderer), wants_tap_values=True)).tap is None


@pytest.mark.parametrize("channels", [(3,), (3, 0, 2)])
def test_a_frame_has_statistics_of_each_shown_channel_and_of_the_layer(
    renderer: Renderer, channels: tuple[int, ...]
) -> None:
    tap = Tap(LAYER, channels, gain_db=12.0)
    found = renderer.render(replace(request_for(renderer), tap=tap, wants_tap_values=True)).tap
    facts = next(layer for layer in renderer.facts.layers if layer.name == LAYER)
    assert found is not None
    assert (found.layer, found.shape) == (LAYER, (facts.channels, facts.side, facts.side))
    assert len(found.shown) == len(channels)
    assert found.values is not None
    assert found.values.shape == (16, 16)
    first = found.shown[0]
    assert first.mean == pytest.approx(found.values.mean(), abs=1e-6)
    assert first.std == pytest.approx(found.values.std(), rel=1e-5)
    assert (first.min, first.max) == (found.values.min(), found.values.max())
    assert found.whole.max >= max(one.max for one in found.shown)
    assert found.whole.min <= min(one.min for one in found.shown)


def test_numbers_come_when_they_are_wanted_and_stay(renderer: Renderer) -> None:
    request = replace(request_for(renderer), tap=Tap(LAYER))
    without = renderer.render(request).tap
    assert without is not None
    assert without.values is None
    runs = [renderer.submit(replace(request, tap=Tap(LAYER, (place,)), wants_tap_values=True)) for place in (0, 1)]
    first, second = (run.wait().tap for run in runs)
    assert first is not None
    assert second is not None
    assert first.values is not None
    assert second.values is not None
    assert not np.array_equal(first.values, second.values)
    assert first.shown[0].max == first.values.max(), "the run after it changed nothing"
    with pytest.raises(ValueError, match="read-only"):
        first.values[0, 0] = 1


def test_wanting_numbers_is_no_part_of_the_recipe() -> None:
    request = RenderRequest("id", tap=Tap(LAYER), wants_tap_values=True)
    assert request_from_json(request_to_json(request)) == replace(request, wants_tap_values=False)


def test_channels_and_gain_need_no_new_plan_and_a_layer_needs_one(renderer: Renderer) -> None:
    request = replace(request_for(renderer), tap=Tap(LAYER))
    renderer.render(request)
    before = renderer.memory.plans
    for place in range(4):
        renderer.render(replace(request, tap=Tap(LAYER, (place,), 3.0 * place, bool(place % 2))))
    assert renderer.memory.plans == before
    renderer.render(replace(request, tap=Tap("b8.conv1")))
    assert renderer.memory.plans > before

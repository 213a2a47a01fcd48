"""Channels of a layer as pictures, and their clusters."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_backend import NO_EDITS, Bend, LocalEdits, Renderer, RequestError
from gpu_backend.channel_maps import channel_maps, cluster_channels, pooled
from tests.helpers.networks import make_stylegan2
from tests.helpers.requests import request_for


def halves(channels: int, side: int = 8) -> np.ndarray:
    """Channels that are active in the left or, every third, in the right half, of different strengths and signs."""
    values = np.zeros((channels, side, side), np.float32)
    for channel in range(channels):
        half = slice(side // 2, None) if channel % 3 == 0 else slice(None, side // 2)
        values[channel, :, half] = (-1) ** channel * (channel + 1)
    return values


def test_channels_with_one_place_are_one_cluster_whatever_their_strength_and_sign() -> None:
    maps = channel_maps("m", "b8.conv0", halves(9), 2)
    assert maps.channels_of(1) == (0, 3, 6)
    assert maps.channels_of(0) == (1, 2, 4, 5, 7, 8)
    assert maps.cluster_maps.shape == (2, 8, 8)
    assert maps.cluster_maps[0, :, :4].min() == 255
    assert maps.cluster_maps[0, :, 4:].max() == 0


def test_a_map_has_grey_for_zero_and_its_largest_magnitude_at_an_end() -> None:
    maps = channel_maps("m", "l", halves(2), 2).maps
    assert maps[0].min() == 128
    assert maps[0].max() == 255
    assert maps[1].min() == 1


def test_there_are_no_more_clusters_than_differing_channels() -> None:
    assert cluster_channels(np.ones((5, 4, 4), np.float32), 6).tolist() == [0] * 5
    assert cluster_channels(np.zeros((3, 4, 4), np.float32), 6).tolist() == [0] * 3
    generator = np.random.default_rng(0)
    values = generator.standard_normal((40, 20, 20)).astype(np.float32)
    assert np.array_equal(cluster_channels(values, 6), cluster_channels(values, 6))


def test_large_layers_are_averaged_over_parts() -> None:
    values = np.arange(2 * 52 * 52, dtype=np.float32).reshape(2, 52, 52)
    small = pooled(values, 16)
    assert small.shape == (2, 16, 16)
    assert small[0, 0, 0] == values[0, :3, :3].mean()
    assert pooled(values[:, :4, :4], 16).shape == (2, 4, 4)


def test_a_renderer_gives_the_channels_of_a_layer_without_edits() -> None:
    with Renderer(make_stylegan2(resolution=16), "cpu") as renderer:
        request = request_for(renderer, resolution=8, edits=LocalEdits((Bend("b4.conv1", "gain", 0.0),)))
        maps = renderer.channel_maps(request, "b8.conv1")
        plain = renderer.channel_maps(request_for(renderer, edits=NO_EDITS), "b8.conv1")
        rows = renderer.rows_of(request.blend)[None]
        values = renderer.layer_statistics(rows, request.noise)["synthesis.b8.conv1"]
        assert maps.maps.shape[1:] == (8, 8)
        assert len(maps.maps) == len(np.atleast_1d(maps.clusters))
        np.testing.assert_array_equal(maps.maps, plain.maps)
        assert values is not None
        with pytest.raises(RequestError, match="layer must be one of"):
            renderer.channel_maps(request, "b99.conv1")

"""Layers as a renderer shows them, derived from their names."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpu_backend import LayerFacts, ModelFacts, RenderRequest, TappedLayer, ValueStatistics


def tapped_layer(request: RenderRequest, facts: ModelFacts) -> TappedLayer:
    """A frame's statistics of the tapped layer; channel c has the mean c."""
    assert request.tap is not None
    layer = layer_facts(facts, request.tap.layer)
    values = channel_values(layer, request.tap.channels[0])
    return TappedLayer(
        layer=layer.name,
        shape=(layer.channels, layer.side, layer.side),
        shown=tuple(
            ValueStatistics(float(channel), 0.5, channel - 1.0, channel + 1.0) for channel in request.tap.channels
        ),
        whole=ValueStatistics(0.25, 1.5, -3.0, 4.0),
        values=values if request.wants_tap_values else None,
    )


def layer_facts(facts: ModelFacts, name: str) -> LayerFacts:
    return next(layer for layer in facts.layers if layer.name == name)


def channel_values(layer: LayerFacts, channel: int) -> NDArray[np.float32]:
    """(side, side) float32: waves across, faster ones in later channels."""
    across = np.arange(layer.side, dtype=np.float32) / layer.side
    waves = channel + np.sin(2 * np.pi * (1 + channel % max(1, layer.side // 4)) * across)
    return np.ascontiguousarray(np.broadcast_to(waves, (layer.side, layer.side)), dtype=np.float32)


def layer_pixels(request: RenderRequest, facts: ModelFacts) -> NDArray[np.uint8]:
    """(side, side, 4) uint8 B, G, R, X, read-only."""
    assert request.tap is not None
    layer = layer_facts(facts, request.tap.layer)
    channels = request.tap.channels if len(request.tap.channels) == 3 else request.tap.channels * 3
    pixels = np.full((layer.side, layer.side, 4), 255, np.uint8)
    for place, channel in zip((2, 1, 0), channels, strict=True):
        values = channel_values(layer, channel) - channel
        pixels[..., place] = np.clip(values * 127.5 + 128, 0, 255).astype(np.uint8)
    pixels.flags.writeable = False
    return pixels

"""Which layer is shown, and how: pure."""

from __future__ import annotations

from dataclasses import replace

from gpu_backend import ModelFacts, Tap

MAX_GAIN_DB = 100.0
"""Gain of a shown layer, on either side of 0 dB."""


def fit_tap(tap: Tap, facts: ModelFacts) -> Tap | None:
    """Return the tap with channels and a gain that its layer can have; None where the model has no such layer."""
    count = next((layer.channels for layer in facts.layers if layer.name == tap.layer), 0)
    if count == 0:
        return None
    channels = tap.channels
    if len(channels) not in (1, 3) or max(channels) >= count:
        channels = (0, 1, 2) if len(channels) == 3 <= count else (0,)
    return replace(tap, channels=channels, gain_db=max(-MAX_GAIN_DB, min(MAX_GAIN_DB, tap.gain_db)))


def first_tap(facts: ModelFacts) -> Tap | None:
    """Return the layer to begin with: half-way through the network, where shapes are to be seen, and no toRGB."""
    layers = [layer for layer in facts.layers if layer.channels > facts.img_channels] or list(facts.layers)
    return Tap(layers[len(layers) // 2].name) if layers else None

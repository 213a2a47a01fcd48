"""Texts about layers, channels and statistics: pure functions."""

from __future__ import annotations

import math

from gpu_backend import LayerFacts, Tap

_MINUS = "−"


def channels_text(tap: Tap) -> str:
    """Return the channels of a tap: "channel 12", "channels 0, 1, 2"."""
    numbers = ", ".join(str(channel) for channel in tap.channels)
    return f"channel{'s' if len(tap.channels) > 1 else ''} {numbers}"


def layer_tip(layer: LayerFacts) -> str:
    """Return a sentence about a layer."""
    count = f"{layer.channels} channel{'s' if layer.channels > 1 else ''}"
    return f"Show the output of {layer.name}: {count} of {layer.side} × {layer.side}."


def statistic_text(value: float) -> str:
    """Return a number with about four digits, for constant width: −0.031, 12.34, 1,204."""
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    if size >= 99_999.5:
        text = f"{size:.1e}"
    elif size >= 999.95:
        text = f"{size:,.0f}"
    else:
        text = f"{size:.{3 if size < 9.9995 else 2 if size < 99.995 else 1}f}"
    return _MINUS + text if value < 0 and text.strip("0.") else text


def decibels_text(value: float) -> str:
    """Return a level in whole decibels: "−43 dB"."""
    return f"{value:.0f} dB".replace("-", _MINUS)


def frequency_text(across: float, down: float) -> str:
    """Return a spatial frequency in cycles per pixel: "+0.125, −0.250 cycles/px"."""
    return f"{across:+.3f}, {down:+.3f} cycles/px".replace("-", _MINUS)

"""How numbers, channels and waves are written."""

from __future__ import annotations

import pytest

from explorer_app.window.layers.layer_text import (
    channels_text,
    decibels_text,
    frequency_text,
    layer_tip,
    statistic_text,
)
from gpu_backend import LayerFacts, Tap


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.000"),
        (-0.0314, "−0.031"),
        (-0.0001, "0.000"),
        (9.9996, "10.00"),
        (-12.345, "−12.35"),
        (99.996, "100.0"),
        (999.96, "1,000"),
        (12345.6, "12,346"),
        (-1.5e7, "−1.5e+07"),
        (float("inf"), "–"),
        (float("nan"), "–"),
    ],
)
def test_a_figure_keeps_its_width(value: float, text: str) -> None:
    assert statistic_text(value) == text
    assert len(text) <= 8


def test_channels_waves_and_levels_are_said_in_the_words_of_the_field() -> None:
    assert channels_text(Tap("a", (12,))) == "channel 12"
    assert channels_text(Tap("a", (2, 0, 1))) == "channels 2, 0, 1"
    assert frequency_text(0.125, -0.25) == "+0.125, −0.250 cycles/px"
    assert decibels_text(-43.4) == "−43 dB"
    assert layer_tip(LayerFacts("b4.conv1", 512, 4)) == "Show the output of b4.conv1: 512 channels of 4 × 4."
    assert layer_tip(LayerFacts("out", 1, 4)) == "Show the output of out: 1 channel of 4 × 4."

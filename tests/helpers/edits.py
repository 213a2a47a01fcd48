"""Edits that several tests make of whole values."""

from __future__ import annotations

from explorer_app.session.edits import SetParameters
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Slider
from gpu_backend import Noise


def set_noise(noise: Noise) -> SetParameters:
    """An edit that sets all noise parameters."""
    fields = (SetParameter(f"noise.{name}", getattr(noise, name)) for name in ("mode", "seed", "gain"))
    gains = (SetParameter(f"noise.layer/{index}", gain) for index, gain in enumerate(noise.layer_gains))
    return SetParameters((*fields, *gains), "Noise")


def whole_slider(slider: Slider) -> SetParameters:
    """An edit that sets all parameters of a direction's slider."""
    values = {"slider": slider.amount, "rows": slider.rows, "name": slider.label, "star": slider.starred}
    edits = (SetParameter(f"{field}/{slider.direction}", value) for field, value in values.items())
    return SetParameters(tuple(edits), "Slider")

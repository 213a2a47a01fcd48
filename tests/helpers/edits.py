"""Edits that several tests make of whole values."""

from __future__ import annotations

from explorer_app.session.edits import Together
from explorer_app.session.parameters import SetParameter
from gpu_backend import Noise


def set_noise(noise: Noise) -> Together:
    """The edit that sets everything about the noise."""
    fields = (SetParameter(f"noise.{name}", getattr(noise, name)) for name in ("mode", "seed", "gain"))
    gains = (SetParameter(f"noise.layer/{index}", gain) for index, gain in enumerate(noise.layer_gains))
    return Together((*fields, *gains), "Noise")

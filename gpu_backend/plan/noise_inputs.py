"""Arrays for the noise inputs of a synthesis plan."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import RequestError
from gpu_backend.recipe import SEED_COUNT, Noise, NoiseMode

MAX_GAIN = 1000.0
"""Far above useful gains; keeps products within float32."""


def check_noise(noise: Noise, layer_count: int) -> None:
    """Check noise settings for a network with `layer_count` noise layers.

    Raises
    ------
    RequestError
        If a value is out of range, or there are gains for more layers.
    TypeError
        If the seed is not a whole number.
    """
    if noise.mode not in get_args(NoiseMode):
        raise RequestError(f"The noise mode must be one of {', '.join(get_args(NoiseMode))}, not {noise.mode!r}.")
    if not hasattr(noise.seed, "__index__"):
        raise TypeError(f"The noise seed is a whole number, not {noise.seed!r:.40}.")
    if not 0 <= noise.seed < SEED_COUNT:
        raise RequestError(f"The noise seed must be in 0..{SEED_COUNT - 1}, not {noise.seed}.")
    if len(noise.layer_gains) > layer_count:
        raise RequestError(
            f"The noise may have a gain for each of this network's {layer_count} noise layers, "
            f"but has {len(noise.layer_gains)}."
        )
    if not math.isfinite(noise.phase):
        raise RequestError(f"The phase of the noise must be a finite number, not {noise.phase}.")
    for gain in (noise.gain, *noise.layer_gains):
        if not abs(gain) <= MAX_GAIN:  # this form also refuses NaN
            raise RequestError(f"A noise gain must be a number in -{MAX_GAIN:g}..{MAX_GAIN:g}, not {gain}.")


def noise_gains(noise: Noise, layer_count: int) -> NDArray[np.float32]:
    """Return the gain of each layer's noise, applied after the learned noise strength: (layers,) float32."""
    gains = np.zeros(layer_count, dtype=np.float32)
    if noise.mode != "none":
        gains[:] = noise.gain
        chosen = noise.layer_gains[:layer_count]
        gains[: len(chosen)] *= np.asarray(chosen, dtype=np.float32)
    return gains


def noise_source(noise: Noise) -> NDArray[np.uint32]:
    """Return the plan input ``noise_source``, (4,) uint32, which selects stored or random noise and turns it.

    Its words: 1 for random noise, low and high half of the seed, the bits of a float32, the phase in half turns, -1..1.
    Mode "none" selects the stored noise; its gains are zero, so the noise has no effect.
    """
    if noise.mode == "none":
        return np.zeros(4, np.uint32)
    half_turns = math.remainder(noise.phase, 360.0) / 180.0
    phase = int(np.array(half_turns + 0.0, np.float32).view(np.uint32))  # + 0.0 makes a negative zero positive
    if noise.mode == "const":
        return np.array([0, 0, 0, phase], np.uint32)
    return np.array([1, noise.seed & 0xFFFFFFFF, noise.seed >> 32, phase], np.uint32)

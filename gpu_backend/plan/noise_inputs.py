"""What the noise inputs of a synthesis network get, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import RequestError
from gpu_backend.model.model import Weights
from gpu_backend.model.spec import LayerSpec
from gpu_backend.ops.noise import noise_picture
from gpu_backend.recipe import SEED_COUNT, Noise, NoiseMode

MAX_GAIN = 1000.0
"""Far past what shows anything; keeps products inside float32."""


def check_noise(noise: Noise, layer_count: int) -> None:
    """Raise RequestError if a network with this many noise layers cannot have such noise."""
    if noise.mode not in get_args(NoiseMode):
        raise RequestError(f"The noise mode must be one of {', '.join(get_args(NoiseMode))}, but {noise.mode!r} came.")
    if not 0 <= noise.seed < SEED_COUNT:
        raise RequestError(f"The noise seed must be in 0..{SEED_COUNT - 1}, but {noise.seed} came.")
    if len(noise.layer_gains) > layer_count:
        raise RequestError(
            f"The noise may have a gain for each of this network's {layer_count} noise layers, "
            f"but has {len(noise.layer_gains)}."
        )
    for gain in (noise.gain, *noise.layer_gains):
        if not abs(gain) <= MAX_GAIN:  # so written that NaN is refused too
            raise RequestError(f"A noise gain must be a number in -{MAX_GAIN:g}..{MAX_GAIN:g}, but {gain} came.")


def noise_gains(noise: Noise, layer_count: int) -> NDArray[np.float32]:
    """Return what each layer's noise is multiplied with, on top of the network's own strength: (layers,) float32."""
    gains = np.zeros(layer_count, dtype=np.float32)
    if noise.mode != "none":
        gains[:] = noise.gain
        chosen = noise.layer_gains[:layer_count]
        gains[: len(chosen)] *= np.asarray(chosen, dtype=np.float32)
    return gains


def noise_pictures(noise: Noise, layers: Sequence[LayerSpec], weights: Weights) -> Iterator[NDArray[np.float32]]:
    """Yield the noise of each layer, (resolution, resolution) float32, before any strength.

    A layer's random noise depends on the seed and the layer alone: a draft gets the same noise as the full picture,
    and every picture of a batch gets the same.

    Parameters
    ----------
    noise
        As in a request; checked by `check_noise`.
    layers
        Layers with noise, from the first one on.
    """
    for index, layer in enumerate(layers):
        if noise.mode == "random":
            yield noise_picture(noise.seed, index, layer.resolution)[0]
        else:
            yield weights[f"synthesis.{layer.name}.noise_const"]

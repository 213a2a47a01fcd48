"""Array for the ``tap`` input of a plan."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpu_backend.recipe import Tap


def tap_input(tap: Tap) -> NDArray[np.float32]:
    """Return (5,) float32 (see `gpu_backend.ops.tap_display`); a single channel is shown as grey."""
    channels = tap.channels if len(tap.channels) == 3 else tap.channels * 3
    return np.array([*channels, 10.0 ** (tap.gain_db / 20.0), float(tap.is_normalized)], np.float32)

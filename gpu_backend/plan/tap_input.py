"""How a tap's layer is shown, as the array that a plan's input of that name gets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpu_backend.recipe import Tap


def tap_input(tap: Tap) -> NDArray[np.float32]:
    """Return five numbers (`gpu_backend.ops.tap_display`); one channel goes to red, green and blue."""
    channels = tap.channels if len(tap.channels) == 3 else tap.channels * 3
    return np.array([*channels, 10.0 ** (tap.gain_db / 20.0), float(tap.is_normalized)], np.float32)

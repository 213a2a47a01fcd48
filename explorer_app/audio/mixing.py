"""The sounds of a timeline as one stereo signal: what is heard, and what a video carries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from explorer_app.audio.decoding import StereoReader
from explorer_app.session.tracks import Sound
from gpu_backend import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

MIX_HZ = 48_000


class Mixer:
    """Mixes sounds at any place of the timeline. Not for several threads at once.

    Parameters
    ----------
    sounds
        Muted ones are left out.
    paths
        SHA-256 -> file; a sound without one is left out.

    Raises
    ------
    SoundError
        If a file cannot be read; `read` raises it too.
    """

    def __init__(self, sounds: tuple[Sound, ...], paths: Mapping[str, Path]) -> None:
        self._readers = [
            (
                StereoReader(paths[sound.digest], MIX_HZ),
                round(float(sound.start) * MIX_HZ),
                10.0 ** (sound.gain_db / 20),
            )
            for sound in sounds
            if not sound.is_muted and sound.digest in paths
        ]

    def read(self, first: int, count: int) -> NDArray[np.float32]:
        """Return `count` frames at `MIX_HZ` from a frame of the timeline on, of shape (count, 2), within -1..1."""
        mix = np.zeros((count, 2), np.float32)
        for reader, start, gain in self._readers:
            mix += np.float32(gain) * reader.read(first - start, count)
        return np.clip(mix, -1.0, 1.0)

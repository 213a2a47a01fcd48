"""The sound of a video: the sounds of a stretch of a timeline, mixed and encoded beside the pictures."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explorer_app.audio.mixing import MIX_HZ, Mixer
from explorer_app.audio.sound_files import SoundFiles
from explorer_app.exporting.video.video_format import VideoFormat
from explorer_app.session.tracks import Sound
from gpu_backend import LazyModule, dataclass

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

_CODECS = {".mp4": ("aac", "fltp", 192_000), ".webm": ("libopus", "flt", 160_000), ".mov": ("pcm_s16le", "s16", None)}
"""File ending -> FFmpeg's encoder, its sample format, bits a second."""

_FRAME = {"aac": 1024, "libopus": 960, "pcm_s16le": 1024}
"""Samples that the encoder takes at a time."""


@dataclass(frozen=True, slots=True)
class Soundtrack:
    """The sounds of a stretch.

    Attributes
    ----------
    sounds
        The audible sounds.
    start, seconds
        Where the stretch begins on the timeline, and how long it is.
    """

    sounds: tuple[Sound, ...]
    start: Fraction
    seconds: Fraction

    @staticmethod
    def of(sounds: Iterable[Sound], start: Fraction, seconds: Fraction, video: VideoFormat) -> Soundtrack | None:
        """Return the audible sounds of a video of a time range; None if there are none or its kind has no sound."""
        heard = tuple(
            sound
            for sound in sounds
            if not sound.is_muted and sound.start < start + seconds and sound.start + sound.seconds > start
        )
        return Soundtrack(heard, start, seconds) if heard and video.file_ending in _CODECS else None

    def paths(self) -> dict[str, Path]:
        """Return the files of the sounds, by SHA-256. Raises SoundError if one is missing."""
        files = SoundFiles.of_this_user()
        return {sound.digest: files.find(sound) for sound in self.sounds}


class SoundEncoder:
    """Encodes a soundtrack into a container that is being written, a little ahead of the pictures.

    Parameters
    ----------
    output
        The container, to which no packet was written yet.
    """

    def __init__(self, soundtrack: Soundtrack, output: Any, ending: str) -> None:
        import av

        name, self._format, bit_rate = _CODECS[ending]
        self._mixer = Mixer(soundtrack.sounds, soundtrack.paths())
        self._output = output
        self._stream: Any = output.add_stream(name, rate=MIX_HZ, layout="stereo")
        context = self._stream.codec_context
        if bit_rate is not None:
            context.bit_rate = bit_rate
        context.flags |= av.codec.context.Flags.bitexact
        self._size = _FRAME[name]
        self._first = round(soundtrack.start * MIX_HZ)
        self._total = round(soundtrack.seconds * MIX_HZ)
        self._done = 0

    def encode_until(self, seconds: Fraction) -> None:
        """Encode up to a time of the video, or to the end."""
        import av

        while self._done < self._total and self._done < seconds * MIX_HZ:
            count = min(self._size, self._total - self._done)
            samples = self._mixer.read(self._first + self._done, count)
            if self._format == "fltp":
                frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples.T), format="fltp", layout="stereo")
            elif self._format == "flt":
                frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="flt", layout="stereo")
            else:
                whole = np.rint(samples * 32767.0).astype(np.int16).reshape(1, -1)
                frame = av.AudioFrame.from_ndarray(whole, format="s16", layout="stereo")
            frame.sample_rate = MIX_HZ
            frame.pts, frame.time_base = self._done, Fraction(1, MIX_HZ)
            self._done += count
            self._output.mux(self._stream.encode(frame))

    def finish(self) -> None:
        """Encode the rest."""
        self.encode_until(Fraction(self._total + 1, MIX_HZ))
        self._output.mux(self._stream.encode(None))

"""Sound files as blocks of samples, and their resampling.

WAV of whole numbers (PCM) is read by the standard library, so that it needs no extra; WAV of floats, FLAC, MP3 and Ogg
Vorbis by miniaudio (extra `live`), at the file's own rate. Resampling is done here, so that all files take part in a
mix to the sample.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import stat
import struct
import wave
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explorer_app.session.tracks import MAX_SECONDS
from gpu_backend import LazyModule, LoomError, dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Samples = NDArray[np.float32]
    """Samples in -1..1, of shape (frames, channels)."""
else:
    np = LazyModule("numpy")

SUFFIXES = (".wav", ".flac", ".mp3", ".ogg")
MAX_NBYTES = 1 << 30
"""Largest sound file."""

MAX_CHANNELS = 32
MAX_RATE_HZ = 768_000
"""Samples a second: the most that converters have. Resampling reads as many more of a file as its rate is higher."""
BLOCK = 1 << 16
"""Frames that are decoded at a time."""

_DAMAGE = (wave.Error, EOFError, OSError, RuntimeError, struct.error)
"""What the standard library raises for damaged WAV files; RuntimeError where a chunk is said to end beyond the file."""

_INSTALL = "install it with pip install 'latentloom[live]'"


class SoundError(LoomError):
    """A sound file is missing, damaged, too large, or of a format that cannot be read."""


@dataclass(frozen=True, slots=True)
class SoundFacts:
    """What a sound file says about itself; `frames` are samples of one channel."""

    kind: str
    rate_hz: int
    channels: int
    frames: int

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.frames / self.rate_hz


def can_decode_all() -> bool:
    """Return whether the extra is installed that decodes other formats than WAV."""
    return importlib.util.find_spec("miniaudio") is not None


def sound_facts(path: Path) -> SoundFacts:
    """Read the header of a sound file.

    Raises
    ------
    SoundError
        If it cannot be opened, is larger than `MAX_NBYTES`, longer than a day, or no sound that can be read.
    """
    kind = _kind(path)
    facts = _wav_facts(path) if kind == "wav" and _is_pcm(path) else _other_facts(path, kind)
    if facts.frames < 1 or facts.rate_hz < 1 or not 1 <= facts.channels <= MAX_CHANNELS:
        raise SoundError(f"{path.name} holds no sound.")
    if facts.rate_hz > MAX_RATE_HZ:
        raise SoundError(
            f"A sound may have {MAX_RATE_HZ:,} samples a second, but {path.name} has {facts.rate_hz:,}; it is damaged."
        )
    if facts.seconds > MAX_SECONDS:
        raise SoundError(f"A sound may last a day, but {path.name} lasts {facts.seconds / 3600:.0f} hours.")
    return facts


def file_digest(path: Path, should_stop: Callable[[], bool] = lambda: False) -> str:
    """Return the SHA-256 of a file. Raises SoundError if it cannot be read, or reading was stopped."""
    found = hashlib.sha256()
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise SoundError(f"{path.name} should be a sound file, but is a folder, a pipe or a device.")
        with path.open("rb") as file:
            while data := file.read(1 << 20):
                found.update(data)
                if should_stop():
                    raise SoundError(f"Reading {path.name} was stopped.")
    except OSError as error:
        raise SoundError(f"{path.name} cannot be read ({error.strerror}).", str(error)) from error
    return found.hexdigest()


def decoded(path: Path, start: int = 0) -> Iterator[Samples]:
    """Yield a file's samples from a frame on, in blocks of at most `BLOCK` frames. Raises SoundError."""
    kind = _kind(path)
    yield from _wav_blocks(path, start) if kind == "wav" and _is_pcm(path) else _other_blocks(path, start, kind)


def _kind(path: Path) -> str:
    """Return the format of a file by its content. Raises SoundError."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise SoundError(f"{path.name} should be a sound file, but is a folder, a pipe or a device.")
        with path.open("rb") as file:
            head = file.read(12)
    except OSError as error:
        raise SoundError(f"{path.name} cannot be opened ({error.strerror}).", str(error)) from error
    if status.st_size > MAX_NBYTES:
        raise SoundError(
            f"A sound file may have {MAX_NBYTES >> 30} GB, but {path.name} has {status.st_size / (1 << 30):.1f}; "
            "cut it or compress it."
        )
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return "wav"
    if head[:4] in (b"fLaC", b"OggS"):
        return "flac" if head[:4] == b"fLaC" else "ogg"
    if head[:3] == b"ID3" or (len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0):
        return "mp3"
    raise SoundError(f"{path.name} must be a WAV, FLAC, MP3 or Ogg Vorbis file, but is something else.")


# -- WAV ------------------------------------------------------------------------------------------------------------


def _is_pcm(path: Path) -> bool:
    """Return whether the standard library reads a WAV file: whole numbers, not floats or compressed ones.

    Without the extra it is the only reader, and says what is wrong with the file.
    """
    if not can_decode_all():
        return True
    try:
        with _wav(path):
            return True
    except SoundError:
        return False


def _wav_facts(path: Path) -> SoundFacts:
    with _wav(path) as file:
        return SoundFacts("wav", file.getframerate(), file.getnchannels(), file.getnframes())


def _wav(path: Path) -> wave.Wave_read:
    try:
        file = wave.open(str(path), "rb")  # noqa: SIM115 - the caller closes it
    except _DAMAGE as error:
        raise SoundError(
            f"{path.name} must be a WAV file of whole numbers (PCM), but is damaged or of another kind; "
            f"save it as PCM, or add the extra that decodes sound: {_INSTALL}.",
            str(error),
        ) from error
    if file.getsampwidth() not in (1, 2, 3, 4):
        file.close()
        raise SoundError(f"{path.name} must have 8 to 32 bits a sample, but has {8 * file.getsampwidth()}.")
    return file


def _wav_blocks(path: Path, start: int) -> Iterator[Samples]:
    with _wav(path) as file:
        if start >= file.getnframes():
            return
        try:
            file.setpos(start)
            while data := file.readframes(BLOCK):
                yield _of_pcm(data, file.getsampwidth(), file.getnchannels())
        except _DAMAGE as error:
            raise SoundError(f"{path.name} is damaged.", str(error)) from error


def _of_pcm(data: bytes, width: int, channels: int) -> Samples:
    """Return little-endian whole numbers of `width` bytes as samples."""
    data = data[: len(data) - len(data) % (width * channels)]
    values: NDArray[np.float32]
    if width == 1:
        values = (np.frombuffer(data, np.uint8).astype(np.float32) - 128.0) / 128.0
    elif width == 3:
        wide = np.zeros((len(data) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        values = wide.view("<i4")[:, 0].astype(np.float32) / 2.0**31
    else:
        values = np.frombuffer(data, f"<i{width}").astype(np.float32) / 2.0 ** (8 * width - 1)
    return values.reshape(-1, channels)


# -- the others -----------------------------------------------------------------------------------------------------


def _miniaudio(path: Path) -> Any:
    if not can_decode_all():
        raise SoundError(f"{path.name} needs the extra that decodes sound; {_INSTALL}.")
    import miniaudio

    return miniaudio


def _other_facts(path: Path, kind: str) -> SoundFacts:
    miniaudio = _miniaudio(path)
    try:
        info = miniaudio.get_file_info(str(path))
    except (miniaudio.MiniaudioError, OSError) as error:
        raise SoundError(f"{path.name} is damaged, or no sound of a known format.", str(error)) from error
    return SoundFacts(kind, info.sample_rate, info.nchannels, info.num_frames)


def _other_blocks(path: Path, start: int, kind: str) -> Iterator[Samples]:
    miniaudio = _miniaudio(path)
    facts = _other_facts(path, kind)
    try:
        stream = miniaudio.stream_file(
            str(path),
            miniaudio.SampleFormat.FLOAT32,
            facts.channels,
            facts.rate_hz,
            frames_to_read=BLOCK,
            seek_frame=start,
        )
        for block in stream:
            yield np.frombuffer(block, np.float32).reshape(-1, facts.channels)
    except (miniaudio.MiniaudioError, OSError) as error:
        raise SoundError(f"{path.name} is damaged.", str(error)) from error


# -- resampling -----------------------------------------------------------------------------------------------------

_HALF, _PHASES = 16, 512


@cache
def _kernel(cutoff: float) -> NDArray[np.float32]:
    """Return a windowed sinc for each of `_PHASES` + 1 places between two samples, of shape (phases + 1, 2 _HALF).

    cutoff sinc(cutoff x) (0.5 + 0.5 cos(pi x / _HALF)), scaled to a sum of 1 in each row
    """
    x = np.arange(1 - _HALF, _HALF + 1)[None, :] - np.linspace(0.0, 1.0, _PHASES + 1)[:, None]
    taps: NDArray[np.float64] = np.sinc(cutoff * x) * (0.5 + 0.5 * np.cos(np.pi * np.clip(x / _HALF, -1.0, 1.0)))
    kernel: NDArray[np.float32] = (taps / taps.sum(axis=1, keepdims=True)).astype(np.float32)
    return kernel


class StereoReader:
    """A file's samples in two channels at another rate, at any place: for mixing.

    Reading on where the last call ended goes on decoding; anywhere else it seeks. Frames before the file's first and
    after its last are silent.

    Raises
    ------
    SoundError
        If the file cannot be read.
    """

    def __init__(self, path: Path, rate_hz: int) -> None:
        self._path = path
        self._facts = sound_facts(path)
        self._step = self._facts.rate_hz / rate_hz
        self._kernel = _kernel(min(1.0, 1.0 / self._step)) if self._step != 1.0 else None
        self._blocks: Iterator[Samples] = iter(())
        self._buffer: Samples = np.zeros((0, 2), np.float32)
        self._base = -1
        """Frame of the file that the buffer begins with; -1 before the first."""
        self._is_at_end = True

    def read(self, first: int, count: int) -> Samples:
        """Return `count` frames of the new rate from a frame on, of shape (count, 2)."""
        if self._kernel is None:
            return self._frames(first, first + count)
        places = np.arange(first, first + count) * self._step
        whole = np.floor(places).astype(np.int64)
        phases = np.rint((places - whole) * _PHASES).astype(np.int64)
        low = int(whole[0]) - _HALF + 1
        source = self._frames(low, int(whole[-1]) + _HALF + 1)
        result = np.zeros((count, 2), np.float32)
        taps = self._kernel[phases]
        for tap in range(2 * _HALF):
            result += taps[:, tap, None] * source[whole - low - _HALF + 1 + tap]
        return result

    def _frames(self, first: int, end: int) -> Samples:
        """Return frames of the file, silence where it has none."""
        total = self._facts.frames
        inside_first, inside_end = min(max(first, 0), total), min(max(end, 0), total)
        result = np.zeros((end - first, 2), np.float32)
        if inside_first < inside_end:
            self._fill(inside_first, inside_end)
            found = self._buffer[inside_first - self._base : inside_end - self._base]
            result[inside_first - first : inside_first - first + len(found)] = found
        return result

    def _fill(self, first: int, end: int) -> None:
        """Have the buffer hold the frames from `first` to `end`, as far as the file has them."""
        if not self._base <= first <= self._base + len(self._buffer):
            self._blocks = decoded(self._path, first)
            self._buffer, self._base, self._is_at_end = self._buffer[:0], first, False
        self._buffer = self._buffer[max(0, first - self._base) :]
        self._base = max(self._base, first)
        while not self._is_at_end and self._base + len(self._buffer) < end:
            block = next(self._blocks, None)
            if block is None:
                self._is_at_end = True
                return
            self._buffer = np.concatenate((self._buffer, _stereo(block)))


def _stereo(block: Samples) -> Samples:
    """Return two channels: one is doubled, of more than two all are mixed into both."""
    if block.shape[1] == 2:
        return block
    mono = block.mean(axis=1, keepdims=True, dtype=np.float32)
    return np.repeat(mono, 2, axis=1)


def write_wav(path: Path, samples: Samples, rate_hz: int) -> None:
    """Write samples of shape (frames, channels) as 16-bit WAV; louder ones than 1 are clipped."""
    with wave.open(os.fspath(path), "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes(pcm16(samples).tobytes())


def pcm16(samples: Samples) -> NDArray[np.int16]:
    """Return samples as 16-bit whole numbers."""
    whole: NDArray[np.int16] = np.rint(np.clip(samples, -1.0, 1.0) * 32767.0).astype("<i2")
    return whole

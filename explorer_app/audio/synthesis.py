"""The music of `latentloom demo`: drums, bass and a pad of sines and noise. The same seed gives the same samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_backend import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mono = NDArray[np.float32]
else:
    np = LazyModule("numpy")

RATE_HZ = 48_000
BPM = 120
_BEAT_S = 60.0 / BPM
_CHORDS = ((57, 60, 64, 67), (53, 57, 60, 64), (48, 55, 60, 64), (55, 59, 62, 67))
"""MIDI notes of the four bars: A minor 7, F major 7, C major, G major."""

_BASS = (33, 29, 36, 31)


def stems(seconds: float, seed: int = 0) -> dict[str, Mono]:
    """Return drums, bass and pad, each `seconds` long at `RATE_HZ`, within -1..1."""
    rng = np.random.default_rng(seed)
    count = round(seconds * RATE_HZ)
    parts = {"drums": _drums(seconds, count, rng), "bass": _bass(seconds, count), "pad": _pad(seconds, count)}
    fade = np.minimum(1.0, np.arange(count, 0, -1) / (0.4 * RATE_HZ))
    return {name: (part * fade).astype(np.float32) for name, part in parts.items()}


def _drums(seconds: float, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a kick on every beat, a snare on every other one, and hats on every half, which come in with bar two."""
    track = np.zeros(count)
    kick, snare, hat = _kick(), _snare(rng), _hat(rng)
    for beat in range(int(seconds / _BEAT_S) + 1):
        _add(track, kick, beat * _BEAT_S, 0.5)
        if beat % 2:
            _add(track, snare, beat * _BEAT_S, 0.25)
        if beat >= 4:
            _add(track, hat, beat * _BEAT_S, 0.07)
            _add(track, hat, (beat + 0.5) * _BEAT_S, 0.15)
    return track


def _kick() -> NDArray[np.float64]:
    t = np.arange(int(0.28 * RATE_HZ)) / RATE_HZ
    phase = 2 * np.pi * (45.0 * t + 110.0 * 0.03 * (1.0 - np.exp(-t / 0.03)))  # 155 Hz, falling to 45
    found: NDArray[np.float64] = np.sin(phase) * np.exp(-t / 0.09)
    return found


def _snare(rng: np.random.Generator) -> NDArray[np.float64]:
    t = np.arange(int(0.2 * RATE_HZ)) / RATE_HZ
    noise = np.diff(rng.standard_normal(len(t) + 1)) * 0.4
    found: NDArray[np.float64] = (noise + 0.6 * np.sin(2 * np.pi * 190 * t)) * np.exp(-t / 0.05)
    return found


def _hat(rng: np.random.Generator) -> NDArray[np.float64]:
    t = np.arange(int(0.06 * RATE_HZ)) / RATE_HZ
    found: NDArray[np.float64] = np.diff(rng.standard_normal(len(t) + 2), 2) * 0.35 * np.exp(-t / 0.015)
    return found


def _bass(seconds: float, count: int) -> NDArray[np.float64]:
    """Return eighths on the root of each bar, softly saturated."""
    track = np.zeros(count)
    t = np.arange(int(0.24 * RATE_HZ)) / RATE_HZ
    shape = np.minimum(1.0, t / 0.005) * np.exp(-t / 0.16)
    for step in range(int(2 * seconds / _BEAT_S) + 1):
        if step % 4 == 0:
            continue  # leaves room for the kick
        frequency = _hertz(_BASS[step // 8 % 4] + (12 if step % 8 == 6 else 0))
        _add(track, np.tanh(2.0 * np.sin(2 * np.pi * frequency * t)) * shape, step * _BEAT_S / 2, 0.4)
    return track


def _pad(seconds: float, count: int) -> NDArray[np.float64]:
    """Return a chord a bar, each note two sines a little apart, which swell and fade."""
    track = np.zeros(count)
    bar_s = 4 * _BEAT_S
    length = int((bar_s + 0.5) * RATE_HZ)
    t = np.arange(length) / RATE_HZ
    shape = np.minimum(1.0, t / 0.6) * np.minimum(1.0, (bar_s + 0.5 - t) / 0.5)
    for bar in range(int(seconds / bar_s) + 1):
        chord = sum(
            np.sin(2 * np.pi * _hertz(note) * detune * t) / (1 + index)
            for index, note in enumerate(_CHORDS[bar % 4])
            for detune in (0.998, 1.002)
        )
        _add(track, chord * shape, bar * bar_s, 0.07)
    return track


def _add(track: NDArray[np.float64], sound: NDArray[np.float64], start_s: float, gain: float) -> None:
    first = round(start_s * RATE_HZ)
    part = track[first : first + len(sound)]
    part += gain * sound[: len(part)]


def _hertz(note: int) -> float:
    return 440.0 * float(2.0 ** ((note - 69) / 12))

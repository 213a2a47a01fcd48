"""What a sound does over time: loudness, eight bands, onsets, tempo and beats, 100 values a second.

Everything is computed from the mean of the channels at the file's own rate, in windows centred on their time. Onsets:
spectral flux with a maximum filter ("SuperFlux", Böck and Widmer 2013). Tempo: the autocorrelation of the onsets'
strength. Beats: dynamic programming (Ellis 2007).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from explorer_app.audio.decoding import SoundError, decoded, sound_facts
from explorer_app.session.envelopes import ENVELOPE_HZ
from explorer_app.session.patches import BAND_COUNT, FEATURES
from gpu_backend import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
else:
    np = LazyModule("numpy")

VERSION = 1
"""Counts up when the same file would give other values."""

_WINDOW_S = 0.046
_BATCH = 1000
"""Windows that are transformed at a time."""

_LOWEST_HZ, _HIGHEST_HZ = 30.0, 16_000.0
_NOTES_PER_OCTAVE = 24
_LAG = 2
"""Windows between the two spectra whose difference is the flux."""

_ONSET_FALL_S, _BEAT_FALL_S = 0.12, 0.18
_SLOWEST_BPM, _FASTEST_BPM, _USUAL_BPM = 50.0, 210.0, 120.0
_BEAT_TIGHTNESS = 100.0


@dataclass(frozen=True, eq=False)
class Analysis:
    """What was found in a sound.

    Attributes
    ----------
    seconds
        Its length.
    envelopes
        Feature (`patches.FEATURES`) -> `ENVELOPE_HZ` values a second, 0..65535 for 0..1. Loudness and each band are
        relative to their own greatest value.
    peaks
        Least and greatest sample of each hundredth of a second, -127..127, of shape (n, 2).
    bpm, first_beat
        Tempo and the second of a beat; 0 if the sound has none.
    beats
        Seconds of the beats.
    """

    seconds: float
    envelopes: dict[str, NDArray[np.uint16]]
    peaks: NDArray[np.int8]
    bpm: Fraction
    first_beat: Fraction
    beats: NDArray[np.float32]


def analyse(path: Path, should_stop: Callable[[], bool] = lambda: False) -> Analysis:
    """Analyse a sound file; the same file gives the same values. 20 s take about 0.2 s.

    Raises
    ------
    SoundError
        If the file cannot be read, or the analysis was stopped.
    """
    facts = sound_facts(path)
    spectra = Spectra(facts.rate_hz)
    for windows in _windows(path, facts.rate_hz, spectra.size):
        if should_stop():
            raise SoundError(f"Reading {path.name} was stopped.")
        spectra.add(windows)
    rms, bands, flux, peaks = spectra.found()
    onsets, strengths = _onsets(flux)
    period = _period(flux)
    places = _beat_places(flux, period) if period else np.zeros(0, np.int64)
    bpm, first = _grid(places)
    values = {"rms": _scaled(rms), "onset": _fading(len(rms), onsets, strengths, _ONSET_FALL_S)}
    floor = 1e-3 * float(bands.max(initial=0.0))
    for index in range(BAND_COUNT):
        band = bands[:, index]
        values[f"band/{index}"] = _scaled(band) if float(band.max(initial=0.0)) > floor else np.zeros_like(band)
    values["beat"] = _fading(len(rms), places, np.ones(len(places), np.float32), _BEAT_FALL_S)
    return Analysis(
        facts.seconds,
        {name: np.rint(values[name] * 65535.0).astype(np.uint16) for name in FEATURES},
        peaks,
        bpm,
        first,
        (places / ENVELOPE_HZ).astype(np.float32),
    )


# -- windows and spectra --------------------------------------------------------------------------------------------


def _windows(path: Path, rate_hz: int, size: int) -> Iterator[Floats]:
    """Yield windows of a file, of shape (n, size): one for each hundredth of a second, in its middle.

    Samples before the first and after the last are 0.
    """
    half = size // 2
    buffer, base = np.zeros(half, np.float32), -half
    index = 0
    for block in _with_silence(path, half):
        buffer = np.concatenate((buffer, block))
        end = (base + len(buffer) - half) * ENVELOPE_HZ // rate_hz + 1  # windows that the buffer holds completely
        for first in range(index, end, _BATCH):
            places = np.arange(first, min(first + _BATCH, end)) * rate_hz // ENVELOPE_HZ - half - base
            yield np.lib.stride_tricks.sliding_window_view(buffer, size)[places]
        index = max(index, end)
        used = max(0, index * rate_hz // ENVELOPE_HZ - half - base)
        buffer, base = buffer[used:], base + used


def _with_silence(path: Path, count: int) -> Iterator[Floats]:
    """Yield the mean of a file's channels, and then `count` samples of silence."""
    for block in decoded(path):
        yield block.mean(axis=1, dtype=np.float32)
    yield np.zeros(count, np.float32)


class Spectra:
    """Collects what is needed of each window: loudness, bands, flux, ends of the waveform."""

    def __init__(self, rate_hz: int) -> None:
        self.size = 1 << max(6, round(math.log2(_WINDOW_S * rate_hz)))
        self._hop = max(1, rate_hz // ENVELOPE_HZ)
        frequencies = np.fft.rfftfreq(self.size, 1.0 / rate_hz)
        self._taper = np.hanning(self.size).astype(np.float32)
        edges = np.geomspace(_LOWEST_HZ, _HIGHEST_HZ, BAND_COUNT + 1)
        self._bands = np.stack(
            [(frequencies >= low) & (frequencies < high) for low, high in pairwise(edges)], 1
        ).astype(np.float32)
        self._notes = _filterbank(frequencies)
        self._before: Floats = np.zeros((_LAG, self._notes.shape[1]), np.float32)
        self._rms: list[Floats] = []
        self._found_bands: list[Floats] = []
        self._flux: list[Floats] = []
        self._peaks: list[NDArray[np.int8]] = []

    def add(self, windows: Floats) -> None:
        """Take the next windows."""
        half, hop = self.size // 2, self._hop
        around = windows[:, max(0, half - hop) : half + hop]
        self._rms.append(np.sqrt(np.mean(around * around, axis=1)))
        own = windows[:, half - hop // 2 : half - hop // 2 + hop]
        ends = np.stack((own.min(axis=1), own.max(axis=1)), axis=1)
        self._peaks.append(np.rint(np.clip(ends, -1.0, 1.0) * 127.0).astype(np.int8))
        spectrum = np.abs(np.fft.rfft(windows * self._taper, axis=1)).astype(np.float32)
        self._found_bands.append(np.sqrt((spectrum * spectrum) @ self._bands))
        notes = np.concatenate((self._before, np.log10(1.0 + spectrum @ self._notes)))
        widest = notes[:-_LAG].copy()  # the largest of each note and its neighbours, so that a vibrato is no onset
        np.maximum(widest[:, 1:], notes[:-_LAG, :-1], out=widest[:, 1:])
        np.maximum(widest[:, :-1], notes[:-_LAG, 1:], out=widest[:, :-1])
        self._flux.append(np.maximum(notes[_LAG:] - widest, 0.0).sum(axis=1))
        self._before = notes[-_LAG:]

    def found(self) -> tuple[Floats, Floats, Floats, NDArray[np.int8]]:
        """Return loudness (n,), bands (n, 8), flux (n,) and ends of the waveform (n, 2) of windows not yet returned."""
        found = (
            np.concatenate(self._rms),
            np.concatenate(self._found_bands),
            np.concatenate(self._flux),
            np.concatenate(self._peaks),
        )
        for parts in (self._rms, self._found_bands, self._flux):
            parts.clear()
        self._peaks.clear()
        return found


def _filterbank(frequencies: NDArray[np.floating]) -> Floats:
    """Return triangles over the notes of a scale, of shape (bins, notes); notes that share a bin are one."""
    octaves = math.log2(_HIGHEST_HZ / _LOWEST_HZ)
    notes = _LOWEST_HZ * 2.0 ** np.arange(0.0, octaves, 1.0 / _NOTES_PER_OCTAVE)
    bins = np.unique(np.searchsorted(frequencies, notes[notes < frequencies[-1]]))
    bank = np.zeros((len(frequencies), max(1, len(bins) - 2)), np.float32)
    for index, (low, middle, high) in enumerate(zip(bins[:-2], bins[1:-1], bins[2:], strict=True)):
        bank[low:middle, index] = np.linspace(0.0, 1.0, middle - low, endpoint=False)
        bank[middle:high, index] = np.linspace(1.0, 0.0, high - middle, endpoint=False)
    return bank


def _scaled(values: Floats) -> Floats:
    most = float(values.max(initial=0.0))
    return values / np.float32(most) if most > 1e-6 else np.zeros_like(values)


def _fading(count: int, places: NDArray[np.int64], strengths: Floats, fall_s: float) -> Floats:
    """Return an envelope that jumps to a strength at each place and falls with a time constant."""
    result = np.zeros(count, np.float32)
    length = int(6 * fall_s * ENVELOPE_HZ)
    tail = np.exp(-np.arange(length) / (fall_s * ENVELOPE_HZ)).astype(np.float32)
    for place, strength in zip(places.tolist(), strengths.tolist(), strict=True):
        part = result[place : place + length]
        np.maximum(part, strength * tail[: len(part)], out=part)
    return result


# -- onsets, tempo, beats -------------------------------------------------------------------------------------------


def _onsets(flux: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Return the windows where notes begin, and how strong they are, 0..1.

    A peak of the flux counts if it is the greatest within 30 ms, stands out from the mean around it, and comes 30 ms
    after the one before.
    """
    most = float(flux.max(initial=0.0))
    if most < 1e-3 or len(flux) < 20:
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    reach = 3
    padded = np.pad(flux, reach)
    greatest = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1).max(axis=1)
    mean = _moving_mean(flux, 15)
    candidates = np.flatnonzero((flux == greatest) & (flux > mean + 0.06 * most))
    chosen: list[int] = []
    for place in candidates.tolist():
        if not chosen or place - chosen[-1] >= reach:
            chosen.append(place)
    places = np.array(chosen, np.int64)
    return places, np.sqrt(np.clip(flux[places] / most, 0.0, 1.0))


def _moving_mean(values: Floats, reach: int) -> Floats:
    sums = np.concatenate(([0.0], np.cumsum(values, dtype=np.float64)))
    index = np.arange(len(values))
    low, high = np.maximum(index - reach, 0), np.minimum(index + reach + 1, len(values))
    mean: Floats = ((sums[high] - sums[low]) / (high - low)).astype(np.float32)
    return mean


def _period(flux: Floats) -> float:
    """Return the windows from beat to beat; 0 if nothing repeats itself.

    The autocorrelation of the flux, weighted towards `_USUAL_BPM` (a Gaussian over octaves), summed over one, two and
    four periods.
    """
    longest = 60.0 / _SLOWEST_BPM * ENVELOPE_HZ
    if len(flux) < 4 * longest:
        return 0.0
    novelty = flux - _moving_mean(flux, 40)
    novelty = np.maximum(novelty, 0.0)
    novelty = novelty[: 10 * 60 * ENVELOPE_HZ]  # ten minutes are enough for the tempo
    size = 1 << (2 * len(novelty) - 1).bit_length()
    spectrum = np.fft.rfft(novelty.astype(np.float64), size)
    likeness = np.fft.irfft(spectrum * np.conj(spectrum), size)[: len(novelty)]
    likeness = likeness / max(float(likeness[0]), 1e-12)
    lags = np.arange(60.0 / _FASTEST_BPM * ENVELOPE_HZ, longest, 0.05)
    index = np.arange(len(likeness))
    usual = 60.0 / _USUAL_BPM * ENVELOPE_HZ
    weight = np.exp(-0.5 * (np.log2(lags / usual) / 0.9) ** 2)
    comb = sum(np.interp(lags * times, index, likeness) for times in (1, 2, 4)) / 3.0
    best = int(np.argmax(weight * comb))
    return float(lags[best]) if comb[best] > 0.1 else 0.0


def _beat_places(flux: Floats, period: float) -> NDArray[np.int64]:
    """Return the windows of the beats: the frames with much flux that are about a period apart.

    score(i) = flux(i) + max over j of score(j) - tightness log((i - j) / period)^2, j = i - 2 period .. i - period / 2
    """
    strength = flux / max(float(flux.std()), 1e-9)
    near, far = round(period / 2), round(2 * period)
    cost = -_BEAT_TIGHTNESS * np.log(np.arange(far, near - 1, -1) / period) ** 2
    score = np.zeros(far + len(strength))
    back = np.full(len(strength), -1, np.int64)
    for index, value in enumerate(strength.tolist()):
        at = far + index
        paths = score[index : at - near + 1] + cost
        best = int(paths.argmax())
        score[at] = value + paths[best]
        back[index] = index + best - far if score[index + best] > 0.0 else -1
    last = int(score[far:][-round(period) :].argmax()) + len(strength) - round(period)
    places = [last]
    while back[places[-1]] >= 0:
        places.append(int(back[places[-1]]))
    return np.array(places[::-1], np.int64)


def _grid(places: NDArray[np.int64]) -> tuple[Fraction, Fraction]:
    """Return tempo and first beat of the line through the beats; (0, 0) without a tempo.

    The slope is the median of differences between beats far apart, which a few wrong beats do not move.
    """
    if len(places) < 4:
        return Fraction(0), Fraction(0)
    times = places / ENVELOPE_HZ
    half = len(times) // 2
    period = float(np.median(times[half : 2 * half] - times[:half])) / half
    bpm = 60.0 / period
    bpm = round(bpm) if abs(bpm - round(bpm)) < 0.06 else round(bpm, 2)
    exact = 60 / Fraction(str(bpm))
    offset = float(np.median(times - np.arange(len(times)) * float(exact)))
    return Fraction(str(bpm)), Fraction(round((offset % float(exact)) * 1000), 1000)

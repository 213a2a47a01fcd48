"""A microphone or line input as live sources: loudness, eight bands and onsets of what was heard last.

A device's thread hands over a hundredth of a second at a time; what is found in the newest window goes to the board of
live values. Everything is relative to the loudest that was heard in the last seconds, so that a quiet room works too.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Protocol

from explorer_app.audio.analysis import Spectra
from explorer_app.audio.decoding import can_decode_all
from explorer_app.session.patches import BAND_COUNT, INPUT
from gpu_backend import LazyModule, LoomError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

CAPTURE_HZ = 44_100
_HOP = CAPTURE_HZ // 100
_FORGET = 0.5 ** (1.0 / 800)
"""What the loudest so far loses each hundredth of a second: half in 8 s."""

_FLOOR = 3e-3
"""Loudness (RMS) that is taken for silence: -50 dB."""

_ONSET_FALL = 0.92
"""What is left of an onset after a hundredth of a second."""

_ONSET_FACTOR = 2.5
"""Least ratio of an onset's flux to the mean flux of the last second."""

Sink = Generator[None, bytes, None]
Publish = Callable[[dict[str, float]], None]


class InputDevice(Protocol):
    """Records mono float32 at `CAPTURE_HZ` and sends it to a generator, on a thread of its own."""

    def start(self, sink: Sink) -> None:
        """Begin to record; the sink was advanced to its first yield."""
        ...

    def close(self) -> None:
        """Stop. May be called twice."""
        ...


def default_input() -> InputDevice:
    """Return the system's default input. Raises LoomError if there is none."""
    if not can_decode_all():
        raise LoomError("Sound input needs the extra “live”; install it with pip install 'latentloom[live]'.")
    import miniaudio

    try:
        device: Any = miniaudio.CaptureDevice(miniaudio.SampleFormat.FLOAT32, 1, CAPTURE_HZ, buffersize_msec=10)
    except miniaudio.MiniaudioError as error:
        raise LoomError("No microphone or line input was found; plug one in and try again.", str(error)) from error
    return device  # type: ignore[no-any-return]


class LiveEnvelopes:
    """Turns samples into values 0..1 of ``input/rms``, ``input/band/0..7`` and ``input/onset``."""

    def __init__(self) -> None:
        self._spectra = Spectra(CAPTURE_HZ)
        self._buffer = np.zeros(self._spectra.size, np.float32)
        self._fresh = 0
        self._loudest = _FLOOR
        self._loudest_band = 1e-6
        self._mean_flux = 0.0
        self._onset = 0.0

    def add(self, samples: NDArray[np.float32]) -> dict[str, float] | None:
        """Return the values after more samples; None until a hundredth of a second has passed since the last."""
        samples = samples[-len(self._buffer) :]
        self._buffer = np.concatenate((self._buffer[len(samples) :], samples))
        self._fresh += len(samples)
        if self._fresh < _HOP:
            return None
        steps, self._fresh = self._fresh // _HOP, self._fresh % _HOP
        self._spectra.add(self._buffer[None, :])
        _, bands, flux, _ = self._spectra.found()
        newest = self._buffer[-2 * _HOP :]
        rms = float(np.sqrt(np.mean(newest * newest)))
        self._loudest = max(rms, _FLOOR, self._loudest * _FORGET**steps)
        self._loudest_band = max(float(bands.max()), self._loudest_band * _FORGET**steps)
        is_heard = rms > _FLOOR
        rise = float(flux[0])
        is_onset = is_heard and rise > _ONSET_FACTOR * self._mean_flux and self._onset < 0.5
        self._mean_flux += (rise - self._mean_flux) * min(1.0, 0.01 * steps)
        self._onset = 1.0 if is_onset else self._onset * _ONSET_FALL**steps
        values = {f"{INPUT}rms": rms / self._loudest if is_heard else 0.0, f"{INPUT}onset": self._onset}
        for index in range(BAND_COUNT):
            share = float(bands[0, index]) / self._loudest_band
            values[f"{INPUT}band/{index}"] = share if is_heard else 0.0
        return values


class AudioInput:
    """Publishes what a microphone hears until it is closed.

    Parameters
    ----------
    publish
        Gets source -> 0..1, on the device's thread.
    open_device
        Returns a device.

    Raises
    ------
    LoomError
        If there is no device, or it does not start.
    """

    def __init__(self, publish: Publish, open_device: Callable[[], InputDevice] = default_input) -> None:
        self._publish = publish
        self.received = 0
        """Values that were published."""
        self._device = open_device()
        sink = self._sink()
        next(sink)
        try:
            self._device.start(sink)
        except Exception as error:  # each library raises its own: another program may hold the device
            self._device.close()
            raise LoomError(
                "The microphone or line input does not start; see which program uses it.", str(error)
            ) from error

    def close(self) -> None:
        """Stop recording. May be called twice."""
        self._device.close()

    def _sink(self) -> Sink:
        envelopes = LiveEnvelopes()
        while True:
            data = yield
            values = envelopes.add(np.frombuffer(data, np.float32))
            if values is not None:
                self.received += 1
                self._publish(values)

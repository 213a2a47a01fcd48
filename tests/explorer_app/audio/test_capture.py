"""A microphone as live sources, by a device that a test drives."""

from __future__ import annotations

import numpy as np
import pytest

from explorer_app.audio import capture
from explorer_app.audio.capture import CAPTURE_HZ, AudioInput, LiveEnvelopes, Sink, default_input
from gpu_backend import LoomError

HOP = CAPTURE_HZ // 100


class HandDevice:
    """A device that records what a test gives it."""

    def __init__(self) -> None:
        self.sink: Sink | None = None
        self.is_closed = False

    def start(self, sink: Sink) -> None:
        self.sink = sink

    def close(self) -> None:
        self.is_closed = True

    def hear(self, samples: np.ndarray) -> None:
        assert self.sink is not None
        self.sink.send(samples.astype(np.float32).tobytes())


def tone(hertz: float, count: int, gain: float = 0.3) -> np.ndarray:
    return (gain * np.sin(2 * np.pi * hertz * np.arange(count) / CAPTURE_HZ)).astype(np.float32)


def test_captured_sound_is_published_a_hundred_times_a_second_until_close() -> None:
    device = HandDevice()
    heard: list[dict[str, float]] = []
    source = AudioInput(heard.append, lambda: device)
    for part in np.split(tone(1000, 10 * HOP), 10):
        device.hear(part[:100])
        device.hear(part[100:])
    assert len(heard) == source.received == 10
    assert set(heard[0]) == {"input/rms", "input/onset", *(f"input/band/{n}" for n in range(8))}
    assert heard[-1]["input/rms"] == pytest.approx(1.0, abs=0.1)
    source.close()
    assert device.is_closed


def test_without_the_extra_a_sentence_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "can_decode_all", lambda: False)
    with pytest.raises(LoomError, match="the extra “live”; install it"):
        default_input()


def test_a_tone_is_loudest_in_its_own_band_and_values_stay_within_0_and_1() -> None:
    envelopes = LiveEnvelopes()
    values = None
    for part in np.split(tone(1000, 30 * HOP), 30):
        values = envelopes.add(part) or values
        assert values is None or all(0.0 <= value <= 1.0 for value in values.values())
    assert values is not None
    bands = [values[f"input/band/{n}"] for n in range(8)]
    assert bands.index(max(bands)) == 4


def test_silence_is_0_and_a_burst_after_it_is_an_onset_that_fades() -> None:
    envelopes = LiveEnvelopes()
    for _ in range(60):
        values = envelopes.add(np.zeros(HOP, np.float32))
    assert values is not None
    assert values["input/rms"] == values["input/onset"] == 0.0
    onsets = []
    for index in range(40):
        found = envelopes.add(tone(300, HOP) if index < 10 else np.zeros(HOP, np.float32))
        assert found is not None
        onsets.append(found["input/onset"])
    assert max(onsets[:6]) == 1.0
    assert onsets[-1] < 0.2


def test_a_quiet_room_is_as_good_as_a_loud_one() -> None:
    envelopes = LiveEnvelopes()
    for _ in range(30):
        values = envelopes.add(tone(500, HOP, gain=0.02))
    assert values is not None
    assert values["input/rms"] > 0.8


def test_without_a_device_the_error_says_what_to_do() -> None:
    def none() -> HandDevice:
        raise LoomError("No microphone or line input was found; plug one in and try again.")

    with pytest.raises(LoomError, match="plug one in"):
        AudioInput(lambda values: None, none)


def test_a_device_that_does_not_start_is_closed_and_the_error_says_what_to_do() -> None:
    class BusyDevice(HandDevice):
        def start(self, sink: Sink) -> None:
            raise ValueError("failed to start audio device")

    device = BusyDevice()
    with pytest.raises(LoomError, match="see which program uses it"):
        AudioInput(lambda values: None, lambda: device)
    assert device.is_closed

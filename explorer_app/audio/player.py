"""Plays a timeline's sounds on the default device, and says how much was heard: the clock of the picture meanwhile.

A thread mixes a little ahead; the device's own thread only takes what is ready. When nothing is ready it plays silence,
which does not count, so that the picture waits instead of running ahead of the sound.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from explorer_app.audio.decoding import can_decode_all
from explorer_app.audio.mixing import MIX_HZ, Mixer
from explorer_app.session.timeline.playing import first_frame, frame_range
from explorer_app.session.tracks import Timeline
from gpu_backend import LazyModule, LoomError, dataclass

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

_log = logging.getLogger(__name__)

_BLOCK = 1024
_AHEAD = 12
"""Blocks that are mixed ahead: a quarter of a second."""

_BUFFER_MS = 20
_LOST_S, _OPENING_S = 1.0, 5.0
"""A device that asks for nothing for so long is taken for lost: once it plays, and while it is being opened."""

_REOPEN_S = 5.0
"""A lost device is opened again whenever it has requested nothing for so long: it may be another one by then."""

LOST = "The sound device stopped answering, so the picture plays on without sound."
FOUND = "The sound device answers again, and plays from where the picture is."

NO_EXTRA = "Sound is heard with the extra “live”; install it with pip install 'latentloom[live]'. The picture plays on."

Stream = Generator[bytes, int, None]


class OutputDevice(Protocol):
    """Plays stereo float32 at `MIX_HZ`: pulls blocks of frames from a stream, on its own thread."""

    def start(self, stream: Stream) -> None:
        """Begin to play; the stream was advanced to its first yield."""
        ...

    def close(self) -> None:
        """Stop. May be called twice."""
        ...


def default_device() -> OutputDevice:
    """Return the system's default device. Raises LoomError if there is none."""
    if not can_decode_all():
        raise LoomError(NO_EXTRA)
    import miniaudio

    try:
        device: Any = miniaudio.PlaybackDevice(miniaudio.SampleFormat.FLOAT32, 2, MIX_HZ, buffersize_msec=_BUFFER_MS)
    except miniaudio.MiniaudioError as error:
        raise LoomError("No sound device was found, so the picture plays without sound.", str(error)) from error
    return device  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Route:
    """Which part of a timeline is heard when, in samples: a start within a range that may repeat, or go back and forth.

    `first` and `last` bound the range; what plays begins at `start`.
    """

    start: int
    first: int
    last: int
    is_looping: bool
    is_ping_pong: bool

    @classmethod
    def of(cls, timeline: Timeline, start: Fraction) -> Route:
        """Return the way of the playhead that begins at a time, as `session.timeline.playing.played` goes."""
        first, count = frame_range(timeline)
        is_ping_pong = timeline.is_looping and timeline.is_ping_pong and count > 1
        # Back and forth the last frame is shown once, so the way back begins a frame sooner.
        last = first + (count - is_ping_pong) / timeline.fps
        begun = first + first_frame(timeline, start) / timeline.fps
        ends = [round(t * MIX_HZ) for t in (begun, first, last)]
        return cls(ends[0], ends[1], ends[2], timeline.is_looping, is_ping_pong)

    def parts(self, done: int, count: int) -> list[tuple[int, int, bool]]:
        """Return (first sample, samples, backwards) of the timeline for `count` samples after `done` were played."""
        parts: list[tuple[int, int, bool]] = []
        length = max(1, self.last - self.first)
        place = self.start - self.first + done
        while count > 0:
            if not self.is_looping:
                parts.append((self.first + place, count, False))
                return parts
            lap, inside = divmod(place, length)
            run = min(count, length - inside)
            if self.is_ping_pong and lap % 2:
                parts.append((self.last - inside - run, run, True))
            else:
                parts.append((self.first + inside, run, False))
            place, count = place + run, count - run
        return parts


class Player:
    """Plays one timeline at a time. `start`, `stop` and `elapsed_s` belong to one thread.

    Parameters
    ----------
    lost
        Called with a sentence, on any thread, when there is no device or it stopped.
    found
        Called with a sentence, on any thread, when a device that stopped answers again.
    open_device
        Returns a device.
    clock
        Seconds from any origin.
    """

    def __init__(
        self,
        lost: Callable[[str], None],
        open_device: Callable[[], OutputDevice] = default_device,
        clock: Callable[[], float] = time.monotonic,
        found: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self._lost = lost
        self._found = found
        self._open_device = open_device
        self._clock = clock
        self._run: _Run | None = None
        self._has_complained = False
        self._volume = 1.0

    def start(self, timeline: Timeline, paths: Mapping[str, Path], start: Fraction) -> None:
        """Play a timeline's sounds from a time on; in place of what plays."""
        begun_s = self._clock()
        self.stop()
        heard = tuple(sound for sound in timeline.sounds if not sound.is_muted and sound.digest in paths)
        if heard:
            route = Route.of(timeline, start)
            open_mixer = partial(Mixer, heard, dict(paths))
            self._run = _Run(open_mixer, route, self._open_device, self._clock, begun_s, self._tell, self._volume)

    def stop(self) -> None:
        """Stop playing, and end the threads. May be called twice."""
        run, self._run = self._run, None
        if run is not None:
            run.close()

    def set_volume(self, volume: float) -> None:
        """Set how loud everything is heard, 0..1; an export keeps the sounds' own volume."""
        self._volume = min(max(volume, 0.0), 1.0)
        if self._run is not None:
            self._run.volume = self._volume

    def elapsed_s(self) -> float | None:
        """Return how many seconds were heard since `start`; None if nothing is heard."""
        return None if self._run is None else self._run.elapsed_s()

    def _tell(self, sentence: str) -> None:
        if sentence == FOUND:
            self._has_complained = False
            self._found(sentence)
        elif not self._has_complained:
            self._has_complained = True
            self._lost(sentence)


class _Run:
    """What plays: one device at a time, one thread that opens it and mixes for it.

    A device that asks for nothing counts as lost, and time goes by the clock. When it asks again, or the one does that
    was opened in its place, sound goes on from the time that the clock has come to.
    """

    def __init__(
        self,
        open_mixer: Callable[[], Mixer],
        route: Route,
        open_device: Callable[[], OutputDevice],
        clock: Callable[[], float],
        begun_s: float,
        tell: Callable[[str], None],
        volume: float,
    ) -> None:
        self.volume = volume
        """Read by the device's thread, with each block that it takes."""
        self._open_mixer, self._route = open_mixer, route
        self._open_device, self._clock, self._begun_s, self._tell = open_device, clock, begun_s, tell
        self._condition = threading.Condition()
        self._ready: deque[NDArray[np.float32]] = deque()
        self._rest: NDArray[np.float32] | None = None
        """What is left of the block that the device took last."""
        self._delivered = 0
        """Frames that the device took, silence not counted."""
        self._heard = 0
        """Frames that the device had taken before its last request: they were played by then."""
        self._mixed = 0
        """Frames that were mixed."""
        self._requested_at = clock()
        self._is_closed = self._is_silent = self._has_begun = self._has_ended = False
        self._needs_device = True
        self._thread = threading.Thread(target=self._work, name="sound", daemon=True)
        self._thread.start()

    def elapsed_s(self) -> float | None:
        """Return the seconds that were heard; None while the device is known to be gone."""
        with self._condition:
            if self._has_ended:
                return None
            passed = self._clock() - self._requested_at
            if self._is_silent:
                if passed > _REOPEN_S:
                    self._needs_device, self._requested_at = True, self._clock()
                    self._condition.notify_all()
                return None
            if passed <= (_LOST_S if self._has_begun else _OPENING_S):
                return min(self._heard + passed * MIX_HZ, self._delivered) / MIX_HZ
            self._is_silent = True
            self._tell(LOST)
        return None

    def close(self) -> None:
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
        self._thread.join()

    def stream(self) -> Stream:
        """Yield the frames that the device requests."""
        requested = yield b""
        while True:
            requested = yield (self._taken(requested) * np.float32(self.volume)).tobytes()

    def _taken(self, count: int) -> NDArray[np.float32]:
        result = np.zeros((count, 2), np.float32)
        filled = 0
        with self._condition:
            if self._is_silent and not self._has_ended:
                self._rejoin()
            self._heard, self._requested_at = self._delivered, self._clock()
            while filled < count:
                block = self._rest if self._rest is not None else (self._ready.popleft() if self._ready else None)
                if block is None:
                    break
                part = block[: count - filled]
                result[filled : filled + len(part)] = part
                filled += len(part)
                self._rest = block[len(part) :] if len(part) < len(block) else None
            self._delivered += filled
            self._condition.notify_all()
        return result

    def _rejoin(self) -> None:
        """Go on where the clock is; what was mixed for an earlier time is dropped."""
        place = max(0, round((self._clock() - self._begun_s) * MIX_HZ))
        self._ready.clear()
        self._rest = None
        self._delivered = self._mixed = place
        self._is_silent = False
        self._tell(FOUND)

    def _work(self) -> None:
        """Open the device, mix ahead of it until it is closed."""
        device: OutputDevice | None = None
        try:
            mixer = self._open_mixer()
            while self._mixed_on(mixer):
                if not self._needs_device or len(self._ready) < _AHEAD // 2:
                    continue
                if device is not None:
                    gone, device = device, None
                    with suppress(Exception):  # the device is gone; its error adds nothing
                        gone.close()
                device = self._opened()
        except Exception as error:  # the picture plays on after any error of a device or a file
            with self._condition:
                self._has_ended = True
            sentence = error.sentence if isinstance(error, LoomError) else "The sound device failed."
            _log.info("Sound ended: %s", error)
            self._tell(sentence)
        finally:
            if device is not None:
                device.close()

    def _opened(self) -> OutputDevice | None:
        """Return a device that has begun to ask; None if one was lost and there is still none."""
        self._needs_device = False
        try:
            device = self._open_device()
        except LoomError:
            if self._has_begun:
                return None
            raise
        stream = self.stream()
        next(stream)
        with self._condition:
            self._requested_at, self._has_begun = self._clock(), True
        try:
            device.start(stream)
        except BaseException:
            device.close()
            raise
        return device

    def _mixed_on(self, mixer: Mixer) -> bool:
        """Wait until there is something to do, and mix a block if one is missing; return False at the end."""
        with self._condition:
            self._condition.wait_for(lambda: self._is_closed or self._needs_device or len(self._ready) < _AHEAD)
            if self._is_closed:
                return False
            if len(self._ready) >= _AHEAD:
                return True
            done = self._mixed
        parts = [
            mixer.read(first, count)[::-1] if backwards else mixer.read(first, count)
            for first, count, backwards in self._route.parts(done, _BLOCK)
        ]
        with self._condition:
            if self._mixed == done:  # not dropped meanwhile
                self._mixed += _BLOCK
                self._ready.append(np.concatenate(parts))
        return True

"""Fakes of the playhead and of the sounds."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from PySide6.QtCore import QObject, Signal


class FakePlayback(QObject):
    """Records calls of the playhead."""

    moved = Signal()
    playing_changed = Signal()

    def __init__(self, calls: list[Any]) -> None:
        super().__init__()
        self._calls = calls
        self.time = Fraction(0)
        self.is_playing = self.is_recording = False
        self.armed: frozenset[str] = frozenset()
        self.recorded: dict[str, Any] = {}

    def seek(self, t: Fraction, final: bool = True) -> None:
        self._calls.append(("seek", t, final))
        self.time = t
        self.moved.emit()

    def set_playing(self, on: bool) -> None:
        self._calls.append(("play", on))
        self.is_playing = on
        self.playing_changed.emit()

    def set_recording(self, on: bool) -> None:
        self._calls.append(("record", on))
        self.is_recording = on
        self.playing_changed.emit()

    def set_armed(self, path: str, on: bool) -> None:
        self._calls.append(("arm", path, on))
        self.armed = self.armed | {path} if on else self.armed - {path}
        self.playing_changed.emit()

    def step(self, frames: int) -> None:
        self._calls.append(("step", frames))

    def keep_entries(self, numbers: Sequence[int], t: Fraction | None = None) -> None:
        self._calls.append(("keep_entries", tuple(numbers), t))

    def keep_picture(self) -> None:
        self._calls.append(("keep picture",))

    def draw(self, paths: Any, points: Any) -> None:
        self._calls.append(("draw_path", paths, points))

    def animate(self, path: str) -> None:
        self._calls.append(("animate", path))


class FakeSounds(QObject):
    """Records calls of the sounds."""

    changed = Signal()

    def __init__(self, calls: list[Any]) -> None:
        super().__init__()
        self._calls = calls
        self.levels: dict[Any, float] = {}

    def level(self, patch: Any) -> float | None:
        return self.levels.get(patch)

    def analysis(self, digest: str) -> None:
        return None

    def is_missing(self, digest: str) -> bool:
        return False

    def envelopes_of(self, session: Any) -> dict[Any, Any]:
        return {}

    def set_volume(self, volume: float) -> None:
        self._calls.append(("volume", volume))

    def add(self, paths: Any) -> None:
        self._calls.append(("add sounds", paths))

    def change(self, sound: Any, label: str, final: bool) -> None:
        self._calls.append(("change sound", sound, label, final))

    def remove(self, name: str) -> None:
        self._calls.append(("remove sound", name))

    def use_tempo(self, name: str) -> None:
        self._calls.append(("use tempo", name))

    def drive(self, patch: Any) -> None:
        self._calls.append(("drive", patch))

    def locate(self, name: str, path: Any) -> None:
        self._calls.append(("locate", name, path))

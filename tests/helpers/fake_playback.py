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

    def __init__(self, asked: list[Any]) -> None:
        super().__init__()
        self._asked = asked
        self.time = Fraction(0)
        self.is_playing = self.is_recording = False
        self.armed: frozenset[str] = frozenset()

    def seek(self, t: Fraction, final: bool = True) -> None:
        self._asked.append(("seek", t, final))
        self.time = t
        self.moved.emit()

    def set_playing(self, on: bool) -> None:
        self._asked.append(("play", on))
        self.is_playing = on
        self.playing_changed.emit()

    def set_recording(self, on: bool) -> None:
        self._asked.append(("record", on))
        self.is_recording = on
        self.playing_changed.emit()

    def set_armed(self, path: str, on: bool) -> None:
        self._asked.append(("arm", path, on))
        self.armed = self.armed | {path} if on else self.armed - {path}
        self.playing_changed.emit()

    def step(self, frames: int) -> None:
        self._asked.append(("step", frames))

    def keep_entries(self, numbers: Sequence[int], t: Fraction | None = None) -> None:
        self._asked.append(("keep_entries", tuple(numbers), t))

    def keep_picture(self) -> None:
        self._asked.append(("keep picture",))

    def draw(self, paths: Any, points: Any) -> None:
        self._asked.append(("draw_path", paths, points))

    def animate(self, path: str) -> None:
        self._asked.append(("animate", path))


class FakeSounds(QObject):
    """Records calls of the sounds."""

    changed = Signal()

    def __init__(self, asked: list[Any]) -> None:
        super().__init__()
        self._asked = asked

    def analysis(self, digest: str) -> None:
        return None

    def is_missing(self, digest: str) -> bool:
        return False

    def envelopes_of(self, session: Any) -> dict[Any, Any]:
        return {}

    def set_volume(self, volume: float) -> None:
        self._asked.append(("volume", volume))

    def add(self, paths: Any) -> None:
        self._asked.append(("add sounds", paths))

    def change(self, sound: Any, label: str, final: bool) -> None:
        self._asked.append(("change sound", sound, label, final))

    def remove(self, name: str) -> None:
        self._asked.append(("remove sound", name))

    def use_tempo(self, name: str) -> None:
        self._asked.append(("use tempo", name))

    def drive(self, patch: Any) -> None:
        self._asked.append(("drive", patch))

    def locate(self, name: str, path: Any) -> None:
        self._asked.append(("locate", name, path))

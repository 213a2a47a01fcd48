"""Which device of a farm made which frame of a job."""

from __future__ import annotations

from collections.abc import Iterable

from explorer_app.exporting.manifest import FramesByDevice
from explorer_app.farm.work import StoredUnit


class FrameOrigins:
    """Frames by device, for the manifest.

    Parameters
    ----------
    known
        What an earlier run noted.
    unit_frames
        Frames of a unit.
    """

    def __init__(self, known: Iterable[FramesByDevice] = (), unit_frames: int = 1) -> None:
        self._frames: dict[str, set[int]] = {}
        for made in known:
            self._frames.setdefault(made.device, set()).update(made.frames)
        self._unit_frames = unit_frames
        self._unreported: dict[int, str] = {}
        """Device of the worker that was lost with a unit: it made what the next worker finds."""

    def note_loss(self, units: Iterable[int], device: str) -> None:
        """Record units whose worker was lost before it reported them."""
        self._unreported.update(dict.fromkeys(units, device))

    def note(self, units: Iterable[StoredUnit], device: str) -> None:
        """Take note of what a worker with this device reported."""
        for unit in units:
            maker = self._unreported.get(unit.unit, device) if unit.is_found else device
            first = unit.unit * self._unit_frames
            frames = range(first, first + unit.frames)
            for made in self._frames.values():
                made.difference_update(frames)
            self._frames.setdefault(maker, set()).update(frames)

    @property
    def made_on(self) -> tuple[FramesByDevice, ...]:
        """As the manifest has it."""
        return tuple(FramesByDevice(device, tuple(sorted(frames))) for device, frames in self._frames.items() if frames)

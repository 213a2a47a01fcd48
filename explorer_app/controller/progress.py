"""Progress as the window shows it: of opening a model, of exporting a sequence."""

from __future__ import annotations

from gpu_backend import dataclass


@dataclass(frozen=True, slots=True)
class Loading:
    """Progress of opening a model.

    Attributes
    ----------
    path
        The file.
    done, total
        Bytes; `total` 0 while it is not known.
    stage
        Words for the user: "Reading", "Preparing".
    """

    path: str
    done: int
    total: int
    stage: str

    @property
    def share(self) -> float:
        """Part that is read, in 0..1."""
        return _share(self.done, self.total)


@dataclass(frozen=True, slots=True)
class ExportProgress:
    """Progress of an export.

    Attributes
    ----------
    name
        Its name in messages.
    done, total
        Frames; frames that were there from an earlier run count as done.
    seconds_left
        Estimate from the frames of this run; None before the first.
    is_stopping
        It was cancelled and is about to end.
    per_second
        Frames per second of the last frames; None before the second.
    waiting
        Exports that begin after this one.
    activity
        What a farm does now: "2 workers, 52 fps"; empty for this window's device.
    workers
        A sentence for each worker of the farm.
    worker_names
        Their names, in the same order.
    is_joining
        Every frame is stored; the parts of a video or of a sheet are put together.
    picture_rate
        Frames per second of the picture in the window while it moves beside the export; None while it rests.
    """

    name: str
    done: int
    total: int
    seconds_left: float | None = None
    is_stopping: bool = False
    per_second: float | None = None
    waiting: int = 0
    activity: str = ""
    workers: tuple[str, ...] = ()
    worker_names: tuple[str, ...] = ()
    picture_rate: float | None = None
    is_joining: bool = False

    @property
    def share(self) -> float:
        """Part that is done, in 0..1."""
        return _share(self.done, self.total)


def _share(done: int, total: int) -> float:
    """Return the part that is done, in 0..1; 0 while the total is not known."""
    return min(1.0, done / total) if total > 0 else 0.0

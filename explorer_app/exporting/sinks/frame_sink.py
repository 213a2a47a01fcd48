"""Interface of an export's destination."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from explorer_app.exporting.picture_document import PictureDocument, document_to_text
from gpu_backend import Frame, RenderRequest, dataclass


class FramePlan(Protocol):
    """The frames of a sequence, in any order: pure, and nothing is computed ahead."""

    def __len__(self) -> int: ...

    def request(self, index: int) -> RenderRequest:
        """Return what to render for a frame."""
        ...

    def document(self, index: int) -> PictureDocument:
        """Return what a frame's file says about itself."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedText:
    """Implements `encoder_crew.Text`: the recipe of each frame of a plan."""

    plan: FramePlan

    def __call__(self, index: int) -> str:
        """Return the recipe of a frame as JSON."""
        return document_to_text(self.plan.document(index))


@dataclass(frozen=True, slots=True)
class Claim:
    """What may be done with files that are there already.

    Attributes
    ----------
    is_ours
        An earlier run of the same sequence left them; without this, a file in the way is refused.
    replaced_total
        Frames of another sequence that is to be replaced; 0 for none.
    """

    is_ours: bool
    replaced_total: int = 0


class FrameSink(Protocol):
    """Takes frames and stores them, on its own threads.

    `open`, `resumable_from` and `close` may wait for a disk and are called on the job's thread. `is_ready` and `accept`
    are called on the render thread and never wait. What fails later is kept in `error`.
    """

    @property
    def written(self) -> int:
        """Number of frames that were accepted and are stored for good."""
        ...

    @property
    def error(self) -> BaseException | None:
        """The first failure since `open`; frames after it are dropped."""
        ...

    @property
    def is_joining(self) -> bool:
        """Whether parts of a file, all of which are stored, are put together."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether to render another frame. Frames that are being rendered when this turns false are still accepted."""
        ...

    def open(self, plan: FramePlan, claim: Claim, changed: Callable[[], None]) -> None:
        """Look at the place, clear away what a killed run left, and refuse what is not ours.

        Parameters
        ----------
        changed
            To be called, on any thread, when `is_ready`, `written`, `is_joining` or `error` may have changed.

        Raises
        ------
        ExportError
            If something else is in the way, or the place cannot be used.
        """
        ...

    def resumable_from(self, index: int, should_stop: Callable[[], bool]) -> int | None:
        """Return the first frame at or after `index` that is not stored yet, None if there is none.

        None soon after `should_stop` said yes as well: thousands of files may have to be looked at.
        """
        ...

    def accept(self, index: int, frame: Frame) -> None:
        """Take a frame, to be encoded and stored."""
        ...

    def close(self, *, discard: bool) -> None:
        """Finish what was accepted, or `discard` what has not been begun, and end the threads. May be called twice."""
        ...

    def check_whole(self) -> None:
        """Look, when all frames are stored, whether they are still there.

        Raises
        ------
        ExportError
            If a file was deleted meanwhile.
        """
        ...

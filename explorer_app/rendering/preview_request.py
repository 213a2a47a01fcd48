"""A request of the preview, and its answer."""

from __future__ import annotations

from gpu_backend import Frame, RenderRequest, dataclass


@dataclass(frozen=True, slots=True)
class PreviewRequest:
    """A request and the time of the input that caused it, None without one; at rest it is cancelled for a newer one."""

    request: RenderRequest
    requested_s: float | None
    is_at_rest: bool = False


@dataclass(frozen=True, slots=True)
class PreviewFrame:
    """A frame and the time of the input that caused it, None without one.

    `shown` is what to show of it: a draft with corrected colours and enlarged, any other frame unchanged.
    """

    frame: Frame
    requested_s: float | None
    shown: Frame | None = None

"""What the preview asks for and gets."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_backend import Frame, RenderRequest


@dataclass(frozen=True, slots=True)
class PreviewRequest:
    """A request and when the hand asked for it, None if no hand did; at rest it is given up for a newer one."""

    request: RenderRequest
    asked_s: float | None
    is_at_rest: bool = False


@dataclass(frozen=True, slots=True)
class PreviewFrame:
    """A frame and when the hand asked for it, None if no hand did.

    `shown` is what to show of it: a draft in better colours and larger, and any other frame as it is.
    """

    frame: Frame
    asked_s: float | None
    shown: Frame | None = None

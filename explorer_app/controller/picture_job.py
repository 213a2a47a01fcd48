"""A single picture as a job for the render thread."""

from __future__ import annotations

from collections.abc import Callable

from gpu_backend import Frame, RenderRequest


class PictureJob:
    """Implements `ExportJob`: one frame, passed to a function."""

    total = 1
    error: BaseException | None = None

    def __init__(self, request: RenderRequest, deliver: Callable[[Frame], None]) -> None:
        self._request: RenderRequest | None = request
        self._deliver = deliver
        self._is_delivered = False

    @property
    def shown(self) -> int:
        """1 once the frame was delivered."""
        return int(self._is_delivered)

    @property
    def is_ready(self) -> bool:
        """Whether the frame is still to be requested."""
        return self._request is not None

    @property
    def has_ended(self) -> bool:
        """Whether the frame was delivered."""
        return self._is_delivered

    def start(self, changed: Callable[[], None]) -> None:
        """Do nothing: there is nothing to prepare."""

    def next_request(self) -> RenderRequest | None:
        """Return the request the first time."""
        request, self._request = self._request, None
        return request

    def deliver(self, frame: Frame) -> None:
        """Pass the frame to the function."""
        self._deliver(frame)
        self._is_delivered = True

    def stop(self, *, cancelled: bool) -> None:
        """Do nothing: nothing is left open."""

"""Corrects the colours of drafts: an early exit is pale, because it lacks what later layers add."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from explorer_app.rendering.thumbnails import shrink
from explorer_app.session.resolve import unobserved
from gpu_backend import Frame, LazyModule, RenderRequest, dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

_KEPT = 0.7
"""Factor on the weight of older pictures with each new one: a gesture stays near the newest."""

_CAUTION = 0.003
"""Weight of the identity, because pictures with few colours say nothing about others."""


@dataclass(frozen=True, slots=True)
class DraftKey:
    """The key of a draft that is not shown: colours are learned from it."""

    resolution: int


@dataclass(slots=True)
class _Colours:
    """Sums over the pictures seen at one resolution, and the colours that follow from them: (4, 3), B, G, R and one."""

    squares: NDArray[np.float64] = field(default_factory=lambda: np.zeros((4, 4)))
    products: NDArray[np.float64] = field(default_factory=lambda: np.zeros((4, 3)))
    matrix: NDArray[np.float32] = field(default_factory=lambda: np.eye(4, 3, dtype=np.float32))

    def learn(self, draft: NDArray[np.float64], full: NDArray[np.float64]) -> None:
        self.squares = _KEPT * self.squares + draft.T @ draft / len(draft)
        self.products = _KEPT * self.products + draft.T @ full / len(draft)
        solved = np.linalg.solve(self.squares + _CAUTION * np.eye(4), self.products + _CAUTION * np.eye(4, 3))
        self.matrix = solved.astype(np.float32)


class DraftColours:
    """Learns from pictures at rest how their drafts' colours differ, and corrects other drafts.

    The colours are an affine map M of B, G, R for each resolution of drafts, the minimum of

        sum over pictures k of _KEPT^age_k mean over pixels |draft_k M - full_k|^2  +  _CAUTION |M - identity|^2

    with both made equally small, and values from -1 to 1.
    """

    def __init__(self) -> None:
        self._colours: dict[int, _Colours] = {}
        self._learned: dict[int, RenderRequest] = {}
        """Resolution -> the full picture that was learned from last."""

    def clear(self) -> None:
        """Drop everything: colours depend on the model."""
        self._colours.clear()
        self._learned.clear()

    def wanted(self, full: Frame, resolution: int) -> RenderRequest | None:
        """Return the request for the draft that belongs to a full picture; None if it was learned or does not exist."""
        request = unobserved(full.request)
        if full.is_draft or request.tap is not None or self._learned.get(resolution) == request:
            return None
        return replace(request, resolution=resolution)

    def learn(self, draft: Frame, full: Frame) -> None:
        """Add a draft and the full frame of the same picture; other pairs are ignored."""
        request, resolution = unobserved(full.request), draft.request.resolution
        if resolution is None or full.is_draft or unobserved(draft.request) != replace(request, resolution=resolution):
            return
        small = shrink(draft)
        colours = self._colours.setdefault(resolution, _Colours())
        ones = np.ones((small.width * small.height, 1))
        colours.learn(np.hstack([_values(small), ones]), _values(shrink(full, small.width)))
        self._learned[resolution] = request

    def corrected(self, frame: Frame) -> Frame:
        """Return a draft in colours as far as they are known; any other frame unchanged."""
        colours = self._colours.get(frame.request.resolution or 0) if frame.is_draft else None
        if colours is None:
            return frame
        gain, offset = colours.matrix[:3], colours.matrix[3]
        scaled = frame.pixels[..., :3] @ gain
        scaled += 127.5 * (1.0 + offset - gain.sum(0)) + 0.5  # plus a half: the conversion to bytes truncates
        pixels = frame.pixels.copy()
        pixels[..., :3] = scaled.clip(0.0, 255.0)
        pixels.flags.writeable = False
        return replace(frame, pixels=pixels)


def _values(frame: Frame) -> NDArray[np.float64]:
    """Pixels as rows of B, G, R from -1 to 1."""
    return frame.pixels[..., :3].reshape(-1, 3) / 127.5 - 1.0

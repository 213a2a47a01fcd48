"""What the rendering thread needs of a renderer: `gpu_backend.Renderer` keeps it, and so does a test's fake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gpu_backend import Frame, ModelFacts, RenderRequest


class DeviceLike(Protocol):
    """On what a renderer runs, and why."""

    @property
    def name(self) -> str:
        """For people: "CPU"."""
        ...

    @property
    def precision(self) -> str:
        """Precision of the activations: "fp32"."""
        ...

    @property
    def reason(self) -> str:
        """One sentence: why this device."""
        ...


class DirectionsLike(Protocol):
    """Named directions of a model."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names, as in `DirectionAmount`: "sefa/0"."""
        ...

    @property
    def reach(self) -> tuple[float, ...]:
        """A sensible end of each one's slider."""
        ...


class RendererLike(Protocol):
    """Answers requests with frames. Owned by one thread."""

    @property
    def facts(self) -> ModelFacts:
        """What is known of the model."""
        ...

    @property
    def device(self) -> DeviceLike:
        """On what it runs."""
        ...

    @property
    def directions(self) -> DirectionsLike:
        """The model's directions."""
        ...

    def render(self, request: RenderRequest, *, abandoned: Callable[[], bool] | None = None) -> Frame:
        """Return the picture; raise CancelledError soon after `abandoned`, asked now and then, says yes."""
        ...

    def close(self) -> None:
        """Free the device. May be called twice."""
        ...

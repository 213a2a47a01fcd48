"""What the rendering thread needs of a renderer: `gpu_backend.Renderer` keeps it, and so does a test's fake."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from gpu_backend import Frame, ModelFacts, RenderRequest, RowRange

if TYPE_CHECKING:
    from gpu_backend import Comparison, RenderOptions, Roofline

PROCESSOR_ID = "cpu"
"""`DeviceLike.id` of the processor; every other one is a GPU."""


class DeviceLike(Protocol):
    """On what a renderer runs, and why."""

    @property
    def id(self) -> str:
        """What it is chosen by: "cpu", "cuda:0"."""
        ...

    @property
    def name(self) -> str:
        """For people: "CPU", "NVIDIA H200"."""
        ...

    @property
    def precision(self) -> str:
        """Precision of the activations: "fp32"."""
        ...

    @property
    def reason(self) -> str:
        """One sentence: why this device."""
        ...

    @property
    def driver(self) -> str:
        """Version of its driver; with the processor that of a driver which is there, but of no use."""
        ...

    @property
    def memory_nbytes(self) -> int:
        """All of its memory; 0 where that is not known."""
        ...

    @property
    def roofline(self) -> Roofline | None:
        """What it can do at best; None where that is not known."""
        ...


class MemoryLike(Protocol):
    """What a renderer holds, in bytes."""

    @property
    def weights(self) -> int:
        """The model's weights and other constants."""
        ...

    @property
    def plans(self) -> int:
        """Working buffers of all plans."""
        ...

    @property
    def pinned(self) -> int:
        """Memory of the host that the device copies from and to."""
        ...

    @property
    def total(self) -> int:
        """All of it."""
        ...


class DirectionsLike(Protocol):
    """Named directions of a model."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names, as in `DirectionAmount`: "sefa/0"."""
        ...

    @property
    def reach(self) -> tuple[float, ...]:
        """A sensible end of each one's slider, counted from its centre."""
        ...

    @property
    def rows(self) -> tuple[RowRange, ...]:
        """The rows that each is for."""
        ...

    @property
    def centre(self) -> tuple[float, ...]:
        """The middle of each one's slider."""
        ...


class PendingLike(Protocol):
    """A picture on its way."""

    def wait(self) -> Frame:
        """Return it when it is there."""
        ...


class AnswersRequests(Protocol):
    """Answers requests with frames, one at a time or, with `submit`, two at a time."""

    @property
    def device(self) -> DeviceLike:
        """On what it runs."""
        ...

    def render(self, request: RenderRequest, *, should_cancel: Callable[[], bool] | None = None) -> Frame:
        """Return the picture; raise CancelledError soon after `should_cancel`, called now and then, returns true."""
        ...

    def submit(self, request: RenderRequest) -> PendingLike:
        """Begin a picture and return at once, if no more than one is under way."""
        ...


class RendererLike(AnswersRequests, Protocol):
    """A model on a device. Owned by one thread."""

    options: RenderOptions

    @property
    def facts(self) -> ModelFacts:
        """What is known of the model."""
        ...

    @property
    def directions(self) -> DirectionsLike:
        """The model's directions."""
        ...

    @property
    def memory(self) -> MemoryLike:
        """What it holds."""
        ...

    def compare(self, request: RenderRequest, *, should_cancel: Callable[[], bool] | None = None) -> Comparison:
        """Render a picture in every way there is, and tell times and differences; `should_cancel` as in `render`."""
        ...

    def close(self) -> None:
        """Free the device. May be called twice."""
        ...

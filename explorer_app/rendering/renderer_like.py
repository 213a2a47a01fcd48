"""The interface of a renderer, which `gpu_backend.Renderer` and the fakes of tests implement."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Protocol

from gpu_backend import Frame, ModelFacts, RenderRequest, RowRange

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gpu_backend import ChannelMaps, Comparison, Recipe, RenderOptions, Roofline

PROCESSOR_ID = "cpu"
"""`DeviceLike.id` of the CPU; every other id is a GPU's."""


class DeviceLike(Protocol):
    """The device of a renderer, and why it was chosen."""

    @property
    def id(self) -> str:
        """Its id in choices: "cpu", "cuda:0"."""
        ...

    @property
    def name(self) -> str:
        """Its name in the window: "CPU", "NVIDIA H200"."""
        ...

    @property
    def precision(self) -> str:
        """Precision: "fp16", "fp8", "tf32", "bf16x3" or "fp32"."""
        ...

    @property
    def reason(self) -> str:
        """One sentence: why this device."""
        ...

    @property
    def driver(self) -> str:
        """Version of its driver; of the CPU, that of an installed GPU driver that cannot be used."""
        ...

    @property
    def memory_nbytes(self) -> int:
        """Its total memory; 0 if unknown."""
        ...

    @property
    def roofline(self) -> Roofline | None:
        """Its peak rates; None if unknown."""
        ...


class MemoryLike(Protocol):
    """Memory of a renderer, in bytes."""

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
        """Pinned host memory that the device copies from and to."""
        ...

    @property
    def total(self) -> int:
        """The sum."""
        ...


class DirectionsLike(Protocol):
    """Named directions of a model."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names, as in `DirectionAmount`: "sefa/0"."""
        ...

    @property
    def reach(self) -> tuple[float, ...]:
        """Sensible range of each one's slider, from its centre."""
        ...

    @property
    def rows(self) -> tuple[RowRange, ...]:
        """The w rows that each acts on."""
        ...

    @property
    def centre(self) -> tuple[float, ...]:
        """Centre of each one's slider."""
        ...


class PendingLike(Protocol):
    """A picture in flight."""

    def wait(self) -> Frame:
        """Wait for the frame and return it."""
        ...


class AnswersRequests(Protocol):
    """Answers requests with frames, one at a time or, with `submit`, two at a time."""

    @property
    def device(self) -> DeviceLike:
        """Its device."""
        ...

    def render(self, request: RenderRequest, *, should_cancel: Callable[[], bool] | None = None) -> Frame:
        """Return the picture; raise CancelledError soon after `should_cancel`, called now and then, returns true."""
        ...

    def submit(self, request: RenderRequest) -> PendingLike:
        """Begin a picture and return at once, if at most one is in flight."""
        ...


class RendererLike(AnswersRequests, Protocol):
    """A model on a device. Owned by one thread."""

    options: RenderOptions

    @property
    def facts(self) -> ModelFacts:
        """Facts of the model."""
        ...

    @property
    def directions(self) -> DirectionsLike:
        """The model's directions."""
        ...

    @property
    def memory(self) -> MemoryLike:
        """Its memory."""
        ...

    def render_batch(
        self, requests: Sequence[RenderRequest], *, should_cancel: Callable[[], bool] | None = None
    ) -> tuple[Frame, ...]:
        """Return the pictures of requests, in their order; on a GPU faster than one by one."""
        ...

    def prepare_step(self, request: RenderRequest) -> bool:
        """Do a bounded step of what precedes a request's first picture; return whether there is another step."""
        ...

    def rows_of(self, blend: tuple[tuple[Recipe, float], ...]) -> NDArray[np.float32]:
        """Return the w rows (num_ws, w_dim) of a blend of recipes, without a picture."""
        ...

    def channel_maps(self, request: RenderRequest, layer: str) -> ChannelMaps:
        """Return the channels of a layer as small pictures, and their clusters."""
        ...

    def compare(self, request: RenderRequest, *, should_cancel: Callable[[], bool] | None = None) -> Comparison:
        """Render a picture in every way; return times and differences. `should_cancel` as in `render`."""
        ...

    def counter_steps(self, request: RenderRequest) -> Generator[None, None, None]:
        """Measure the hardware counters of the kernels of a picture, in bounded steps; measured frames report them."""
        ...

    def close(self) -> None:
        """Free the device. May be called twice."""
        ...

"""What the rendering thread tells, apart from frames: values that wait in order until the window takes them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer_app.rendering.export_job import ExportJob
from explorer_app.rendering.renderer_like import DeviceLike, DirectionsLike, MemoryLike
from gpu_backend import Frame, ModelFacts

if TYPE_CHECKING:
    from gpu_backend import Comparison, DirectionFinder, NamedDirections


@dataclass(frozen=True, slots=True)
class ModelOpened:
    """A renderer is ready; requests for its model are answered from now on."""

    facts: ModelFacts
    directions: DirectionsLike
    device: DeviceLike


@dataclass(frozen=True, slots=True)
class ModelRefused:
    """No renderer could be made for a model; the former one goes on."""

    path: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class DevicesFound:
    """What there is to render on."""

    devices: tuple[DeviceLike, ...]


@dataclass(frozen=True, slots=True)
class DeviceChanged:
    """Another device renders from now on, or the same one in another way; model, session and picture stay."""

    device: DeviceLike


@dataclass(frozen=True, slots=True)
class DeviceFailed:
    """A GPU cannot be used as was wished; what renders, or the processor, goes on.

    `was_rendering` tells a device that failed at its work from one that could not begin.
    """

    error: BaseException
    was_rendering: bool


@dataclass(frozen=True, slots=True)
class KernelsCompiling:
    """Kernels are being compiled for the GPU: so many of so many are done; another renderer answers meanwhile."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class MemoryChanged:
    """What the renderer holds is another amount than when this was told last."""

    memory: MemoryLike


@dataclass(frozen=True, slots=True)
class Compared:
    """A picture was rendered in every way there is."""

    comparison: Comparison


@dataclass(frozen=True, slots=True)
class CompareFailed:
    """A picture could not be compared."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class DirectionsAdvanced:
    """A search for directions got so far, 0..1."""

    finder: DirectionFinder
    share: float


@dataclass(frozen=True, slots=True)
class DirectionsFound:
    """A search for directions found some."""

    finder: DirectionFinder
    found: NamedDirections


@dataclass(frozen=True, slots=True)
class DirectionsFailed:
    """A search for directions could not go on."""

    finder: DirectionFinder
    error: BaseException


@dataclass(frozen=True, slots=True)
class RenderFailed:
    """A preview request could not be answered."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class ExportAdvanced:
    """A job got a frame."""

    job: ExportJob


@dataclass(frozen=True, slots=True)
class ExportEnded:
    """A job is closed: done, cancelled, or stopped by an error."""

    job: ExportJob
    is_cancelled: bool
    error: BaseException | None


@dataclass(frozen=True, slots=True)
class ThumbnailMade:
    """A small frame is there."""

    key: Hashable
    frame: Frame


@dataclass(frozen=True, slots=True)
class ThumbnailFailed:
    """A small frame cannot be made, and asking again would not help."""

    key: Hashable
    error: BaseException


RenderEvent = (
    ModelOpened
    | ModelRefused
    | DevicesFound
    | DeviceChanged
    | DeviceFailed
    | KernelsCompiling
    | MemoryChanged
    | Compared
    | CompareFailed
    | DirectionsAdvanced
    | DirectionsFound
    | DirectionsFailed
    | RenderFailed
    | ExportAdvanced
    | ExportEnded
    | ThumbnailMade
    | ThumbnailFailed
)

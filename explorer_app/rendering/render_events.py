"""Events of the render thread, apart from frames: values that wait in order until the GUI thread takes them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from explorer_app.rendering.export_job import ExportJob
from explorer_app.rendering.renderer_like import DeviceLike, DirectionsLike, MemoryLike
from gpu_backend import Frame, ModelFacts, dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gpu_backend import (
        ChannelMaps,
        Comparison,
        DirectionFinder,
        DragReport,
        EncoderFile,
        EncoderReport,
        LadderShare,
        NamedDirections,
        ProjectionReport,
        RungResult,
        StoredLatent,
        TileFinding,
        TuningShare,
    )


@dataclass(frozen=True, slots=True)
class ModelOpened:
    """A renderer is ready and answers requests for its model from now on."""

    facts: ModelFacts
    directions: DirectionsLike
    device: DeviceLike


@dataclass(frozen=True, slots=True)
class ModelRefused:
    """No renderer could be made for a model; the former one stays."""

    path: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class DevicesFound:
    """All devices."""

    devices: tuple[DeviceLike, ...]


@dataclass(frozen=True, slots=True)
class DeviceChanged:
    """Another device renders from now on, or the same one in another precision; model, session and picture stay."""

    device: DeviceLike


@dataclass(frozen=True, slots=True)
class DeviceFailed:
    """The chosen GPU cannot be used; the present renderer stays, or the CPU takes over.

    `was_rendering` distinguishes a device that failed while rendering from one that could not begin.
    """

    error: BaseException
    was_rendering: bool


@dataclass(frozen=True, slots=True)
class KernelsCompiling:
    """Kernels are being compiled for the GPU, `done` of `total`; another renderer answers meanwhile."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class KernelsChecking:
    """Kernels are being checked on the GPU, `done` of `total`; another renderer answers meanwhile."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class MemoryChanged:
    """The renderer's memory has changed since the last such event."""

    memory: MemoryLike


@dataclass(frozen=True, slots=True)
class Compared:
    """A picture was rendered in every way."""

    comparison: Comparison


@dataclass(frozen=True, slots=True)
class CompareFailed:
    """A picture could not be compared."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class CountersMeasured:
    """Hardware counters of the picture's kernels were measured: frames report them. `error` says why not, else."""

    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class MapsMade:
    """The channels of a layer were rendered."""

    maps: ChannelMaps


@dataclass(frozen=True, slots=True)
class MapsFailed:
    """The channels of a layer could not be rendered."""

    layer: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class DirectionsAdvanced:
    """Progress of a search for directions, 0..1."""

    finder: DirectionFinder
    share: float


@dataclass(frozen=True, slots=True)
class DirectionsFound:
    """A search for directions has ended with a result."""

    finder: DirectionFinder
    found: NamedDirections


@dataclass(frozen=True, slots=True)
class DirectionsFailed:
    """A search for directions failed."""

    finder: DirectionFinder
    error: BaseException


@dataclass(frozen=True, slots=True)
class TuningAdvanced:
    """Progress of a search for the fastest tiles."""

    state: TuningShare


@dataclass(frozen=True, slots=True)
class TuningFound:
    """The fastest tile of one convolution; it is in the table of this GPU."""

    found: TileFinding


@dataclass(frozen=True, slots=True)
class TuningEnded:
    """A search for the fastest tiles is over: done, stopped, or failed by `error`."""

    error: BaseException | None


@dataclass(frozen=True, slots=True)
class LadderAdvanced:
    """Progress of a ladder of optimisations."""

    state: LadderShare


@dataclass(frozen=True, slots=True)
class LadderFound:
    """The time of one rung, or why it was not measured."""

    found: RungResult


@dataclass(frozen=True, slots=True)
class LadderEnded:
    """A ladder is over: done, stopped, or failed by `error`."""

    error: BaseException | None


@dataclass(frozen=True, slots=True)
class RenderFailed:
    """A preview request could not be answered."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class ExportAdvanced:
    """A job received or stored a frame, or begins to join its file: `shown` or `is_joining` changed."""

    job: ExportJob


@dataclass(frozen=True, slots=True)
class ExportEnded:
    """A job is closed: done, cancelled, or stopped by an error."""

    job: ExportJob
    is_cancelled: bool
    error: BaseException | None


@dataclass(frozen=True, slots=True)
class RowsMade:
    """The rows of w of a fetch, in the order of its requests."""

    number: int
    rows: tuple[StoredLatent, ...]


@dataclass(frozen=True, slots=True)
class RowsFailed:
    """The rows of w of a fetch cannot be computed."""

    number: int
    error: BaseException


@dataclass(frozen=True, slots=True)
class ThumbnailMade:
    """A small frame was made."""

    key: Hashable
    frame: Frame


@dataclass(frozen=True, slots=True)
class ThumbnailFailed:
    """A small frame cannot be made; repeating the request would not help."""

    key: Hashable
    error: BaseException


@dataclass(frozen=True, slots=True)
class GridRendered:
    """Pictures of a grid were made: (cell, frame) pairs of the order `number`."""

    number: int
    cells: tuple[tuple[Hashable, Frame], ...]


@dataclass(frozen=True, slots=True)
class GridFailed:
    """The pictures of a grid cannot be made."""

    number: int
    error: BaseException


@dataclass(frozen=True, slots=True)
class DragAdvanced:
    """The drag `number` did steps: the places of its handles and the present rows of w."""

    number: int
    report: DragReport
    latent: StoredLatent


@dataclass(frozen=True, slots=True)
class DragFailed:
    """The drag `number` could not be made, or a step of it failed; it has ended."""

    number: int
    error: BaseException


@dataclass(frozen=True, slots=True)
class ProjectionAdvanced:
    """The projection `number` did steps. `latent` is the best so far if it is better than the one before, else None."""

    number: int
    report: ProjectionReport
    latent: StoredLatent | None


@dataclass(frozen=True, slots=True)
class ProjectionEnded:
    """The projection `number` is done or was stopped; `latent` is the best, None if nothing was compared.

    `changes` are those of weights, by official state-dict names, if the model was tuned to the picture.
    """

    number: int
    latent: StoredLatent | None
    changes: Mapping[str, NDArray[np.float32]] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class ProjectionFailed:
    """The projection `number` could not be made, or a step of it failed; it has ended."""

    number: int
    error: BaseException


@dataclass(frozen=True, slots=True)
class LearningAdvanced:
    """The training `number` of an encoder did steps; `found` is the best encoder so far, None before the first."""

    number: int
    report: EncoderReport
    found: EncoderFile | None = None


@dataclass(frozen=True, slots=True)
class LearningEnded:
    """The training `number` is done, was stopped or failed; `found` is the best encoder, None before the first."""

    number: int
    found: EncoderFile | None
    error: Exception | None = None


RenderEvent = (
    ModelOpened
    | ModelRefused
    | DevicesFound
    | DeviceChanged
    | DeviceFailed
    | KernelsChecking
    | KernelsCompiling
    | MemoryChanged
    | Compared
    | CompareFailed
    | CountersMeasured
    | MapsMade
    | MapsFailed
    | DirectionsAdvanced
    | DirectionsFound
    | DirectionsFailed
    | RenderFailed
    | ExportAdvanced
    | ExportEnded
    | RowsMade
    | RowsFailed
    | ThumbnailMade
    | ThumbnailFailed
    | DragAdvanced
    | DragFailed
    | ProjectionAdvanced
    | ProjectionEnded
    | ProjectionFailed
    | LearningAdvanced
    | LearningEnded
    | GridRendered
    | GridFailed
    | LadderAdvanced
    | LadderEnded
    | LadderFound
    | TuningAdvanced
    | TuningEnded
    | TuningFound
)

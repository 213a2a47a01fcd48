"""What the rendering thread tells, apart from frames: values that wait in order until the window takes them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from explorer_app.rendering.export_queue import ExportJob
from explorer_app.rendering.renderer_like import DeviceLike, DirectionsLike
from gpu_backend import Frame, ModelFacts


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


News = ModelOpened | ModelRefused | RenderFailed | ExportAdvanced | ExportEnded | ThumbnailMade | ThumbnailFailed

"""A sequence: the request and the file of each frame, decided before the first is rendered."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.picture_document import PictureDocument
from explorer_app.session.session import ModelReference
from gpu_backend import Noise, PathKind, Recipe, RenderRequest, path_blends

Blend = tuple[tuple[Recipe, float], ...]

MAX_FRAMES = 100_000
"""As many as five digits can number."""

MAX_KEYS = 4096
"""As many recipes as a frame's request may blend."""

_MAX_NAME = 100


@dataclass(frozen=True, slots=True)
class SequenceSettings:
    """What the person asked for.

    Attributes
    ----------
    keys
        Keyframes: each a blend, as in `RenderRequest.blend`.
    noise, transform
        The same for every frame, so that nothing flickers; the transform as in `RenderRequest`.
    kind, frames_per_step, loop
        As for `gpu_backend.path_blends`.
    folder, name
        The frames are ``<folder>/<name>_00000.png`` and so on, beside ``<folder>/<name>.manifest.json``.
    model
        Which model renders; `model_id` is what counts.
    z_dim
        Length of the model's z; the paths in z depend on it.
    resolution
        None means full.
    overwrite
        Take the place of a different sequence of that name.
    """

    keys: tuple[Blend, ...]
    folder: Path
    name: str
    model: ModelReference
    kind: PathKind = "w-cubic"
    frames_per_step: int = 24
    loop: bool = False
    noise: Noise = Noise()
    transform: tuple[float, ...] | None = None
    z_dim: int = 512
    resolution: int | None = None
    overwrite: bool = False

    @property
    def frame_count(self) -> int:
        """Number of frames that these settings give."""
        return frame_count(len(self.keys), self.frames_per_step, self.loop)


def frame_count(keys: int, frames_per_step: int, loop: bool) -> int:
    """Return the number of frames of a path: a loop has a step more, and no last key of its own."""
    return keys * frames_per_step if loop else max(keys - 1, 0) * frames_per_step + 1


@dataclass(frozen=True, slots=True)
class Sequence:
    """Settings, and what they come to frame by frame. Made by `plan_sequence`."""

    settings: SequenceSettings
    blends: tuple[Blend, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.blends)

    def request(self, index: int) -> RenderRequest:
        """Return the request of a frame."""
        settings = self.settings
        return RenderRequest(
            model_id=settings.model.model_id,
            blend=self.blends[index],
            noise=settings.noise,
            transform=settings.transform,
            resolution=settings.resolution,
        )

    def document(self, index: int) -> PictureDocument:
        """Return what a frame's file says about itself."""
        return PictureDocument(self.request(index), self.settings.model.name)

    def file_name(self, index: int) -> str:
        """Return a frame's file name."""
        return f"{self.settings.name}_{index:05d}.png"

    def path(self, index: int) -> Path:
        """Return where a frame's file goes."""
        return self.settings.folder / self.file_name(index)

    @property
    def manifest_path(self) -> Path:
        """Where the manifest goes."""
        return self.settings.folder / f"{self.settings.name}.manifest.json"

    def owns(self, file_name: str) -> bool:
        """Tell whether a file name is one that a sequence of this name would write."""
        return file_name == self.manifest_path.name or self.frame_index(file_name) is not None

    def frame_index(self, file_name: str) -> int | None:
        """Return the number in a frame's file name, None for other names; it may lie past this sequence's end."""
        match = re.fullmatch(re.escape(self.settings.name) + r"_([0-9]{5})\.png", file_name)
        return None if match is None else int(match[1])


def plan_sequence(settings: SequenceSettings) -> Sequence:
    """Decide every frame of a sequence. Nothing is written or rendered.

    Raises
    ------
    ExportError
        If the name cannot be a file name or the sequence would be too long.
    RequestError
        If the keyframes do not suit the path.
    """
    _check_name(settings.name)
    if len(settings.keys) > MAX_KEYS:
        raise ExportError(f"A path can go through {MAX_KEYS:,} keyframes, but this one has {len(settings.keys):,}.")
    if settings.frame_count > MAX_FRAMES:
        raise ExportError(
            f"A sequence can have {MAX_FRAMES:,} frames, but this one would have {settings.frame_count:,}; "
            "take fewer frames per step."
        )
    blends = path_blends(settings.keys, settings.kind, settings.frames_per_step, settings.loop, z_dim=settings.z_dim)
    return Sequence(settings, tuple(blends))


def _check_name(name: str) -> None:
    forbidden = sorted({character for character in name if character in '/\\:*?"<>|' or not character.isprintable()})
    if forbidden:
        raise ExportError(f"A sequence's name must be fit for file names, but {name!r} holds {forbidden[0]!r}.")
    if not name.strip() or name.startswith(".") or len(name) > _MAX_NAME:
        raise ExportError(
            f"A sequence's name must have 1 to {_MAX_NAME} characters and not start with a dot, but is {name[:20]!r}."
        )

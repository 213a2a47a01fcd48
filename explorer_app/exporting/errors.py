"""What can go wrong between a frame and its file."""

from __future__ import annotations

from gpu_backend import LoomError


class ExportError(LoomError):
    """A file could not be written, or would take the place of something else."""


class PictureError(LoomError):
    """A picture holds no recipe, or one that cannot be read."""

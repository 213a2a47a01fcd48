"""What can go wrong between a frame and its file."""

from __future__ import annotations

from gpu_backend import LoomError


class ExportError(LoomError):
    """A file could not be written, or would take the place of something else."""


class TakenError(ExportError):
    """What would be written has another's place, and may not replace it.

    Parameters
    ----------
    what
        The obstacle, as the first part of a sentence; the caller adds what to do.
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; choose another name or folder, or allow it to be replaced.")
        self.what = what


class PictureError(LoomError):
    """A picture holds no recipe, or one that cannot be read."""


class NoRecipeError(PictureError):
    """A picture without a recipe: another program made it."""

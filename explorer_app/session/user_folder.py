"""Where files that belong to a model may lie: beside it, or in a folder of the user. No Qt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpu_backend import dataclass


@dataclass(frozen=True, slots=True)
class UserFolder:
    """A folder of the user for files that belong to models.

    Attributes
    ----------
    folder
        None keeps nothing there.
    bundled
        The model that came with the program, beside which nothing is written; None for none.
    """

    folder: Path | None
    bundled: Path | None

    def path(self, name: str) -> Path | None:
        """Return the path of a file in the folder; None without a folder."""
        return None if self.folder is None else self.folder / name

    def places(self, model: str | Path, beside: Path | None, name: str) -> Iterator[Path]:
        """Yield where a file may be written: beside its model, unless that is the bundled one, then in the folder."""
        is_bundled = self.bundled is not None and Path(model).resolve() == self.bundled.resolve()
        if beside is not None and not is_bundled:
            yield beside
        own = self.path(name)
        if own is not None:
            yield own

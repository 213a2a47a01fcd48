"""Where encoders and tuned models are kept: beside their model, else in the user's folder.

As with directions (`direction_files`), nothing is written beside the model that came with the program: its folder
belongs to the installation, and the encoder that lies there is shipped. A folder that refuses is replaced likewise, so
that no training is lost at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

import gpu_backend
from explorer_app.session.user_folder import UserFolder
from gpu_backend import LoomError

if TYPE_CHECKING:
    from gpu_backend import ModelFacts


class ModelFiles:
    """Finds and writes files that belong to models.

    Parameters
    ----------
    folder
        The user's folder; None keeps nothing there.
    bundled
        The model that came with the program, beside which nothing is written.
    """

    def __init__(self, folder: Path | None, bundled: Path | None) -> None:
        self._folder = UserFolder(folder, bundled)

    @staticmethod
    def default_folder() -> Path:
        """Return where this system keeps such files of a user."""
        return platformdirs.user_data_path("latentloom", appauthor=False) / "models"

    def own_encoder(self, model_id: str) -> Path | None:
        """Return the file of a model's encoder in the user's folder; None if there is none."""
        own = self._folder.path(_encoder_name(model_id))
        return own if own is not None and own.is_file() else None

    def encoder(self, facts: ModelFacts) -> Path | None:
        """Return the file of the encoder that searches use: the user's, else the one beside the model, else None."""
        beside = gpu_backend.encoder_path(facts.path)
        return self.own_encoder(facts.model_id) or (beside if gpu_backend.is_regular_file(beside) else None)

    def write_encoder(self, facts: ModelFacts, write: Callable[[Path], None]) -> Path:
        """Write a model's encoder where the present one is, or may be; return its path. Raises LoomError, OSError."""
        own = _encoder_name(facts.model_id)
        if self.own_encoder(facts.model_id) is not None:
            return self._write(self._places(facts, None, own), write)
        return self._write(self._places(facts, gpu_backend.encoder_path(facts.path), own), write)

    def write_tuned(self, facts: ModelFacts, photo: Path, write: Callable[[Path], None]) -> Path:
        """Write a model that is tuned to a photo, under a name that is free; return its path. Raises as above."""
        beside = gpu_backend.tuned_path(facts.path, photo)
        return self._write(map(_free, self._places(facts, beside, beside.name)), write)

    @staticmethod
    def _write(places: Iterator[Path], write: Callable[[Path], None]) -> Path:
        """Write to the first place that takes it; if all refuse, raise the first error."""
        refusal: Exception | None = None
        for path in places:
            try:
                write(path)
            except (LoomError, OSError) as error:
                refusal = refusal or error
            else:
                return path
        raise refusal or LoomError("There is no folder to keep it in; copy the model into a folder of your own.")

    def _places(self, facts: ModelFacts, beside: Path | None, own: str) -> Iterator[Path]:
        for path in self._folder.places(facts.path, beside, own):
            if path != beside:
                with suppress(OSError):  # the error of writing names the file
                    path.parent.mkdir(parents=True, exist_ok=True)
            yield path


def _encoder_name(model_id: str) -> str:
    return f"{model_id[:16]}.encoder.safetensors"  # the file holds the whole SHA-256, and is read for no other model


def _free(path: Path) -> Path:
    """Return a path with a number after its name where there is a file already."""
    found, number = path, 1
    while found.exists():
        number += 1
        found = path.with_name(f"{path.stem} {number}{path.suffix}")
    return found

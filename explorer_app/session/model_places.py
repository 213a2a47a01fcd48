"""Where models were last seen on this machine: SHA-256 -> path.

Sessions and saved pictures hold a model's name and SHA-256 and no path, so that they leak none and have the same bytes
on every machine. This list, in the user's state folder, says where the file is here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from explorer_app.file_lock import HeldLock
from explorer_app.session.session import ModelReference
from gpu_backend import SETTINGS_LIMITS, LimitError, is_regular_file, parse_json, read_regular_file, write_whole

MAX_PLACES = 2000
"""Models that are remembered; the ones opened longest ago go first."""

MODEL_SUFFIXES = (".pkl", ".pt", ".pth", ".safetensors")
"""How model files usually end. The content decides the type, so a file with another suffix is opened as well."""

_FORMAT = "latent-loom-models"


class ModelPlaces:
    """The list and its file. Reading never fails: a damaged list is an empty one, and is rewritten.

    Parameters
    ----------
    path
        The file; None keeps the list in memory.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._places: dict[str, str] | None = None

    @staticmethod
    def of_this_user() -> ModelPlaces:
        """Return the list that all programs of this user share."""
        return ModelPlaces(platformdirs.user_data_path("latentloom", appauthor=False) / "models.json")

    def find(self, model: ModelReference, beside: Path | None = None) -> Path | None:
        """Return where a model may be, None if that is not known.

        By its SHA-256 in the list, else by its name in the folder `beside` (that of a picture or session). Only
        reading the file shows whether it is the same model.
        """
        known = self._read().get(model.model_id, "")
        return Path(known) if known and is_regular_file(Path(known)) else self.find_beside(model, beside)

    def last_seen(self, model: ModelReference) -> str:
        """Return the last known path of a model, whether or not it exists; empty if unknown."""
        return self._read().get(model.model_id, "")

    @staticmethod
    def find_beside(model: ModelReference, folder: Path | None) -> Path | None:
        """Return a model file of this name in a folder, None if there is none."""
        if folder is None or not model.name or re.search(r"[/\\\0]", model.name):
            return None
        paths = (folder / (model.name + suffix) for suffix in MODEL_SUFFIXES)
        return next((path for path in paths if is_regular_file(path)), None)

    def remember(self, model_id: str, path: str | Path) -> None:
        """Note where a model is, and write the list. Raises OSError if the system refuses."""
        path = str(Path(path).absolute())
        if not model_id or self._read().get(model_id) == path:
            return
        if self._path is None:
            self._read()[model_id] = path
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with HeldLock(self._path.with_suffix(".lock")):
            self._places = None
            places = self._read()  # again: another program may have written since
            places.pop(model_id, None)
            places[model_id] = path
            newest = dict(list(places.items())[-MAX_PLACES:])
            self._places = newest
            write_whole(self._path, json.dumps({"format": _FORMAT, "places": newest}, indent=0).encode())

    def _read(self) -> dict[str, str]:
        if self._places is None:
            self._places = {} if self._path is None else _places_of(self._path)
        return self._places


def _places_of(path: Path) -> dict[str, str]:
    try:
        data = parse_json(read_regular_file(path, SETTINGS_LIMITS.nbytes, "a list of models"), SETTINGS_LIMITS, "it")
    except (OSError, ValueError, LimitError):
        return {}
    places = data.get("places") if isinstance(data, Mapping) and data.get("format") == _FORMAT else None
    if not isinstance(places, Mapping):
        return {}
    return {key: value for key, value in places.items() if isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", key)}

"""Models that a worker keeps, by SHA-256: each travels once to a machine."""

from __future__ import annotations

import hashlib
import os
import re
import socket
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import platformdirs

from explorer_app.farm.errors import FarmError
from explorer_app.session.model_places import MODEL_SUFFIXES, ModelPlaces
from explorer_app.session.session import ModelReference
from gpu_backend import machine_tag, process_is_running, remove_leftovers, write_whole

_MAX_KEPT = 16
"""Models, and files of directions."""

_DIRECTIONS = ".directions.safetensors"
_INCOMING = re.compile(r"\.incoming-(?P<machine>[0-9a-f]{8})-(?P<pid>[0-9]{1,10})")


class ModelStore:
    """A folder of model files named by their SHA-256, which the workers of a machine share.

    Parameters
    ----------
    folder
        None for the user's cache.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or platformdirs.user_cache_path("latentloom", appauthor=False) / "farm-models"
        self._incoming = self._folder / f".incoming-{machine_tag()}-{os.getpid()}"

    @property
    def identity(self) -> str:
        """The same for workers that share the folder."""
        return f"{socket.gethostname()} {uuid.getnode():x} {self._folder}"

    def candidates(self, model_id: str, name: str, hint: str) -> list[Path]:
        """Return where the model may be: its kept copy, the job's own path, and where this user last had it."""
        kept = [self._path(model_id, suffix) for suffix in MODEL_SUFFIXES]
        known = ModelPlaces.of_this_user().find(ModelReference(name=name, model_id=model_id))
        return [path for path in dict.fromkeys([*kept, Path(hint), *([known] if known else [])]) if _is_file(path)]

    def begin(self) -> None:
        """Forget pieces of a model that did not arrive, also those of processes of this machine that are dead."""
        self._incoming.unlink(missing_ok=True)
        for path in self._folder.glob(".incoming-*"):
            match = _INCOMING.fullmatch(path.name)
            if match is not None and match["machine"] == machine_tag() and not process_is_running(int(match["pid"])):
                path.unlink(missing_ok=True)

    def add_piece(self, offset: int, data: bytes) -> None:
        """Write a piece of a model that is on its way here. Raises FarmError if the disk refuses."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with self._incoming.open("r+b" if offset else "wb") as file:
                file.seek(offset)
                file.write(data)
        except OSError as error:
            raise FarmError(f"The model could not be kept in {self._folder} ({error.strerror}).") from error

    def finish(self, model_id: str, suffix: str) -> None:
        """Verify the pieces and keep the model.

        Raises
        ------
        FarmError
            If they are not the model, or the disk refuses.
        """
        try:
            with self._incoming.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != model_id:
                raise FarmError("The model did not arrive whole; it has to be sent again.")
            with self._incoming.open("rb+") as file:
                os.fsync(file.fileno())
            path = self._path(model_id, suffix)
            self._incoming.replace(path)
        except OSError as error:
            raise FarmError(f"The model could not be kept in {self._folder} ({error.strerror}).") from error
        finally:
            self._incoming.unlink(missing_ok=True)
        models = (kept for kind in MODEL_SUFFIXES for kept in self._folder.glob("*" + kind))
        _drop_oldest((kept for kept in models if not kept.name.endswith(_DIRECTIONS)), path)
        remove_leftovers(self._folder, lambda name: True)

    def keep_directions(self, model_id: str, data: bytes) -> Path:
        """Write a file of directions and return its path. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{model_id}-{hashlib.sha256(data).hexdigest()[:16]}{_DIRECTIONS}"
        if not path.exists():
            write_whole(path, data)
            _drop_oldest(self._folder.glob("*" + _DIRECTIONS), path)
        return path

    def _path(self, model_id: str, suffix: str) -> Path:
        if not re.fullmatch("[0-9a-f]{64}", model_id) or suffix not in MODEL_SUFFIXES:
            raise FarmError("A model should be named by its SHA-256 and end as models do.")
        return self._folder / f"{model_id}{suffix}"


def _drop_oldest(paths: Iterable[Path], newest: Path) -> None:
    """Delete the files that arrived longest ago, beyond the number that is kept; not the newest, by any clock."""
    ages = []
    for path in paths:
        with suppress(FileNotFoundError):  # another worker has deleted it
            ages.append((path == newest, path.stat().st_mtime, path))
    for _, _, path in sorted(ages)[:-_MAX_KEPT]:
        path.unlink(missing_ok=True)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False

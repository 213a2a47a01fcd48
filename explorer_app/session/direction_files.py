"""Stores directions that the user finds: beside the model, or in the user's folder. No Qt.

A model that came with the program, and one in a folder that cannot be written, have theirs in the user's folder, under
the model's SHA-256. Reading a model joins both; if both have a name, the user's wins. A tuned model has those of the
model that it changes, too.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

import gpu_backend
from explorer_app.session.user_folder import UserFolder
from gpu_backend import LoomError, dataclass

if TYPE_CHECKING:
    from gpu_backend import Model, ModelFacts, NamedDirections


@dataclass(frozen=True, slots=True)
class AddedDirections:
    """What was added to a file, and what the file held before and after: None where there was none."""

    path: Path
    names: tuple[str, ...]
    before: bytes | None
    after: bytes | None = None


class DirectionFiles:
    """Reads and writes named directions of models.

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
        """Return where this system keeps directions of a user."""
        return platformdirs.user_data_path("latentloom", appauthor=False) / "directions"

    def add(self, facts: ModelFacts, found: NamedDirections) -> AddedDirections:
        """Add directions to a model's; where its folder refuses, to the user's. Raises LoomError."""
        places = list(
            self._folder.places(facts.path, gpu_backend.direction_path(facts.path), _own_name(facts.model_id))
        )
        for number, path in enumerate(places):
            before = path.read_bytes() if gpu_backend.is_regular_file(path) else None
            kept = None if before is None else self._read(path, facts)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                gpu_backend.write_directions(gpu_backend.joined_directions(kept, found), path, facts.model_id)
            except gpu_backend.ModelFileError:
                raise  # too many, say: no other place would change that
            except (LoomError, OSError):
                if number == len(places) - 1:
                    raise
            else:
                return AddedDirections(path, found.names, before, path.read_bytes())
        raise LoomError(
            f"Directions of {facts.name} cannot be saved beside it; copy the model into a folder of your own."
        )

    def take_back(self, added: AddedDirections) -> None:
        """Restore the former content of a file. Raises OSError, and LoomError if it was changed since."""
        _exchange(added.path, added.after, added.before)

    def put_back(self, added: AddedDirections) -> None:
        """Undo `take_back`. Raises OSError, and LoomError if the file was changed since."""
        _exchange(added.path, added.before, added.after)

    def with_own(self, model: Model) -> Model:
        """Return a model with the directions of its own file and of the user's folder.

        A tuned model also has those in the user's folder of the model that it changes; its own win.
        """
        facts = model.facts
        places = [(self._folder.path(_own_name(facts.model_id)), facts.model_id)]
        base = gpu_backend.changed_model(facts.path)
        if base is not None:
            beside = gpu_backend.direction_path(facts.path)
            places = [(self._folder.path(_own_name(base.model_id)), base.model_id), (beside, facts.model_id), *places]
        for path, model_id in places:
            if path is not None and path.exists():
                model = _with_directions(model, path, model_id)
        return model

    @staticmethod
    def _read(path: Path, facts: ModelFacts) -> NamedDirections:
        return gpu_backend.read_directions(path, facts.model_id, facts.w_dim, facts.num_ws)


def _own_name(model_id: str) -> str:
    return f"{model_id}.directions.safetensors"


def _with_directions(model: Model, path: Path, model_id: str) -> Model:
    """Return a model with the directions of a file, or with a warning why there are none."""
    facts = model.facts
    try:
        found = gpu_backend.read_directions(path, model_id, facts.w_dim, facts.num_ws)
    except gpu_backend.ModelFileError as error:
        warnings = facts.warnings if error.sentence in facts.warnings else (*facts.warnings, error.sentence)
        return replace(model, facts=replace(facts, warnings=warnings))
    directions = gpu_backend.joined_directions(model.directions, found)
    return replace(model, directions=directions, facts=replace(facts, named_directions=directions.names))


def _exchange(path: Path, held: bytes | None, wanted: bytes | None) -> None:
    """Replace a file's bytes (None: no file) if it still has the expected ones."""
    if (path.read_bytes() if path.exists() else None) != held:
        raise LoomError(f"{path.name} was changed by another program since, so its directions stay as they are.")
    if wanted is None:
        path.unlink()
    else:
        gpu_backend.write_whole(path, wanted)

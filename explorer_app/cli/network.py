"""Finding and opening the network that a command renders with."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from explorer_app.assets import bundled_model
from explorer_app.cli.console import Console
from explorer_app.session.direction_files import DirectionFiles
from explorer_app.session.model_places import ModelPlaces
from explorer_app.session.session import ModelReference
from gpu_backend import LoomError, Model, ModelFacts, ModelFileError, read_model


def read_network(path: Path | None, console: Console) -> Model:
    """Read a model file, the bundled one for None.

    Raises
    ------
    ModelFileError
        If there is none, or it cannot be trusted or understood.
    """
    path = bundled_model() if path is None else path

    def show(done: int, total: int) -> None:
        console.status(f"Reading {path.name}: {100 * done // max(total, 1)} %")

    model = DirectionFiles(DirectionFiles.default_folder(), None).with_own(read_model(path, progress=show))
    for warning in model.facts.warnings:
        console.warn(warning)
    with contextlib.suppress(OSError):  # a folder that cannot be written to must not stop a command
        ModelPlaces.of_this_user().remember(model.facts.model_id, path)
    return model


def find_network(wanted: Iterable[tuple[ModelReference, Path]], console: Console) -> Model:
    """Read the network that pictures were made with.

    It is searched in this user's list of models, then by its name in the folder of the picture; then the bundled one
    is taken if it is that.

    Parameters
    ----------
    wanted
        The network of each picture, and the picture's path.

    Raises
    ------
    ModelFileError
        If they were made with different networks, or theirs is not found; the sentence asks for ``--network``.
    """
    references = list(wanted)
    identities = {reference.model_id for reference, _ in references if reference.model_id}
    if len(identities) > 1:
        raise ModelFileError("These pictures were made with different networks; choose one with --network.")
    if not identities:
        return read_network(None, console)
    identity = identities.pop()
    places = ModelPlaces.of_this_user()
    found = [places.find(reference, path.parent) for reference, path in references]
    found += [places.find_beside(reference, path.parent) for reference, path in references]
    changed: list[Path] = []
    for path in dict.fromkeys([*(path for path in found if path is not None), bundled_model()]):
        try:
            model = read_network(path, console)
        except LoomError:
            continue
        if model.facts.model_id == identity:
            return model
        changed.append(path)
    name = next((reference.name for reference, _ in references if reference.name), "an unnamed network")
    lost = next((path for path in found if path in changed), None)
    former = next((place for place in (places.last_seen(reference) for reference, _ in references) if place), "")
    where = f", but {lost} is now another file" if lost else f", which is not at {former}" if former else ""
    raise ModelFileError(
        f"The picture was made with {name} (SHA-256 {identity[:12]}…){where}; give its path with --network."
    )


def reference_to(facts: ModelFacts) -> ModelReference:
    """Return the reference that sessions and manifests keep of a model."""
    return ModelReference(path=str(Path(facts.path).resolve()), name=facts.name, model_id=facts.model_id)

"""Finding and opening the network that a command renders with."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from explorer_app.assets import bundled_model
from explorer_app.cli.console import Console
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

    model = read_model(path, progress=show)
    for warning in model.facts.warnings:
        console.warn(warning)
    return model


def find_network(wanted: Iterable[ModelReference], console: Console) -> Model:
    """Read the network that pictures were made with: from where it was then, else the bundled one if it is that.

    Raises
    ------
    ModelFileError
        If they were made with different networks, or theirs is not found; the sentence asks for ``--network``.
    """
    references = list(wanted)
    identities = {reference.model_id for reference in references if reference.model_id}
    if len(identities) > 1:
        raise ModelFileError("These pictures were made with different networks; choose one with --network.")
    if not identities:
        return read_network(None, console)
    identity = identities.pop()
    changed: list[Path] = []
    for path in [*dict.fromkeys(Path(item.path) for item in references if item.path), bundled_model()]:
        try:
            model = read_network(path, console)
        except LoomError:
            continue
        if model.facts.model_id == identity:
            return model
        changed.append(path)
    name = next((item.name for item in references if item.name), "a network without a name")
    lost = next((item.path for item in references if item.path), "")
    where = (
        f", but {lost} is now another file" if Path(lost) in changed else f", which is not at {lost}" if lost else ""
    )
    raise ModelFileError(
        f"The picture was made with {name} (SHA-256 {identity[:12]}…){where}; say where it is with --network."
    )


def reference_to(facts: ModelFacts) -> ModelReference:
    """Return the reference that sessions and manifests keep of a model."""
    return ModelReference(path=str(Path(facts.path).resolve()), name=facts.name, model_id=facts.model_id)

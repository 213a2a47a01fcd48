"""Restores what a session file or a saved picture holds."""

from __future__ import annotations

from pathlib import Path

from explorer_app.exporting.picture_document import PictureDocument
from explorer_app.session.local_blends import blends_of
from explorer_app.session.local_edits import bends_of, style_channels_of
from explorer_app.session.session import ModelReference, Session
from explorer_app.session.storage import LabelledSessions
from gpu_backend import ModelFacts, Transform, dataclass


@dataclass(frozen=True, slots=True)
class Restoring:
    """A session to restore once its model is open.

    Attributes
    ----------
    what
        Its name in messages: "The picture walk.png".
    beside
        The folder of its file, where its model may be too.
    steps
        (session, label) pairs of the history that led to it.
    step_times
        Where the playhead was at each of these steps, in seconds; None where that is not known.
    label
        What undo calls the step.
    project
        The file of a project, whose timeline belongs to it; None for a picture, with which the present one stays.
    time_s
        Where the playhead was in a project, in seconds.
    is_still
        Whether a project is shown as it was saved, with what was set by hand beside the keys at the playhead. Files of
        former versions, and of programs, may have a session that is not what the keys say there.
    """

    session: Session
    model: ModelReference
    what: str
    beside: Path | None = None
    steps: LabelledSessions = ()
    step_times: tuple[float | None, ...] = ()
    label: str = "Restore"
    project: Path | None = None
    time_s: float = 0.0
    is_still: bool = False


def picture_session(document: PictureDocument) -> Session:
    """Return the session that a picture shows: its own, or one that holds the recipes of a sequence's frame."""
    if document.session is not None:
        return document.session
    blend = document.request.blend
    first = blend[0][0]
    matrix = document.request.transform
    return Session(
        model=document.model,
        pinned_blend=blend,
        classes=first.latent.classes,
        truncation=first.truncation,
        noise=document.request.noise,
        transform=(Transform.of_matrix(matrix) if matrix is not None else None) or Transform(),
        tap=document.request.tap,
        bends=bends_of(document.request.edits),
        style_channels=style_channels_of(document.request.edits),
        blends=blends_of(document.request.edits.blends),
    )


def waiting(restoring: Restoring) -> str:
    """Return the message for a document that waits, since no model is open and its own was not found."""
    model = restoring.model
    why = f" was made with {model.name or 'an unnamed model'}, which was not found; it" if model.model_id else ""
    return f"{restoring.what}{why} is shown once you open its model: File > Open model."


def difference(restoring: Restoring, facts: ModelFacts, changes: tuple[str, ...]) -> tuple[str, str]:
    """Return the message and its details for a document that another model shows."""
    name = restoring.model.name or "an unnamed model"
    model_id = restoring.model.model_id or "(unknown)"
    if name == facts.name:
        sentence = f"{restoring.what} was made with another model of the name {name}, which was not found; this one "
        sentence += "shows it differently until you open that."
    else:
        sentence = f"{restoring.what} was made with {name}, which was not found; {facts.name} shows it differently "
        sentence += f"until you open {name}."
    return (
        sentence,
        "\n".join((f"Its model has the SHA-256 {model_id}; {facts.name} has {facts.model_id}.", *changes)),
    )

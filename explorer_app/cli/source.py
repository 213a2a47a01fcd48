"""What ``--from`` names: a picture or a session, as the request that makes it again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from explorer_app.exporting.picture import read_picture
from explorer_app.exporting.recipe_text import PREFIX, document_of_word
from explorer_app.session.resolve import resolve
from explorer_app.session.session import ModelReference, Session
from explorer_app.session.storage import load_session
from gpu_backend import RenderRequest


@dataclass(frozen=True, slots=True)
class Source:
    """A picture that can be made again. `session` is None for frames of a sequence."""

    path: Path
    request: RenderRequest
    model: ModelReference
    session: Session | None

    def rendered_with(self, model: ModelReference) -> Source:
        """Return the same request for a given network."""
        session = None if self.session is None else replace(self.session, model=model)
        return replace(self, request=replace(self.request, model_id=model.model_id), model=model, session=session)


def named_path(path: Path) -> Path:
    """Return the path that names a source; a recipe has none of its own."""
    return Path("picture.recipe") if str(path).startswith(PREFIX) else path


def read_source(path: Path) -> Source:
    """Read a ``.loom`` session, a saved picture, or the recipe that a command carries (`recipe_text`).

    Raises
    ------
    LoomError
        If it is neither, or damaged.
    """
    if str(path).startswith(PREFIX):
        document = document_of_word(str(path))
        return Source(named_path(path), document.request, document.model, document.session)
    if path.suffix.lower() == ".loom":
        session = load_session(path)
        return Source(path, resolve(session), session.model, session)
    document = read_picture(path)
    return Source(path, document.request, document.model, document.session)

"""What ``--from`` names: a picture or a session, as the request that makes it again."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from explorer_app.exporting.errors import PictureError
from explorer_app.exporting.picture import read_picture
from explorer_app.exporting.picture_document import PictureDocument
from explorer_app.exporting.recipe_text import PREFIX, document_of_argument
from explorer_app.exporting.sheet import read_sheet
from explorer_app.session.resolve import resolve
from explorer_app.session.session import ModelReference, Session
from explorer_app.session.storage import load_session
from gpu_backend import RenderRequest, dataclass


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

    ``sheet.png#5`` is the fifth picture of a sheet, in reading order.

    Raises
    ------
    LoomError
        If it is neither, or damaged.
    """
    if str(path).startswith(PREFIX):
        document = document_of_argument(str(path))
        return Source(named_path(path), document.request, document.model, document.session)
    if path.suffix.lower() == ".loom":
        session = load_session(path)
        return Source(path, resolve(session), session.model, session)
    place = re.fullmatch(r"(.+)#([1-9][0-9]{0,3})", str(path))
    if place is not None and not path.exists():
        sheet, number = Path(place[1]), int(place[2])
        document = _cell(sheet, number)
        path = sheet.with_name(f"{sheet.stem}_{number}{sheet.suffix}")
    elif read_sheet(path) is not None:
        raise PictureError(f"{path.name} is a sheet; name one of its pictures, such as {path.name}#1.")
    else:
        document = read_picture(path)
    return Source(path, document.request, document.model, document.session)


def _cell(path: Path, number: int) -> PictureDocument:
    """Return the recipe of a picture of a sheet, counted from 1. Raises PictureError."""
    sheet = read_sheet(path)
    if sheet is None:
        raise PictureError(f"{path.name} is not a sheet, so leave #{number} out.")
    document = sheet.cells[number - 1] if number <= len(sheet.cells) else None
    if document is None:
        raise PictureError(f"{path.name} has no recipe of a picture {number}; it has {len(sheet.cells)} places.")
    return document

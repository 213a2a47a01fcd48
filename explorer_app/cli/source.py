"""What ``--from`` names: a picture, a session or latents, as the requests that make them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from explorer_app.exporting.errors import PictureError
from explorer_app.exporting.picture import read_picture
from explorer_app.exporting.picture_document import PictureDocument
from explorer_app.exporting.recipe_text import PREFIX, document_of_argument
from explorer_app.exporting.sheet import read_sheet
from explorer_app.session.edited_latent import with_rows
from explorer_app.session.resolve import resolve
from explorer_app.session.session import ModelReference, Session
from explorer_app.session.storage import load_session
from gpu_backend import LATENT_SUFFIXES, LoomError, RenderRequest, StoredLatent, dataclass, read_latents

_NUMBERED = re.compile(r"(.+)#([0-9]{1,4})")
"""A picture of a sheet or of a file of latents, counted from 1."""


@dataclass(frozen=True, slots=True)
class Source:
    """A picture that can be made again.

    Attributes
    ----------
    session
        None for frames of a sequence.
    rows
        Of a file of latents, which has no settings of a picture and names no model; None for all others.
    """

    path: Path
    request: RenderRequest
    model: ModelReference
    session: Session | None
    rows: StoredLatent | None = None

    def rendered_with(self, model: ModelReference) -> Source:
        """Return the same request for a given network."""
        session = None if self.session is None else replace(self.session, model=model)
        return replace(self, request=replace(self.request, model_id=model.model_id), model=model, session=session)


def named_path(path: Path) -> Path:
    """Return the path that names a source; a recipe has none of its own."""
    return Path("picture.recipe") if str(path).startswith(PREFIX) else path


def is_latent_file(path: Path) -> bool:
    """Return whether a source is a file of w rows, or a picture of one (``latents.npz#2``), by its name."""
    if str(path).startswith(PREFIX):
        return False
    return _numbered(path)[0].suffix.lower() in LATENT_SUFFIXES


def read_sources(path: Path) -> list[Source]:
    """Read a ``.loom`` session, a saved picture, a file of latents, or a recipe that a command carries (`recipe_text`).

    ``sheet.png#5`` is the fifth picture of a sheet, in reading order, ``latents.npz#5`` the fifth latent of a file.

    Raises
    ------
    LoomError
        If it is none of them, or damaged.
    """
    return _latents(path) if is_latent_file(path) else [_read_source(path)]


def _read_source(path: Path) -> Source:
    if str(path).startswith(PREFIX):
        document = document_of_argument(str(path))
        return Source(named_path(path), document.request, document.model, document.session)
    if path.suffix.lower() == ".loom":
        session = load_session(path)
        return Source(path, resolve(session), session.model, session)
    sheet, number = _numbered(path)
    if number:
        document = _cell(sheet, number)
        path = sheet.with_name(f"{sheet.stem}_{number}{sheet.suffix}")
    elif read_sheet(path) is not None:
        raise PictureError(f"{path.name} is a sheet; name one of its pictures, such as {path.name}#1.")
    else:
        document = read_picture(path)
    return Source(path, document.request, document.model, document.session)


def _latents(path: Path) -> list[Source]:
    """Read all latents of a file, or the one that is named."""
    path, number = _numbered(path)
    latents = [rows for _, rows in read_latents(path)]
    if number > len(latents):
        raise LoomError(f"{path.name} has no latent {number}; it has {len(latents)}.")
    if len(latents) == 1:
        return [_latent(path, latents[0])]
    return [
        _latent(path.with_name(f"{path.stem}_{count}{path.suffix}"), rows)
        for count, rows in enumerate(latents, 1)
        if number in (0, count)
    ]


def _latent(path: Path, rows: StoredLatent) -> Source:
    session = with_rows(Session(), rows)
    return Source(path, resolve(session), session.model, session, rows)


def _numbered(path: Path) -> tuple[Path, int]:
    """Return the file of a source, and which of its pictures is named, counted from 1; 0 for none.

    Raises PictureError if a picture 0 is named.
    """
    place = _NUMBERED.fullmatch(str(path))
    if place is None or path.exists():
        return path, 0
    if not int(place[2]):
        raise PictureError(f"Pictures of a file are counted from 1, so {path.name} names none.")
    return Path(place[1]), int(place[2])


def _cell(path: Path, number: int) -> PictureDocument:
    """Return the recipe of a picture of a sheet, counted from 1. Raises PictureError."""
    sheet = read_sheet(path)
    if sheet is None:
        raise PictureError(f"{path.name} is not a sheet, so leave #{number} out.")
    document = sheet.cells[number - 1] if number <= len(sheet.cells) else None
    if document is None:
        raise PictureError(f"{path.name} has no recipe of a picture {number}; it has {len(sheet.cells)} places.")
    return document

"""A frame as a picture file that remembers how it was made."""

from __future__ import annotations

from pathlib import Path

from explorer_app.exporting.errors import NoRecipeError, PictureError
from explorer_app.exporting.formats.picture_format import PictureFormat, Size, format_of_path
from explorer_app.exporting.output_file import write_output
from explorer_app.exporting.picture_document import (
    PictureDocument,
    document_from_text,
    document_to_text,
)
from explorer_app.session.session import Session
from gpu_backend import PICTURE_LIMITS, Disk, Frame, remove_leftovers


def encode_picture(
    frame: Frame, document: PictureDocument, form: PictureFormat | None = None, size: Size | None = None
) -> bytes:
    """Return a frame as the bytes of a file; equal arguments always give equal bytes.

    `form` None means PNG, `size` None the frame's own. Raises PictureError as `document_to_text` and `encode_frame`.
    """
    from explorer_app.exporting.formats.codecs import encode_frame  # when the first picture is written

    return encode_frame(frame, document_to_text(document), form or PictureFormat(), size)


def write_picture(
    path: Path,
    frame: Frame,
    *,
    model_name: str,
    session: Session | None = None,
    form: PictureFormat | None = None,
    size: Size | None = None,
    disk: Disk | None = None,
) -> None:
    """Save a frame with its recipe; the file is written whole or not at all.

    Parameters
    ----------
    model_name
        The model's display name; its SHA-256 is in the frame's request.
    session
        The session, so that the window can restore it.
    form
        None for the format of the path's suffix.
    size
        Width and height to scale to; None for the frame's own.

    Raises
    ------
    ExportError
        If the file cannot be written, or its ending names no format.
    """
    form = form or format_of_path(path)
    remove_leftovers(path.parent, path.name.__eq__, disk)
    write_output(path, encode_picture(frame, PictureDocument(frame.request, model_name, session), form, size), disk)


def has_recipe(path: Path) -> bool:
    """Return whether a file is a picture or a sheet that Latent Loom saved."""
    from explorer_app.exporting.formats.codecs import scan_picture  # when the first picture is read

    try:
        scan = scan_picture(path, PICTURE_LIMITS.nbytes)
    except PictureError:
        return False
    return scan.text is not None or bool(scan.text_problem)


def read_picture(path: Path) -> PictureDocument:
    """Return the recipe that a picture holds.

    Raises
    ------
    NoRecipeError
        If the picture holds no recipe.
    PictureError
        If the file is no picture, or its recipe is damaged or too new.
    """
    from explorer_app.exporting.formats.codecs import scan_picture  # when the first picture is read

    scan = scan_picture(path, PICTURE_LIMITS.nbytes)
    if scan.text_problem:
        raise PictureError(f"The recipe of {path.name} {scan.text_problem}; save the picture again with Latent Loom.")
    if scan.text is None:
        raise NoRecipeError(
            f"This picture holds no Latent Loom recipe: {path.name} was made by another program "
            "or lost its metadata; choose a picture as Latent Loom saved it."
        )
    return document_from_text(scan.text)

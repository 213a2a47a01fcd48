"""A frame as a PNG that remembers how it was made."""

from __future__ import annotations

import io
from pathlib import Path

from explorer_app.exporting.errors import PictureError
from explorer_app.exporting.output_file import write_output
from explorer_app.exporting.picture_document import (
    PictureDocument,
    document_from_text,
    document_to_text,
)
from explorer_app.exporting.png_scan import scan_png
from explorer_app.session.session import Session
from gpu_backend import PICTURE_LIMITS, Disk, Frame, remove_leftovers

KEYWORD = "latentloom"
"""Keyword of the iTXt chunk."""

_COMPRESS_LEVEL = 4
"""zlib's level: above it pictures get hardly smaller, and an export waits longer for its writers."""


def encode_picture(frame: Frame, document: PictureDocument) -> bytes:
    """Return a frame as the bytes of a PNG; the same frame and document always give the same bytes."""
    from PIL import Image  # here, since a window that saves nothing needs none of it
    from PIL.PngImagePlugin import PngInfo

    texts = PngInfo()
    texts.add_itxt(KEYWORD, document_to_text(document))
    target = io.BytesIO()
    Image.fromarray(frame.to_rgb()).save(target, "PNG", pnginfo=texts, compress_level=_COMPRESS_LEVEL)
    return target.getvalue()


def write_picture(
    path: Path, frame: Frame, *, model_name: str, session: Session | None = None, disk: Disk | None = None
) -> None:
    """Save a frame with its recipe; the file is there whole or not at all.

    Parameters
    ----------
    model_name
        The model's display name; its SHA-256 is in the frame's request.
    session
        All that the person has set, so that the window can bring it back.

    Raises
    ------
    ExportError
        If the file cannot be written.
    """
    remove_leftovers(path.parent, path.name.__eq__, disk)
    write_output(path, encode_picture(frame, PictureDocument(frame.request, model_name, session)), disk)


def read_picture(path: Path) -> PictureDocument:
    """Return the recipe that a picture holds.

    Raises
    ------
    PictureError
        If the file is no PNG, holds no recipe, or one that is damaged or too new.
    """
    scan = scan_png(path, KEYWORD, PICTURE_LIMITS.nbytes)
    if scan.text_problem:
        raise PictureError(f"The recipe of {path.name} {scan.text_problem}; save the picture again with Latent Loom.")
    if scan.text is None:
        raise PictureError(
            f"This picture holds no Latent Loom recipe: {path.name} was made by another program "
            "or lost its text on the way; choose a PNG as Latent Loom saved it."
        )
    return document_from_text(scan.text)

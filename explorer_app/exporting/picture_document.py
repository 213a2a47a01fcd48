"""What a saved picture says about itself: the JSON document in its text chunk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from explorer_app.exporting.errors import PictureError
from explorer_app.session.session import ModelReference, Session
from explorer_app.session.session_json import session_from_json, session_to_json, stored_of
from gpu_backend import (
    PICTURE_LIMITS,
    LimitError,
    LoomError,
    RenderRequest,
    check_json_size,
    dataclass,
    parse_json,
    request_from_json,
    request_to_json,
    stored_from_json,
    stored_in,
    stored_in_edits,
    stored_to_json,
)

FORMAT = "latent-loom-picture"
VERSION = 1

_MAX_WRITTEN_AS = 100

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
"""`json.dumps` would make one for every picture."""


@dataclass(frozen=True, slots=True)
class PictureDocument:
    """A picture's recipe.

    Attributes
    ----------
    request
        What was rendered; `request.model_id` is the model's SHA-256.
    model_name
        The model's display name, for users.
    session
        All that the user had set when the picture was saved; None for the frames of a sequence.
    written_as
        Format, quality and size of a frame of a sequence: "jpeg 95 512x512". Empty for 8-bit PNG of the full size.
    """

    request: RenderRequest
    model_name: str = ""
    session: Session | None = None
    written_as: str = ""

    @property
    def model(self) -> ModelReference:
        """Which model made the picture."""
        return ModelReference(name=self.model_name, model_id=self.request.model_id)


def document_to_text(document: PictureDocument) -> str:
    """Return the document as JSON in ASCII: the same document always gives the same text.

    Raises
    ------
    PictureError
        If it is larger than the reader allows.
    """
    data: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    if document.session is not None:
        data["session"] = session_to_json(document.session)
    data["request"] = request_to_json(document.request)
    stored = stored_in(recipe.latent for recipe, _ in document.request.blend)
    stored.update(stored_in_edits(document.request.edits))
    if document.session is not None:
        stored.update(stored_of((document.session,)))
    if stored:
        data["latents"] = stored_to_json(stored)
    data["model"] = {"name": document.model_name, "sha256": document.request.model_id}
    if document.written_as:
        data["written_as"] = document.written_as
    text = _ENCODER.encode(data)
    try:
        check_json_size(text, PICTURE_LIMITS, "a picture's recipe")
    except LimitError as error:
        raise PictureError(f"{error.sentence.rstrip('.')}; remove some mix sources.") from error
    return text


def document_from_text(text: str) -> PictureDocument:
    """Read what `document_to_text` wrote.

    Raises
    ------
    PictureError
        If the text is not such a document; the sentence says what was found instead.
    """
    try:
        data = parse_json(text, PICTURE_LIMITS, "a picture's recipe")
    except LimitError as error:
        raise PictureError(error.sentence, error.details) from error
    except ValueError as error:
        raise PictureError(
            "This picture's recipe cannot be read because it is not JSON; save the picture again.", details=str(error)
        ) from error
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise PictureError(f"This picture's recipe should say that it is a {FORMAT!r}, but says something else.")
    version = data.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise PictureError("This picture's recipe should have a whole version number, but has none.")
    if version > VERSION:
        raise PictureError(
            f"This picture was saved by a newer Latent Loom: its recipe has version {str(version)[:20]}, "
            f"this program reads up to {VERSION}; update Latent Loom."
        )
    model = data.get("model")
    name = model.get("name") if isinstance(model, Mapping) else ""
    session = data.get("session")
    written_as = data.get("written_as")
    try:
        stored = stored_from_json(data.get("latents", {}))
        return PictureDocument(
            request=request_from_json(data.get("request"), stored),
            model_name=name if isinstance(name, str) else "",
            session=None if session is None else session_from_json(session, stored),
            written_as=written_as[:_MAX_WRITTEN_AS] if isinstance(written_as, str) else "",
        )
    except LoomError as error:
        raise PictureError(f"This picture's recipe is damaged: {error.sentence}", details=error.details) from error
    except (OverflowError, RecursionError) as error:
        raise PictureError("This picture's recipe is damaged: it holds a number that is too large.") from error

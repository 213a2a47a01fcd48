"""Copies pictures as text that makes them again: a command, a Python program."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from PySide6.QtGui import QGuiApplication

from explorer_app.controller import Engine
from explorer_app.exporting.picture_document import PictureDocument
from explorer_app.exporting.recipe_text import as_command, as_python
from explorer_app.messages import MessageLog
from explorer_app.session.adapting import adapt
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Session
from gpu_backend import LoomError

RecipeText = Literal["command", "python"]


class RecipeClipboard:
    """Puts recipes on the clipboard, for the open model."""

    def __init__(self, engine: Engine, messages: MessageLog) -> None:
        self._model = engine.model
        self._messages = messages

    def copy(self, session: Session, kind: RecipeText) -> None:
        """Copy the text that makes the picture of a session again with the open model."""
        facts = self._model.facts
        if facts is None:
            self._messages.warning("Open a model first; the text names its file.")
            return
        request = resolve(adapt(session, facts).session)
        path = Path(facts.path).absolute()
        try:
            if kind == "python":
                text = as_python(request, path)
            else:
                text = as_command(PictureDocument(request, facts.name), None if self._model.is_bundled else path)
        except LoomError as error:
            self._messages.warning(error.sentence, error.details)
            return
        QGuiApplication.clipboard().setText(text)
        name = "Python program" if kind == "python" else "command"
        self._messages.info(f"The {name} that makes this picture is on the clipboard.")

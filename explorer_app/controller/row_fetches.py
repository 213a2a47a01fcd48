"""Rows of w of sessions, computed on the render thread for actions that wait for them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial

from explorer_app.controller.model_opener import ModelOpener
from explorer_app.messages import MessageLog
from explorer_app.rendering.render_events import RowsFailed, RowsMade
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.session.adapting import adapt
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Session
from gpu_backend import ModelFacts, RenderRequest, StoredLatent


class RowFetches:
    """Has rows of w computed with the open model, and passes them on."""

    def __init__(self, renders: RenderThread, model: ModelOpener, messages: MessageLog) -> None:
        self._renders = renders
        self._model = model
        self._messages = messages
        self._numbers = itertools.count()
        self._waiting: dict[int, Callable[[Sequence[StoredLatent]], None]] = {}
        """Number of a fetch -> the callback that gets its rows."""

    def fetch(self, sessions: Sequence[Session], take: Callable[[Sequence[StoredLatent]], None]) -> None:
        """Compute the rows of sessions with the open model; `take` gets them, unless one cannot be computed."""
        facts = self._model.facts
        if facts is not None:
            number = next(self._numbers)
            self._waiting[number] = take
            self._renders.request_rows(number, [partial(_request, session, facts) for session in sessions])

    def take_made(self, event: RowsMade) -> None:
        """Pass on the rows of a fetch."""
        take = self._waiting.pop(event.number, None)
        if take is not None:
            take(event.rows)

    def take_failed(self, event: RowsFailed) -> None:
        """Show why the rows of a fetch cannot be computed."""
        if self._waiting.pop(event.number, None) is not None:
            self._messages.warning("The latents could not be computed with this model.", str(event.error))

    def clear(self) -> None:
        """Drop all fetches, with a message: they were for the former model."""
        self._renders.forget_rows()
        if self._waiting:
            self._waiting.clear()
            self._messages.warning("Latents were not computed, because another model was opened.")


def _request(session: Session, facts: ModelFacts) -> RenderRequest:
    return resolve(adapt(session, facts).session)

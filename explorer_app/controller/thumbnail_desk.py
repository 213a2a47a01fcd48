"""Small pictures: asked for as often as a widget paints, made once, kept as long as their model is open."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from explorer_app.controller.adapting import adapt
from explorer_app.messages import MessageLog
from explorer_app.rendering.news import ThumbnailFailed, ThumbnailMade
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.rendering.thumbnails import THUMBNAIL_PX, ThumbnailStore
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Session
from gpu_backend import ModelFacts, RenderRequest


class ThumbnailDesk:
    """Orders small pictures and stores them by their keys."""

    def __init__(self, renders: RenderThread, messages: MessageLog) -> None:
        self._renders = renders
        self._messages = messages
        self._hopeless: set[Hashable] = set()
        self.store = ThumbnailStore()

    def ask(self, key: Hashable, what: Session | RenderRequest, facts: ModelFacts) -> None:
        """Order a small picture, unless it is there or cannot be made."""
        if key not in self.store and key not in self._hopeless:
            self._renders.ask_thumbnail(key, lambda: thumbnail_request(what, facts))

    def take_made(self, news: ThumbnailMade) -> None:
        """A small picture is there."""
        self.store.put(news.key, news.frame)

    def take_failed(self, news: ThumbnailFailed) -> None:
        """A small picture cannot be made; nobody is bothered with that."""
        self._hopeless.add(news.key)
        self._messages.note("A small picture could not be made.", f"{news.key}: {news.error}")

    def clear(self) -> None:
        """Forget everything: another model has other pictures."""
        self._renders.forget_thumbnails()
        self._hopeless.clear()
        self.store.clear()


def thumbnail_request(what: Session | RenderRequest, facts: ModelFacts) -> RenderRequest:
    """Return the request for a small picture of a session or a request: the earliest exit that is large enough."""
    if isinstance(what, Session):
        request = resolve(adapt(what, facts).session)
    else:
        request = replace(what, model_id=facts.model_id)
    large_enough = [side for side in facts.draft_resolutions if side >= THUMBNAIL_PX]
    return replace(request, resolution=min(large_enough, default=None), measure_steps=False)

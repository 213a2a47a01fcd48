"""Small pictures: requested as often as a widget paints, made once, stored as long as their model is open."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from explorer_app.controller.drafts import draft_with_edits
from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.model_opener import ModelOpener
from explorer_app.messages import MessageLog
from explorer_app.rendering.render_events import ThumbnailFailed, ThumbnailMade
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.rendering.tasks.thumbnail import MAX_WAITING
from explorer_app.rendering.thumbnail_file import StoredThumbnail, ThumbnailFile, session_digest
from explorer_app.rendering.thumbnails import ThumbnailStore, shrink
from explorer_app.session.adapting import adapt, fit_edits
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Session, as_still
from gpu_backend import Frame, FrameTimings, ModelFacts, RenderRequest

_WRITE_MS = 2000
_NO_TIMINGS = FrameTimings(0.0, 0.0, 0.0)

EXIT_PX = 256
"""Small pictures are rendered at least this large and shrunk: earlier exits of a network are pale and blurred."""


class ThumbnailService(QObject):
    """Requests small pictures and stores them by key. The picture on the screen is shrunk instead of rendered again.

    Parameters
    ----------
    shown
        Returns the session whose full picture is on the screen, and that frame; None if the screen shows anything else.
    worker
        Reads and writes the pictures on disk.
    file
        Pictures of earlier runs; None keeps none.
    """

    changed = Signal()
    """`store` has more pictures."""

    def __init__(
        self,
        renders: RenderThread,
        model: ModelOpener,
        messages: MessageLog,
        shown: Callable[[], tuple[Session, Frame] | None],
        worker: FileWorker,
        file: ThumbnailFile | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._renders = renders
        self._model = model
        self._messages = messages
        self._shown = shown
        self._worker = worker
        self._file = file
        self._sought: dict[Hashable, Session] = {}
        """Sessions of keys that are looked up on disk, and of those that were not there."""
        self._is_sought: set[Hashable] = set()
        self._unwritten: list[tuple[Session, StoredThumbnail]] = []
        self._write_later = QTimer(self, singleShot=True, interval=_WRITE_MS)
        self._write_later.timeout.connect(self._write)
        self._failed_keys: set[Hashable] = set()
        self._waiting: dict[Hashable, Session] = {}
        """Sessions whose pictures are not made yet, the newest request last."""
        self._has_news = False
        """Whether pictures were stored since `changed` was emitted."""
        self.store = ThumbnailStore()

    def request(self, key: Hashable, what: Session | RenderRequest, *, on_disk: bool = False) -> None:
        """Have a small picture made while nothing else is to do; `changed` reports when it is in `store`.

        Requesting a key again that is stored or on its way costs nothing, so a widget may do so at every paint. Without
        a model nothing is made.

        Parameters
        ----------
        on_disk
            Look for the picture on disk first, and keep it there: that of a session which a later run will show.
        """
        if key in self.store or key in self._failed_keys or key in self._is_sought:
            return
        if on_disk and self._file is not None and isinstance(what, Session) and key not in self._sought:
            self._seek(key, what, self._file)
            return
        facts = self._model.facts
        if facts is None:
            return
        if isinstance(what, Session):
            self._waiting.pop(key, None)
            self._waiting[key] = what
            while len(self._waiting) > MAX_WAITING:
                del self._waiting[next(iter(self._waiting))]  # the render thread has dropped it, too
            self._shrink_shown((key,))
        if key not in self.store:
            self._renders.request_thumbnail(key, lambda: thumbnail_request(what, facts))

    @Slot()
    def take_shown(self) -> None:
        """Shrink the picture on the screen for the keys that wait for it."""
        self._shrink_shown(tuple(self._waiting))

    def _shrink_shown(self, waiting: Sequence[Hashable]) -> None:
        """Shrink the picture on the screen for those of the keys that wait for it."""
        shown = self._shown() if waiting else None
        if shown is None:
            return
        session, frame = shown
        keys = [key for key in waiting if replace(self._waiting[key], model=session.model) == session]
        if keys:
            small = shrink(frame)
            for key in keys:
                self._put(key, small)
            self.announce()

    def take_made(self, event: ThumbnailMade) -> None:
        """Store a small picture; `announce` follows once for all events that arrived together."""
        self._put(event.key, event.frame)

    def announce(self) -> None:
        """Emit `changed` if pictures were stored since."""
        if self._has_news:
            self._has_news = False
            self.changed.emit()

    def take_failed(self, event: ThumbnailFailed) -> None:
        """Remember that a small picture cannot be made; the failure is logged, not shown."""
        self._waiting.pop(event.key, None)
        self._failed_keys.add(event.key)
        self._messages.note("A small picture could not be made.", f"{event.key}: {event.error}")

    def _seek(self, key: Hashable, session: Session, file: ThumbnailFile) -> None:
        """Look a picture up on disk; have it made if it is not there."""
        self._sought[key] = session
        self._is_sought.add(key)

        def take(found: StoredThumbnail | None) -> None:
            self._is_sought.discard(key)
            if self._sought.get(key) != session or key in self.store:
                return
            if found is None:
                self.request(key, session)
                return
            del self._sought[key]  # it is stored already
            self.store.put(key, Frame(resolve(as_still(session)), found.pixels, _NO_TIMINGS), found.signature)
            self._has_news = True
            self.announce()

        self._worker.fetch(lambda: file.get(session_digest(session)), take)

    @Slot()
    def _write(self) -> None:
        """Write the pictures that were made since."""
        entries, self._unwritten = self._unwritten, []
        file = self._file
        if file is not None and entries:
            self._worker.submit(lambda: file.put([(session_digest(session), picture) for session, picture in entries]))

    def close(self) -> None:
        """Write what is not written yet. May be called twice."""
        self._write_later.stop()
        self._write()
        if self._file is not None:
            self._worker.submit(self._file.close)

    def clear(self) -> None:
        """Drop all pictures and requests: they depend on the model."""
        self._sought.clear()
        self._is_sought.clear()
        self._renders.forget_thumbnails()
        self._failed_keys.clear()
        self._waiting.clear()
        self.store.clear()

    def _put(self, key: Hashable, frame: Frame) -> None:
        self._waiting.pop(key, None)
        self.store.put(key, frame)
        self._has_news = True
        session, signature = self._sought.pop(key, None), self.store.signature(key)
        facts = self._model.facts
        if session is not None and facts is not None and session.model.model_id == facts.model_id:
            self._unwritten.append((session, StoredThumbnail(frame.pixels, signature)))
            if not self._write_later.isActive():
                self._write_later.start()


def thumbnail_request(what: Session | RenderRequest, facts: ModelFacts) -> RenderRequest:
    """Return the request for a small picture of a session or a request: the earliest exit that is large enough."""
    if isinstance(what, Session):
        request = resolve(adapt(what, facts).session)
    else:
        transform = what.transform if facts.has_transform else None
        request = replace(what, model_id=facts.model_id, transform=transform, edits=fit_edits(what.edits, facts))
    large_enough = [side for side in facts.draft_resolutions if side >= EXIT_PX]
    # Always the picture: a layer does not identify a latent.
    resolution = draft_with_edits(min(large_enough, default=None), request.edits, facts)
    return replace(request, resolution=resolution, measure_steps=False, tap=None)

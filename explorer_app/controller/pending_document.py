"""The document that a user opened last, until it is shown: it is read first, and may then wait for its model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from explorer_app.controller.file_worker import FileWorker, Result
from explorer_app.controller.restoring import Restoring


class PendingDocument:
    """Reads one document at a time and remembers which model it needs; a newer document replaces it.

    Parameters
    ----------
    worker
        Reads: a session with thousands of kept latents takes most of a second.
    """

    def __init__(self, worker: FileWorker) -> None:
        self._worker = worker
        self._waiting: Restoring | None = None
        """Its model is being opened."""
        self._without_model: Restoring | None = None
        """No model is open, and its own was not found; shown with the next one."""
        self._unresolved: Restoring | None = None
        """Its model was not found; shown again when the user opens it."""
        self._newest = 0
        """Number of the newest reading; results of older ones are dropped."""

    def read(self, read: Callable[[], Result], take: Callable[[Result], None], path: Path | None = None) -> None:
        """Read a document in the background; `take` gets the result unless another document was opened meanwhile.

        `path` is the file that errors are about.
        """
        self.forget()
        self._unresolved = self._without_model = None
        number = self._newest
        self._worker.fetch(read, lambda result: take(result) if number == self._newest else None, about=path)

    def forget(self) -> None:
        """Drop a document that is being read or waits for a model that is being opened."""
        self._newest += 1
        self._waiting = None

    def wait_until_open(self, restoring: Restoring) -> None:
        """Hold a document until the model that is being opened is open."""
        self._waiting = restoring

    def wait_for_any(self, restoring: Restoring) -> None:
        """Hold a document until the user opens any model: none is open, and its own was not found."""
        self._without_model = restoring

    def wait_until_found(self, restoring: Restoring) -> None:
        """Hold a document, which another model shows meanwhile, until the user opens its own model."""
        self._unresolved = replace(restoring, steps=())  # they are in the history already

    def take_waiting(self) -> Restoring | None:
        """Return the document that waits for a model to be open, once."""
        waiting, self._waiting = self._waiting, None
        return waiting

    def take_for(self, model_id: str) -> Restoring | None:
        """Return the document that this model makes possible to show, once."""
        waiting, self._without_model = self.take_waiting() or self._without_model, None
        if waiting is not None:
            return waiting
        unresolved = self._unresolved
        if unresolved is None or unresolved.model.model_id != model_id:
            return None
        self._unresolved = None
        return unresolved

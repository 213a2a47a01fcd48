"""What one start keeps for the next, so that the window opens with a picture and with controls that work.

``last-model.json`` holds the facts of the model that was open, ``last-picture.jpg`` the last full picture. Both are
conveniences: a file that is missing or damaged costs a moment, and nothing is told. For the very first start, the same
two files lie beside the bundled model.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QBuffer, QObject, QTimer, Slot
from PySide6.QtGui import QImage

from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.known_model import KnownModel, known_from_json, known_to_json
from explorer_app.rendering.renderer_like import DirectionsLike
from gpu_backend import Frame, LoomError, ModelFacts, read_regular_file, write_whole

SAVE_AFTER_MS = 3000
"""A picture is written at most this often."""

MODEL_NAME, PICTURE_NAME = "last-model.json", "last-picture.jpg"
SHIPPED_MODEL, SHIPPED_PICTURE = ".start.json", ".start.jpg"
"""Endings of the files beside the bundled model."""

_MAX_NBYTES = 4 << 20
_QUALITY = 92


class LastStart(QObject):
    """Reads what the last start kept, and keeps it for the next.

    Parameters
    ----------
    bundled_model
        Its two files are taken where the folder has none.
    worker
        Encodes and writes.
    picture
        Returns the full picture on the screen; None if there is none that is worth keeping.
    """

    def __init__(
        self,
        bundled_model: Path | None,
        worker: FileWorker,
        picture: Callable[[], Frame | None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._folder: Path | None = None
        self._bundled = bundled_model
        self._worker = worker
        self._picture = picture
        self._known: KnownModel | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SAVE_AFTER_MS)
        self._timer.timeout.connect(self._save)

    def load(
        self, folder: Path | None, path: Path | None, *, has_session: bool
    ) -> tuple[KnownModel | None, QImage | None]:
        """Return what is known of the model file at a path, and the picture that was on the screen last.

        Parameters
        ----------
        folder
            Where it is kept, from now on too; None keeps nothing.
        path
            None for a start that does not open a model first.
        has_session
            Whether the last session was kept as well; without it, the picture is that of a first session.
        """
        self._folder = folder
        if path is None:
            return None, None
        is_bundled = self._bundled is not None and path.absolute() == self._bundled.absolute()
        kept = None if self._folder is None else _read(self._folder / MODEL_NAME, path)
        shipped = _read(path.with_suffix(SHIPPED_MODEL), path) if is_bundled and kept is None else None
        self._known = kept
        picture = None
        if has_session and kept is not None and self._folder is not None:
            picture = _image(self._folder / PICTURE_NAME)
        elif not has_session and is_bundled:
            picture = _image(path.with_suffix(SHIPPED_PICTURE))
        return kept or shipped, picture

    def remember_model(self, facts: ModelFacts, directions: DirectionsLike) -> None:
        """Keep what is known of the model that is open now."""
        if self._folder is None:
            return
        folder = self._folder
        before = self._known

        def write() -> None:
            with contextlib.suppress(OSError):
                known = KnownModel.of(facts, directions)
                if known != before or not (folder / MODEL_NAME).exists():
                    folder.mkdir(parents=True, exist_ok=True)
                    (folder / PICTURE_NAME).unlink(missing_ok=True)  # of another model
                    write_whole(folder / MODEL_NAME, known_to_json(known))

        self._worker.submit(write)

    def frame_arrived(self) -> None:
        """Keep the picture soon; called for every frame."""
        if self._folder is not None and not self._timer.isActive():
            self._timer.start()

    def flush(self) -> None:
        """Keep the picture now, if one is waiting to be kept."""
        if self._timer.isActive():
            self._timer.stop()
            self._save()

    @Slot()
    def _save(self) -> None:
        frame = self._picture()
        if frame is None or self._folder is None:
            return
        path = self._folder / PICTURE_NAME

        def write() -> None:
            image = QImage(frame.pixels.data, frame.width, frame.height, frame.width * 4, QImage.Format.Format_RGB32)
            buffer = QBuffer()
            buffer.open(QBuffer.OpenModeFlag.WriteOnly)
            if image.save(buffer, "JPEG", _QUALITY):  # type: ignore[call-overload] # the stub asks for bytes
                with contextlib.suppress(OSError):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    write_whole(path, bytes(buffer.data().data()))

        self._worker.submit(write)


def _read(place: Path, path: Path) -> KnownModel | None:
    """Return what a file tells of the model at a path."""
    with contextlib.suppress(OSError, LoomError, ValueError, TypeError, RecursionError):
        return known_from_json(read_regular_file(place, _MAX_NBYTES, "facts of a model")).at(path)
    return None


def _image(place: Path) -> QImage | None:
    image = QImage(str(place)) if place.exists() else QImage()
    return None if image.isNull() else image

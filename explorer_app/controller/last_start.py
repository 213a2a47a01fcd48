"""Caches model facts and the last picture, so that the next start opens with a picture and usable controls.

``last-model.json`` holds the facts of the open model, ``last-picture.jpg`` the last full picture. Both are only caches:
a missing or damaged file slows the start, and the failure is logged, not shown. The bundled model ships with the same
two files for the very first start.
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
"""Suffixes of the cache files that ship with the bundled model."""

_MAX_NBYTES = 4 << 20
_MAX_PICTURE_NBYTES = 32 << 20
_QUALITY = 92


class LastStart(QObject):
    """Reads the cache of the previous start and writes the one for the next.

    Parameters
    ----------
    bundled_model
        Path of the bundled model. Its two cache files are the fallback when the folder has none.
    worker
        Executor that encodes and writes the files.
    picture
        Returns the full picture on the screen; None if there is no full picture.
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
        """Return the cached facts of a model file, and the last picture.

        Parameters
        ----------
        folder
            Cache folder for this call and for later writes; None disables the cache.
        path
            Model file; None if the start does not open a model.
        has_session
            Whether the last session was restored; otherwise the picture is that of a new session.
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
        """Write the facts of the open model."""
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
        """Schedule a write of the picture; called for every frame."""
        if self._folder is not None and not self._timer.isActive():
            self._timer.start()

    def flush(self) -> None:
        """Write the picture now if a write is scheduled."""
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
            if image.save(buffer, "JPEG", _QUALITY):  # type: ignore[call-overload] # the stub expects bytes
                with contextlib.suppress(OSError):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    write_whole(path, bytes(buffer.data().data()))

        self._worker.submit(write)


def _read(place: Path, path: Path) -> KnownModel | None:
    """Return the cached facts of the model at `path`; None if the cache does not match it or cannot be read."""
    with contextlib.suppress(OSError, LoomError, ValueError, TypeError, RecursionError):
        return known_from_json(read_regular_file(place, _MAX_NBYTES, "facts of a model")).at(path)
    return None


def _image(place: Path) -> QImage | None:
    try:
        content = read_regular_file(place, _MAX_PICTURE_NBYTES, "a picture")
        # Without the format, Qt loads the plugins of all formats to find it out; the stub expects bytes.
        image = QImage.fromData(content, "JPEG")  # type: ignore[arg-type]
    except (OSError, LoomError):
        return None
    return None if image.isNull() else image

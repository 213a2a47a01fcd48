"""Files dragged over the window: the file, and the effect of dropping it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QDropEvent

from explorer_app.audio.decoding import SUFFIXES
from explorer_app.exporting.formats.picture_format import PICTURE_ENDINGS
from explorer_app.exporting.sequence import MANIFEST_SUFFIX
from gpu_backend import PHOTO_SUFFIXES


def dropped(event: QDropEvent) -> Path | None:
    """Return the first file of a drop."""
    for url in event.mimeData().urls():
        if url.isLocalFile():
            return Path(url.toLocalFile())
    return None


def dropped_sounds(event: QDropEvent) -> list[Path]:
    """Return a drop's sound files, and its folders for their sound files."""
    paths = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
    return [path for path in paths if _is_sound(path)]


def _is_sound(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES or path.is_dir()


def accept_copy(event: QDropEvent) -> None:
    """Accept a drop as a copy, since the file is only read: after a move, its source removes it."""
    event.setDropAction(Qt.DropAction.CopyAction)
    event.accept()


def drop_text(event: QDropEvent) -> str:
    """Return a sentence for the effect of a drop with a file; any unknown suffix is opened as a model."""
    sounds, path = dropped_sounds(event), dropped(event)
    if sounds:
        others = f" and {len(sounds) - 1} more" if len(sounds) > 1 else ""
        return f"Drop to add {sounds[0].name}{others} to the timeline"
    return "" if path is None else _file_text(path)


def _file_text(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix in PICTURE_ENDINGS:
        return f"Drop to restore the picture {path.name}, or to find the latent of a photo"
    if suffix in PHOTO_SUFFIXES:
        return f"Drop to find the latent of {path.name}"
    if suffix in (".npz", ".npy"):
        return f"Drop to show the latent {path.name}"
    if suffix == ".loom":
        return f"Drop to open the session {path.name}"
    if path.name.endswith(MANIFEST_SUFFIX):
        return f"Drop to resume the export {path.name.removesuffix(MANIFEST_SUFFIX)}"
    return f"Drop to open the model {path.name}"

"""Connects the library to what is kept, to the mix, the timeline and files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from explorer_app.controller import Editing, Engine, Files, Mixing, Playback
from explorer_app.rendering.thumbnails import w_signature
from explorer_app.window.canvas.comparing import Comparing
from explorer_app.window.shell.dialogs import Dialogs
from explorer_app.window.shell.file_commands import LATENT_FILES
from explorer_app.window.shell.recipe_clipboard import RecipeClipboard
from explorer_app.window.shell.thumbnail_dispatcher import ThumbnailDispatcher

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from explorer_app.window.library.library_panel import LibraryPanel

_NAME = "library"
"""Under which the panel's small pictures are stored."""


class LibraryLink(QObject):
    """Commands on kept pictures."""

    def __init__(
        self,
        panel: LibraryPanel,
        editing: Editing,
        mixing: Mixing,
        playback: Playback,
        engine: Engine,
        files: Files,
        thumbnails: ThumbnailDispatcher,
        comparing: Comparing,
        clipboard: RecipeClipboard,
        dialogs: Dialogs,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._panel = panel
        self._editing = editing
        self._model = engine.model
        self._preview = engine.preview
        self._files = files
        self._thumbnails = thumbnails
        self._clipboard = clipboard
        self._dialogs = dialogs
        thumbnails.serve(panel, _NAME, on_disk=True)
        panel.signature_of = self._signature_of
        panel.shown_signature = self._shown_signature
        panel.kept_requested.connect(editing.go_to_kept)
        panel.rename_requested.connect(editing.kept.rename)
        panel.tags_requested.connect(editing.kept.tag)
        panel.remove_requested.connect(editing.kept.drop)
        panel.mix_requested.connect(mixing.add_kept)
        panel.key_requested.connect(playback.keep_entries)
        panel.compare_requested.connect(comparing.compare)
        panel.copy_requested.connect(self._copy)
        panel.export_requested.connect(self._export)
        panel.import_requested.connect(self._import)
        engine.model_changed.connect(self._show_model)
        editing.history_changed.connect(self._show)
        self._show_model()
        self._show()

    @Slot()
    def _show_model(self) -> None:
        self._panel.grid.forget_pictures()
        self._panel.set_has_model(self._model.facts is not None)

    @Slot()
    def _show(self) -> None:
        self._panel.show_history(self._editing.history)

    def _signature_of(self, number: int) -> NDArray[np.float16] | None:
        return self._thumbnails.signature(_NAME, (_NAME, number))

    def _shown_signature(self) -> NDArray[np.float16] | None:
        frame = self._preview.frame
        return None if frame is None or frame.ws is None else w_signature(frame.ws)

    @Slot(int, str)
    def _copy(self, number: int, kind: str) -> None:
        entry = self._editing.history.entry(number)
        if entry is not None:
            self._clipboard.copy(entry.session, "python" if kind == "python" else "command")

    @Slot(object)
    def _export(self, numbers: tuple[int, ...]) -> None:
        entries = [entry for number in numbers if (entry := self._editing.history.entry(number)) is not None]
        if entries:
            name = "latents.npz" if len(entries) > 1 else f"{_file_name(entries[0].label)}.npz"
            pairs = [(entry.label, entry.session) for entry in entries]
            answer = partial(self._files.export_latents, pairs)
            self._dialogs.choose_target("latent", "Export latents", "Latents (*.npz)", name, answer)

    @Slot()
    def _import(self) -> None:
        self._dialogs.choose_file("latent", "Import latents", LATENT_FILES, self._take)

    def _take(self, path: Path) -> None:
        self._files.import_kept(path)


def _file_name(label: str) -> str:
    """Return a label as a file name that every system takes."""
    return "".join(letter if letter.isalnum() or letter in "-_ " else "-" for letter in label).strip()[:60] or "latent"

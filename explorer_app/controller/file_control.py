"""What the window may ask about files: models, sessions, pictures and sequences."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Slot

import gpu_backend
from explorer_app.controller.documents import Documents
from explorer_app.controller.engine_control import EngineControl
from explorer_app.exporting.sequence import MANIFEST_SUFFIX, SequenceSettings
from explorer_app.session.resolve import resolve


class FileControl(EngineControl):
    """Opens and saves. `Controller` adds gestures and the history."""

    _documents: Documents

    # -- models -----------------------------------------------------------------------------------------------------

    def open_model(self, path: Path | str | None = None) -> None:
        """Read a model file in the background and show it when it is ready; None opens the bundled model.

        The model that is open stays and answers until then, and for good if the file is refused.
        """
        if self._exports.progress is not None:
            self._messages.warning("An export is running with this model; wait for its end or cancel it, then open.")
            return
        self._documents.forget()
        self._models.open(None if path is None else Path(path))

    @Slot()
    def cancel_loading(self) -> None:
        """Stop opening; the model that is open stays."""
        self._documents.forget()
        self._models.cancel()

    # -- files ------------------------------------------------------------------------------------------------------

    def open_file(self, path: Path | str) -> None:
        """Open whatever this is by its name, in the background: a picture, a session, a manifest, else a model."""
        path = Path(path)
        if path.name.endswith(MANIFEST_SUFFIX):
            self.resume_export(path)
        elif path.suffix.lower() == ".png":
            self.open_picture(path)
        elif path.suffix.lower() in (".npz", ".npy"):
            self.import_latent(path)
        elif path.suffix.lower() == ".loom":
            self.open_session(path)
        else:
            self.open_model(path)

    def save_picture(self, path: Path | str) -> None:
        """Write the picture in full with its recipe, in the background; a message says that it is there."""
        if self.facts is None:
            self._messages.warning("There is no picture to save: open a model first.")
            return
        effective = self.effective
        self._exports.save_picture(Path(path), resolve(effective), effective, self.frame)

    def open_picture(self, path: Path | str) -> None:
        """Restore what a saved picture remembers; opens its model if that is known to be at hand, says so if not."""
        self._documents.open_picture(Path(path))

    def save_session(self, path: Path | str) -> None:
        """Write the session and what was kept to a `.loom` file; a message says that it is there."""
        self._documents.save_session(Path(path))

    def open_session(self, path: Path | str) -> None:
        """Restore a `.loom` file, and keep what was kept in it; opens its model as `open_picture` does."""
        self._documents.open_session(Path(path))

    def start_export(self, settings: SequenceSettings) -> None:
        """Write a sequence in the background; the preview goes on. One sequence at a time."""
        self._exports.start(settings, self.facts)

    @Slot(object)
    def resume_export(self, manifest: Path | str) -> None:
        """Go on with the sequence that a manifest describes; opens its model as `open_picture` does."""
        self._documents.resume_export(Path(manifest))

    def import_latent(self, path: Path | str) -> None:
        """Show w rows from a file (.npz, .npy, .pt) in place of the seed plane's point, as one undo step."""
        self._documents.import_latent(Path(path))

    def export_latent(self, path: Path | str) -> None:
        """Write the w rows of the picture to a .npz, .npy or .pt file in the background; a message says it is there."""
        path = Path(path)
        stored = self.shown_latent
        if stored is None:
            self._messages.warning("The latent can be exported once its picture is there; wait a moment.")
            return
        self._worker.submit(
            lambda: gpu_backend.write_latent(path, stored),
            done=f"Saved {path.name}.",
            failed=f"{path.name} could not be saved",
        )

    @Slot()
    def cancel_export(self) -> None:
        """Stop the sequence and give up the frame that is being made; the same export goes on there another time."""
        self._exports.cancel()

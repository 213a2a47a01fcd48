"""Commands that open, save and export."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from explorer_app.controller import Editing, Engine, ExportQueueController, Files, PictureSaver, Sounds, VariationGrid
from explorer_app.exporting.formats.picture_format import FORMATS, PICTURE_ENDINGS, FormatName
from explorer_app.exporting.sequence import MANIFEST_SUFFIX
from explorer_app.exporting.sheet import SheetDocument
from explorer_app.rendering.renderer_like import PROCESSOR_ID
from explorer_app.session.session import Session
from explorer_app.settings import Settings
from explorer_app.window.shell.dialogs import Dialogs
from explorer_app.window.shell.thumbnail_dispatcher import ThumbnailDispatcher
from gpu_backend import PHOTO_SUFFIXES, plane_seed

if TYPE_CHECKING:
    from explorer_app.window.export.export_keys import ExportKey

MODEL_FILES = "Models (*.pkl *.pt *.pth *.safetensors);;All files (*)"
SESSION_FILES = "Sessions (*.loom)"
MANIFEST_FILES = f"Manifests of exports (*{MANIFEST_SUFFIX})"
LATENT_FILES = "Latents (*.npz *.npy *.pt)"
PICTURE_FILES = f"Pictures ({' '.join(f'*{ending}' for ending in PICTURE_ENDINGS)})"
PHOTO_FILES = f"Pictures ({' '.join(f'*{ending}' for ending in PHOTO_SUFFIXES)})"
SHEETS = "PNG (*.png);;JPEG (*.jpg *.jpeg)"
_SAVED_FORMATS: tuple[FormatName, ...] = ("png", "jpeg", "webp", "tiff", "exr")
SAVED_PICTURES = ";;".join(
    f"{FORMATS[name].label} ({' '.join(f'*{ending}' for ending in FORMATS[name].endings)})" for name in _SAVED_FORMATS
)


class FileCommands:
    """Models, sessions, pictures, latents and exports."""

    def __init__(
        self,
        dialogs: Dialogs,
        files: Files,
        export: ExportQueueController,
        pictures: PictureSaver,
        editing: Editing,
        engine: Engine,
        settings: Settings,
        thumbnails: ThumbnailDispatcher,
        grid: VariationGrid,
        sounds: Sounds,
    ) -> None:
        files.sheet_opened.connect(self.show_sheet)
        self._sounds = sounds
        self._grid = grid
        self._dialogs = dialogs
        self._files = files
        self._export = export
        self._pictures = pictures
        self._editing = editing
        self._engine = engine
        self._settings = settings
        self._thumbnails = thumbnails
        self._last_path: Sequence[ExportKey] = ()
        """Path of the last export, if the user put it together."""

    def open_model(self) -> None:
        """Choose a model file."""
        self._dialogs.choose_file("model", "Open model", MODEL_FILES, self._files.open_model)

    def open_bundled(self) -> None:
        """Open the model that ships with the program."""
        self._files.open_model(None)

    def new_session(self) -> None:
        """Begin again with the open model."""
        self._files.new_session()

    def open_session(self) -> None:
        """Choose a session file."""
        self._dialogs.choose_file("session", "Open session", SESSION_FILES, self._files.open_session)

    def save_session(self) -> None:
        """Choose a file for the session, at first the one that was opened or saved last, and save it."""
        project = self._files.project or Path("session.loom")
        folder = project.parent if project.is_absolute() else None
        self._dialogs.choose_target(
            "session", "Save session", SESSION_FILES, project.name, self._files.save_session, folder=folder
        )

    def import_latent(self) -> None:
        """Choose a file of w rows and show it as the latent."""
        self._dialogs.choose_file("latent", "Import latent", LATENT_FILES, self._files.import_latent)

    def export_latent(self) -> None:
        """Choose a file for the picture's w rows and save them."""
        name = f"{picture_name(self._editing.session)}.npz"
        self._dialogs.choose_target("latent", "Export latent", LATENT_FILES, name, self._files.export_latent)

    def open_picture(self) -> None:
        """Choose a saved picture and restore its session."""
        self._dialogs.choose_file("picture", "Restore from picture", PICTURE_FILES, self._files.open_picture)

    def from_picture(self) -> None:
        """Choose a photo and find its latent."""
        self._dialogs.choose_file("photo", "From a picture", PHOTO_FILES, self._files.open_photo)

    def show_sheet(self, path: Path, sheet: SheetDocument) -> None:
        """Show a sheet that was opened, and open the picture that is clicked."""
        from explorer_app.window.export.sheet_dialog import SheetDialog  # dialogs are imported when they are opened

        dialog = SheetDialog(path, sheet, self._dialogs.window)

        def take(place: int) -> None:
            document = sheet.cells[place]
            if document is not None:
                self._files.take_picture(path, document)

        dialog.chosen.connect(take)
        self._dialogs.show(dialog)

    def save_picture(self) -> None:
        """Choose a file for the picture and save it."""
        name = f"{picture_name(self._editing.session)}.png"
        self._dialogs.choose_target("picture", "Save picture", SAVED_PICTURES, name, self._pictures.save)

    def save_sheet(self) -> None:
        """Choose a file for the grid of variations and save all its cells as one picture."""
        self._dialogs.choose_target("picture", "Save sheet", SHEETS, "variations.png", self._grid.save_sheet)

    def export_sequence(self) -> None:
        """Open the export dialog."""
        facts = self._engine.model.facts
        if facts is None:
            return
        from explorer_app.window.export.export_dialog import ExportDialog  # dialogs are imported when they are opened

        frame = self._engine.preview.frame
        frame_ms = None if frame is None or frame.is_draft or frame.tap is not None else frame.timings.total_ms
        dialog = ExportDialog(
            self._editing.session,
            self._editing.history,
            facts,
            self._settings,
            self._dialogs.window,
            frame_ms=frame_ms,
            gpu_count=self._gpu_count,
            envelopes_of=self._sounds.envelopes_of,
            unfinished_in=self._export.unfinished_in,
            project="" if self._files.project is None else self._files.project.stem,
            last_path=self._last_path,
        )

        def keep_path() -> None:
            self._last_path = dialog.path.own_path

        dialog.export_requested.connect(keep_path)
        dialog.export_requested.connect(self._export.start)
        dialog.picture_requested.connect(self._pictures.save)
        self._export.encoders_found.connect(dialog.files.show_hardware)
        self._export.find_encoders()
        self._export.jobs_changed.connect(dialog.jobs_changed)
        self._sounds.changed.connect(dialog.sounds_changed)
        self._export.refresh()  # another window may have taken the name that is offered
        self._thumbnails.serve(dialog.path.keys, "export")
        self._thumbnails.serve(dialog.ends, "export ends")
        dialog.path.keys.request_thumbnails()
        self._dialogs.open(dialog)

    def show_exports(self) -> None:
        """Open the list of exports, or bring it to the front; the window stays usable beside it."""
        from explorer_app.window.export.exports_dialog import ExportsDialog

        dialog = self._dialogs.window.findChild(ExportsDialog)
        if dialog is None:
            dialog = ExportsDialog(self._export, self._settings, self._dialogs.window, gpu_count=self._gpu_count)
            self._dialogs.show(dialog)
        dialog.raise_()
        dialog.activateWindow()

    @property
    def _gpu_count(self) -> int | None:
        """GPUs of this machine; None if they are not known yet."""
        devices = self._engine.devices.state.devices
        return sum(device.id != PROCESSOR_ID for device in devices) if devices else None

    def resume_export(self) -> None:
        """Choose the manifest of an interrupted export and resume it."""
        self._dialogs.choose_file("export", "Resume export", MANIFEST_FILES, self._export.resume)

    def cancel_export(self) -> None:
        """Cancel the running export."""
        self._export.cancel()

    def quit(self) -> None:
        """Close the window."""
        self._dialogs.window.close()


def picture_name(session: Session) -> str:
    """Return a file name without suffix for a session's picture: "seed0012"; a layer appends "-b64.conv1"."""
    x, y = session.position.x, session.position.y
    is_seed = not session.pinned_blend and x == round(x) and y == round(y)
    name = f"seed{plane_seed(x, y):04d}" if is_seed else "picture"
    return name if session.tap is None else f"{name}-{session.tap.layer}"

"""What the files of an export are called: folder, name, and whether they may replace others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from PySide6.QtCore import QObject, QSignalBlocker, Signal
from PySide6.QtWidgets import QCheckBox, QFormLayout, QLineEdit, QWidget

from explorer_app.exporting.claim import place_objection
from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.export_list import JobState
from explorer_app.exporting.formats.picture_format import PictureFormat
from explorer_app.exporting.sequence import MANIFEST_SUFFIX, SequenceSettings, check_name, frame_name
from explorer_app.settings import Settings
from explorer_app.window.export.export_keys import free_name
from explorer_app.window.export.folder_field import FolderField

_UNFINISHED: Mapping[JobState, str] = MappingProxyType(
    {"running": "is running", "waiting": "is waiting", "paused": "is paused"}
)


_FIRST_NAME = "walk"
"""What the first export is called."""


class NameChoices(QObject):
    """The rows of the export dialog that name the files.

    Parameters
    ----------
    settings
        Stores the choices.
    parent
        The dialog.
    unfinished_in
        Returns the names of the exports into a folder that run, wait or are paused.
    project
        Name of the open project; empty without one.
    """

    changed = Signal()

    def __init__(
        self,
        settings: Settings,
        parent: QWidget,
        unfinished_in: Callable[[Path], Mapping[str, JobState]],
        project: str = "",
    ) -> None:
        super().__init__(parent)
        self._settings = settings
        self._unfinished_in = unfinished_in
        self._project = project
        self._offered = ""
        """The name that was offered; one that the user typed stays."""
        folder = str(settings.folder("export") or Path.home() / "latentloom")
        tip = "Folder for the files; it is created if needed."
        self.folder = FolderField(folder, tip, "Folder for the sequence", parent)
        self.name = QLineEdit(parent)
        self.name.setAccessibleName("Name")
        self.name.setToolTip("Name of the files; the frames of a sequence are numbered.")
        self.overwrite = QCheckBox("Replace existing files", parent)
        self.overwrite.setToolTip("If off, a stopped export is resumed, and other files are kept.")
        self.folder.changed.connect(self.changed)
        self.name.textChanged.connect(self.changed)
        self.overwrite.toggled.connect(self.changed)

    def add_rows(self, form: QFormLayout) -> None:
        """Add the rows to the dialog's form."""
        form.addRow("Folder", self.folder)
        form.addRow("Name", self.name)
        form.addRow("", self.overwrite)

    @property
    def stem(self) -> str:
        """The name as entered."""
        return self.name.text().strip()

    def offer(self, form: PictureFormat, single_ending: str | None) -> None:
        """Choose a name that nothing in the folder has, unless the user typed one.

        Parameters
        ----------
        form
            Of numbered frames.
        single_ending
            Ending of the one file, if it is one.
        """
        if self.name.text() != self._offered:
            return
        folder = self.folder.path
        unfinished = self._unfinished_in(folder)

        def is_taken(name: str) -> bool:
            first = folder / (frame_name(name, form, 0) if single_ending is None else f"{name}{single_ending}")
            return name in unfinished or first.exists() or (folder / f"{name}{MANIFEST_SUFFIX}").exists()

        self._offered = free_name(self._usual_name(), is_taken)
        with QSignalBlocker(self.name):
            self.name.setText(self._offered)

    def _usual_name(self) -> str:
        """Return the last name that was chosen in this project, otherwise the project's own."""
        last = self._settings.choice("export.name")
        if self._project and self._project != self._settings.choice("export.project"):
            try:
                check_name(self._project)
            except ExportError:
                pass
            else:
                return self._project
        return last or _FIRST_NAME

    def objection(self, wanted: SequenceSettings) -> str:
        """Return why these files cannot go there; empty if they can, or continue those that are there."""
        state = self._unfinished_in(wanted.folder).get(wanted.name)
        may_continue = state == "paused" and (wanted.overwrite or wanted.manifest_path.exists())
        if state is not None and not may_continue:
            return f"The export “{wanted.name}” into this folder {_UNFINISHED[state]}; choose another name."
        return place_objection(wanted)

    def remember(self) -> None:
        """Store the choices in the settings."""
        self._settings.choose("export.name", self.stem)
        self._settings.choose("export.project", self._project)
        self._settings.remember_folder("export", self.folder.path)

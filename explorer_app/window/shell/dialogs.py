"""Opens dialogs and file choosers over the main window. None is a modal loop: each reports its result by a signal."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QDialog, QFileDialog, QWidget

from explorer_app.settings import Settings
from explorer_app.window.controls.screen_fit import fit_to_screen


class Dialogs:
    """Opens dialogs.

    Parameters
    ----------
    window
        Their parent.
    settings
        Stores the folder that was chosen last for each purpose.
    """

    def __init__(self, window: QWidget, settings: Settings) -> None:
        self.window = window
        self._settings = settings

    def open(self, dialog: QDialog) -> None:
        """Open a dialog; if one of its kind is already open, raise that one instead."""
        for other in self.window.findChildren(type(dialog)):
            if other is not dialog and other.isVisible():
                dialog.reject()  # `finished` ends what was connected for as long as the dialog is open
                dialog.deleteLater()
                other.raise_()
                other.activateWindow()
                return
        fit_to_screen(dialog)
        dialog.open()

    def show(self, dialog: QDialog) -> None:
        """Show a dialog beside which the window stays usable."""
        fit_to_screen(dialog)
        dialog.show()

    def choose_file(self, purpose: str, title: str, files: str, then: Callable[[Path], None]) -> None:
        """Choose an existing file and pass it to `then`; `files` is Qt's name filter."""
        chooser = self._chooser(purpose, title, files, then)
        chooser.setFileMode(QFileDialog.FileMode.ExistingFile)
        self.open(chooser)

    def choose_folder(self, purpose: str, title: str, then: Callable[[Path], None]) -> None:
        """Choose a folder and pass it to `then`."""
        chooser = QFileDialog(self.window, title, str(self._settings.folder(purpose) or Path.home()))
        chooser.setFileMode(QFileDialog.FileMode.Directory)
        chooser.setOption(QFileDialog.Option.ShowDirsOnly)

        def chosen(name: str) -> None:
            self._settings.remember_folder(purpose, Path(name))
            then(Path(name))

        chooser.fileSelected.connect(chosen)
        chooser.finished.connect(chooser.deleteLater)
        self.open(chooser)

    def choose_target(
        self,
        purpose: str,
        title: str,
        files: str,
        name: str,
        then: Callable[[Path], None],
        *,
        folder: Path | None = None,
    ) -> None:
        """Choose a file to write, `name` in `folder` or that of the purpose at first, and pass it to `then`."""
        chooser = self._chooser(purpose, title, files, then)
        if folder is not None and folder.is_dir():
            chooser.setDirectory(str(folder))
        chooser.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        chooser.setDefaultSuffix(_suffix(name, files))
        chooser.filterSelected.connect(lambda chosen: chooser.setDefaultSuffix(_first_suffix(chosen)))
        chooser.selectFile(name)
        self.open(chooser)

    def _chooser(self, purpose: str, title: str, files: str, then: Callable[[Path], None]) -> QFileDialog:
        folder = self._settings.folder(purpose)
        chooser = QFileDialog(self.window, title, str(folder or Path.home()), files)

        def chosen(name: str) -> None:
            self._settings.remember_folder(purpose, Path(name).parent)
            then(Path(name))

        chooser.fileSelected.connect(chosen)
        chooser.finished.connect(chooser.deleteLater)
        return chooser


def _suffix(name: str, files: str) -> str:
    """Return what a file of this name ends with: "patches.json" if `files` has a filter with that, else "json"."""
    known = [suffix for suffix in re.findall(r"\*\.([^\s)]+)", files) if name.endswith(f".{suffix}")]
    return max(known, key=len, default=Path(name).suffix.lstrip("."))


def _first_suffix(name_filter: str) -> str:
    """Return "jpg" of "JPEG (*.jpg *.jpeg)"."""
    return name_filter.rpartition("(*.")[2].split()[0].rstrip(")")

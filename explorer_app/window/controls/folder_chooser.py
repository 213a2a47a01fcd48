"""Chooses a folder for a text field."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QLineEdit


def choose_folder(title: str, field: QLineEdit) -> None:
    """Open a dialog of the field's window that enters the chosen folder; it begins with the field's own."""
    chooser = QFileDialog(field.window(), title, field.text())
    chooser.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    chooser.setFileMode(QFileDialog.FileMode.Directory)
    chooser.setOption(QFileDialog.Option.ShowDirsOnly)
    chooser.fileSelected.connect(field.setText)
    chooser.open()

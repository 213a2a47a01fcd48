"""Where an export is rendered: this device, all GPUs of this machine, or a farm."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QComboBox, QFileDialog, QFormLayout, QHBoxLayout, QLineEdit, QPushButton, QWidget

from explorer_app.exporting.export_list import ExportPlace, Where
from explorer_app.farm.address import DEFAULT_PORT, check_address
from explorer_app.farm.errors import FarmError, require_farm_extra
from explorer_app.farm.keys import default_keys_path
from explorer_app.settings import Settings
from explorer_app.window.look import theme

_PLACES: tuple[tuple[Where, str, str], ...] = (
    ("here", "This device", "The device that renders the picture; the preview goes on."),
    ("gpus", "All GPUs of this machine", "A process for each GPU renders a part of the frames."),
    ("farm", "A farm", "GPUs of other machines: `latentloom farm up` starts a farm, `farm join` adds a machine."),
)


class PlaceChoices(QObject):
    """The rows of the export dialog that say where to render.

    Parameters
    ----------
    settings
        Stores the choices.
    parent
        The dialog.
    gpu_count
        GPUs of this machine; None if it is not known yet.
    """

    changed = Signal()

    def __init__(self, settings: Settings, parent: QWidget, *, gpu_count: int | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._form: QFormLayout | None = None
        self._of_others: int | None = None
        """While a still is shown, the choice of other exports."""
        self.where = QComboBox(parent)
        self.where.setAccessibleName("Where")
        for where, label, tip in _PLACES:
            if where != "gpus" or gpu_count is None or gpu_count > 1:
                self.where.addItem(label, where)
                self.where.setItemData(self.where.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
        self.where.setCurrentIndex(max(0, self.where.findData(settings.choice("export.where"))))
        self.address = QLineEdit(settings.choice("export.farm"), parent)
        self.address.setPlaceholderText("Host, or host:port")
        self.address.setAccessibleName("Farm")
        self.address.setToolTip(
            f"Where the farm listens, such as 192.168.1.20; port {DEFAULT_PORT} unless it is stated."
        )
        self.keys = QLineEdit(settings.choice("export.keys"), parent)
        self.keys.setPlaceholderText(default_keys_path().name)
        self.keys.setAccessibleName("Keys")
        self.keys.setToolTip(f"The farm's keys; without a file, {default_keys_path()}.")
        self.choose_keys = QPushButton("Choose…", parent)
        self.choose_keys.setAutoDefault(False)
        self.choose_keys.setToolTip("Choose the file of the keys, which `latentloom farm keys` made.")
        self.choose_keys.clicked.connect(self._choose_keys)
        self._keys_row = QWidget(parent)
        row = QHBoxLayout(self._keys_row)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.px(6))
        row.addWidget(self.keys, 1)
        row.addWidget(self.choose_keys)
        self.where.currentIndexChanged.connect(self._where_changed)
        self.address.textChanged.connect(self.changed)
        self.keys.textChanged.connect(self.changed)

    @property
    def place(self) -> ExportPlace:
        """What was chosen."""
        where = cast("Where", self.where.currentData())
        if where != "farm":
            return ExportPlace(where)
        return ExportPlace(where, self.address.text().strip(), self.keys.text().strip())

    @property
    def objection(self) -> str:
        """A sentence that explains why the choices are invalid; empty if they are valid."""
        place = self.place
        if place.where == "here":
            return ""
        try:
            require_farm_extra()
            if place.where == "farm" and not place.address:
                return "Enter where the farm listens, such as 192.168.1.20."
            if place.where == "farm":
                check_address(place.address)
        except FarmError as error:
            return error.sentence
        if place.keys and not Path(place.keys).expanduser().is_file():
            return f"There is no file of keys at {place.keys}; `latentloom farm keys` makes one."
        return ""

    def add_rows(self, form: QFormLayout) -> None:
        """Add the rows to the dialog's form."""
        self._form = form
        form.addRow("Where", self.where)
        form.addRow("Farm", self.address)
        form.addRow("Keys", self._keys_row)
        self._where_changed()

    def show_still(self, is_still: bool) -> None:
        """Start at this device for a still, whose file is soon there, and at the former choice for other exports."""
        if is_still == (self._of_others is not None):
            return
        former, self._of_others = self._of_others, self.where.currentIndex() if is_still else None
        self.where.setCurrentIndex(former or 0)

    def remember(self) -> None:
        """Store the choices in the settings."""
        place = self.place
        self._settings.choose("export.where", place.where)
        if place.where == "farm":
            self._settings.choose("export.farm", place.address)
            self._settings.choose("export.keys", place.keys)

    def _where_changed(self) -> None:
        self.where.setToolTip(str(self.where.currentData(Qt.ItemDataRole.ToolTipRole)))
        is_farm = self.where.currentData() == "farm"
        if self._form is not None:
            self._form.setRowVisible(self.address, is_farm)
            self._form.setRowVisible(self._keys_row, is_farm)
        self.changed.emit()

    def _choose_keys(self) -> None:
        chooser = QFileDialog(self._keys_row, "Keys of the farm", self.keys.text() or str(default_keys_path().parent))
        chooser.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        chooser.setFileMode(QFileDialog.FileMode.ExistingFile)
        chooser.fileSelected.connect(self.keys.setText)
        chooser.open()

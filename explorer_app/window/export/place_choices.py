"""Where an export is rendered: this device, all GPUs of this machine, or a farm."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QComboBox, QFileDialog, QFormLayout, QHBoxLayout, QLineEdit, QPushButton, QWidget

from explorer_app.exporting.export_list import ExportPlace, Where
from explorer_app.farm.address import DEFAULT_PORT, check_address, is_loopback
from explorer_app.farm.errors import FarmError, require_farm_extra
from explorer_app.farm.keys import default_keys_path
from explorer_app.settings import Settings
from explorer_app.window.look import theme
from gpu_backend import is_regular_file

_PLACES: tuple[tuple[Where, str, str], ...] = (
    ("here", "This device", "The device that renders the picture; the preview continues."),
    ("gpus", "All GPUs of this machine", "One process per GPU; each renders a part of the frames."),
    ("farm", "A farm", "GPUs of other machines: `latentloom farm up` starts a farm, `farm join` adds a machine."),
)

_PRIORITIES = ((10, "High"), (0, "Normal"), (-10, "Low"))


def _keys_objection(place: ExportPlace) -> str:
    """Return why the keys of a farm cannot be used, as far as a quick look tells; empty if they can.

    Raises
    ------
    FarmError
        If its address is invalid.
    """
    host, _, is_plain = check_address(place.address)
    path = Path(os.path.expanduser(place.keys)) if place.keys else default_keys_path()
    if is_regular_file(path):
        return ""
    if place.keys:
        return f"There is no key file at {place.keys}; `latentloom farm keys` makes one."
    if is_plain or is_loopback(host):  # for this machine, keys are made when they are needed
        return ""
    return f"There are no keys of a farm at {path}; `latentloom farm keys` makes them on the machine of the farm."


class PriorityBox(QComboBox):
    """The priority of a job on a farm. `what` follows the words: " priority" where no label says what is chosen."""

    def __init__(self, parent: QWidget | None = None, what: str = "") -> None:
        super().__init__(parent)
        self._what = what
        self.setAccessibleName("Priority")
        self.setToolTip("On a shared farm, frames of jobs with a higher priority come first.")
        for number, label in _PRIORITIES:
            self.addItem(f"{label}{what}", number)
        self.show_priority(0)

    @property
    def priority(self) -> int:
        """What was chosen."""
        return int(self.currentData())

    def show_priority(self, priority: int) -> None:
        """Show a priority; one that `latentloom farm priority` has set may be any number."""
        place = self.findData(priority)
        if place < 0:
            self.addItem(f"{priority:+d}{self._what}", priority)
            place = self.count() - 1
        self.setCurrentIndex(place)


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
        self.address.setToolTip(f"Address of the farm, such as 192.168.1.20; the default port is {DEFAULT_PORT}.")
        self.keys = QLineEdit(settings.choice("export.keys"), parent)
        self.keys.setPlaceholderText(default_keys_path().name)
        self.keys.setAccessibleName("Keys")
        self.keys.setToolTip(f"The farm's keys; without a file, {default_keys_path()}.")
        self.choose_keys = QPushButton("Choose…", parent)
        self.choose_keys.setAutoDefault(False)
        self.choose_keys.setToolTip("Choose the key file that `latentloom farm keys` made.")
        self.choose_keys.clicked.connect(self._choose_keys)
        self.priority = PriorityBox(parent)
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
        return ExportPlace(where, self.address.text().strip(), self.keys.text().strip(), self.priority.priority)

    @property
    def objection(self) -> str:
        """A sentence that explains why the choices are invalid; empty if they are valid."""
        place = self.place
        if place.where == "here":
            return ""
        try:
            require_farm_extra()
            if place.where == "farm" and not place.address:
                return "Enter the address of the farm, such as 192.168.1.20."
            if place.where == "farm":
                return _keys_objection(place)
        except FarmError as error:
            return error.sentence
        return ""

    def show_place(self, place: ExportPlace) -> None:
        """Show where an export was to be rendered."""
        self.where.setCurrentIndex(max(0, self.where.findData(place.where)))
        if place.where == "farm":
            self.address.setText(place.address)
            self.keys.setText(place.keys)
            self.priority.show_priority(place.priority)

    def add_rows(self, form: QFormLayout) -> None:
        """Add the rows to the dialog's form."""
        self._form = form
        form.addRow("Where", self.where)
        form.addRow("Farm", self.address)
        form.addRow("Keys", self._keys_row)
        form.addRow("Priority", self.priority)
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
            self._form.setRowVisible(self.priority, is_farm)
        self.changed.emit()

    def _choose_keys(self) -> None:
        chooser = QFileDialog(self._keys_row, "Keys of the farm", self.keys.text() or str(default_keys_path().parent))
        chooser.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        chooser.setFileMode(QFileDialog.FileMode.ExistingFile)
        chooser.fileSelected.connect(self.keys.setText)
        chooser.open()

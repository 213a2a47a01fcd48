"""How an export goes from one keyframe to the next: kind of path, frames per step, loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QCheckBox, QComboBox, QFormLayout, QWidget

from explorer_app.settings import Settings
from explorer_app.window.controls.number_field import SpinBox
from explorer_app.window.export.export_keys import KINDS, ExportKey, kind_objection
from gpu_backend import PathKind


class InterpolationChoices(QObject):
    """The rows of the export dialog that say how a path goes through its keyframes.

    Parameters
    ----------
    settings
        Stores the choices.
    z_dim
        Of the open model.
    parent
        The dialog.
    """

    changed = Signal()

    def __init__(self, settings: Settings, z_dim: int, parent: QWidget) -> None:
        super().__init__(parent)
        self._settings = settings
        self._z_dim = z_dim
        self._form: QFormLayout | None = None
        self._is_sheet = False
        self._frames_of_other = self._stored_frames("export.sheet_frames", 1)
        """Frames per step of a sheet while something else is chosen, and the other way round."""
        self.kind = QComboBox(parent)
        self.kind.setAccessibleName("Interpolation")
        for kind, text, tip in KINDS:
            self.kind.addItem(text, kind)
            self.kind.setItemData(self.kind.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
        self.kind.setCurrentIndex(max(0, self.kind.findData(settings.choice("export.kind", "w-cubic"))))
        self.frames = SpinBox(1, 10_000, parent)
        self.frames.setAccessibleName("Frames per step")
        self.frames.setToolTip("Frames from one latent to the next, 1 to 10000.")
        self.frames.setValue(self._stored_frames("export.frames", 24))
        self.loop = QCheckBox("Loop: return to the first", parent)
        self.loop.setToolTip("The last frame precedes the first, so that it plays endlessly.")
        self.loop.setChecked(settings.choice("export.loop", "no") == "yes")
        self._kind_chosen()
        self.kind.currentIndexChanged.connect(self._kind_chosen)
        self.frames.valueChanged.connect(self.changed)
        self.loop.toggled.connect(self.changed)

    @property
    def path_kind(self) -> PathKind:
        """The kind of path as chosen."""
        return cast("PathKind", self.kind.currentData())

    @property
    def loops(self) -> bool:
        """Whether the path returns to its start; that of a sheet never does."""
        return self.loop.isChecked() and not self._is_sheet

    def add_rows(self, form: QFormLayout) -> None:
        """Add the rows to the dialog's form."""
        self._form = form
        form.addRow("Interpolation", self.kind)
        form.addRow("Frames per step", self.frames)
        form.addRow("", self.loop)

    def show_preset(self, *, is_sheet: bool, has_path: bool) -> None:
        """Show the rows of a path, or none; a sheet has its own number of frames and no loop."""
        if is_sheet != self._is_sheet:
            self._is_sheet = is_sheet
            self._frames_of_other, frames = self.frames.value(), self._frames_of_other
            self.frames.setValue(frames)
        if self._form is not None:
            self._form.setRowVisible(self.kind, has_path)
            self._form.setRowVisible(self.frames, has_path)
            self._form.setRowVisible(self.loop, has_path and not is_sheet)

    def enable_kinds(self, keys: Sequence[ExportKey]) -> None:
        """Enable the kinds of path that fit the keyframes: only integer seeds have a z, which the z paths need."""
        reason = kind_objection(keys, "z-linear", self._z_dim)
        items = cast("QStandardItemModel", self.kind.model())
        for row, (kind, _, tip) in enumerate(KINDS):
            possible = not reason or kind.startswith("w")
            items.item(row).setEnabled(possible)
            self.kind.setItemData(row, tip if possible else f"{tip} {reason}", Qt.ItemDataRole.ToolTipRole)

    def fit(self, keys: Sequence[ExportKey]) -> None:
        """Choose the first kind of path, which all keyframes support, if they do not support the chosen one."""
        if kind_objection(keys, self.path_kind, self._z_dim):
            self.kind.setCurrentIndex(0)

    def remember(self) -> None:
        """Store the choices in the settings."""
        self._settings.choose("export.kind", self.path_kind)
        self._settings.choose("export.sheet_frames" if self._is_sheet else "export.frames", str(self.frames.value()))
        self._settings.choose("export.loop", "yes" if self.loop.isChecked() else "no")

    def _stored_frames(self, key: str, default: int) -> int:
        text = self._settings.choice(key)
        return int(text) if text.isdecimal() and len(text) < 6 else default

    def _kind_chosen(self) -> None:
        self.kind.setToolTip(KINDS[max(0, self.kind.currentIndex())][2])
        self.changed.emit()

"""Changes where an export of the list goes: its folder, and what renders it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QDialog,
    QFormLayout,
    QHBoxLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from explorer_app.exporting.claim import place_objection
from explorer_app.exporting.export_list import ExportPlace, ExportRecord
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.settings import Settings
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.export.folder_field import FolderField
from explorer_app.window.export.place_choices import PlaceChoices
from explorer_app.window.look import theme


class DestinationDialog(QDialog):
    """Asks for another folder, device or farm.

    Parameters
    ----------
    wanted
        What the export makes.
    place
        Where it was to be rendered.
    settings
        Has the farm and the keys that were chosen last.
    others
        The other exports that are not finished, whose files stay apart.
    gpu_count
        GPUs of this machine; None if it is not known yet.

    Signals
    -------
    chosen(SequenceSettings, ExportPlace)
        The settings with the folder that was chosen.
    """

    chosen = Signal(object, object)

    def __init__(
        self,
        wanted: SequenceSettings,
        place: ExportPlace,
        settings: Settings,
        others: Sequence[ExportRecord] = (),
        parent: QWidget | None = None,
        *,
        gpu_count: int | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(f"Where “{wanted.name}” goes")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._wanted = wanted
        self._settings = settings
        self._others = tuple(others)
        tip = "Folder for the files; it is created if needed. Files that are there already stay."
        self.folder = FolderField(str(wanted.folder), tip, "Folder for the files", self)
        self.place = PlaceChoices(settings, self, gpu_count=gpu_count)
        self.place.show_place(place)
        self.hint = WrappedLabel("", self)
        self.hint.setMinimumHeight(self.fontMetrics().height() * 2)
        self.hint.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.hint.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.cancel = QPushButton("Cancel", self)
        self.cancel.setAutoDefault(False)
        self.cancel.clicked.connect(self.reject)
        self.go_on = QPushButton("Continue", self)
        self.go_on.setToolTip("Continue the export there; frames that are in that folder are not rendered again.")
        self.go_on.setDefault(True)
        theme.set_role(self.go_on, "main")
        self.go_on.clicked.connect(self._go_on)
        form = QFormLayout()
        form.setHorizontalSpacing(theme.px(12))
        form.setVerticalSpacing(theme.px(8))
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.addRow("Folder", self.folder)
        self.place.add_rows(form)
        buttons = QHBoxLayout()
        buttons.setSpacing(theme.px(8))
        buttons.addStretch(1)
        buttons.addWidget(self.cancel)
        buttons.addWidget(self.go_on)
        whole = QVBoxLayout(self)
        edge = theme.px(16)
        whole.setContentsMargins(edge, edge, edge, edge)
        whole.setSpacing(theme.px(12))
        whole.addLayout(form)
        whole.addWidget(self.hint)
        whole.addStretch(1)
        whole.addLayout(buttons)
        self.resize(theme.px(520), theme.px(220))
        self.folder.changed.connect(self._changed)
        self.place.changed.connect(self._changed)
        self._changed()
        self.folder.setFocus()

    @property
    def wanted(self) -> SequenceSettings:
        """The settings with the folder that is entered."""
        return replace(self._wanted, folder=self.folder.path)

    @Slot()
    def _changed(self) -> None:
        reason = self._objection()
        self.hint.setText(reason or "What is in the former folder stays there.")
        theme.set_role(self.hint, "warn" if reason else "dim")
        self.go_on.setEnabled(not reason)

    def _objection(self) -> str:
        """Return why the export cannot go there; empty if it can."""
        if self.folder.is_empty:
            return "Choose a folder for the files."
        wanted = self.wanted
        folder = str(wanted.folder.absolute())
        if any((job.folder, job.name) == (folder, wanted.name) for job in self._others):
            return f"Another export “{wanted.name}” goes into this folder; choose another one."
        return self.place.objection or place_objection(wanted, "choose another folder.")

    @Slot()
    def _go_on(self) -> None:
        self._changed()  # another program may have written there since
        if self.go_on.isEnabled():
            self._settings.remember_folder("export", self.wanted.folder)
            self.chosen.emit(self.wanted, self.place.place)
            self.accept()

"""The bar below the canvas that steps through a folder of training snapshots."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QToolButton, QWidget

from explorer_app.controller import Snapshots
from explorer_app.window.controls.hint_label import HintLabel
from explorer_app.window.controls.value_slider import ValueSlider
from explorer_app.window.look import icons, theme


class SnapshotBar(QWidget):
    """A slider over files; hidden while no folder is open. Arrow keys go from one to the next, Escape leaves."""

    def __init__(self, snapshots: Snapshots, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._snapshots = snapshots
        self.setAccessibleName("Snapshots")
        self.label = QLabel("Snapshots")
        theme.set_role(self.label, "strong")
        self.slider = self._slider_over(1)
        self.place = QLabel()
        theme.set_role(self.place, "dim")
        self.name = HintLabel("")
        self.name.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.back_button = QToolButton()
        theme.set_role(self.back_button, "flat")
        self.back_button.setText("Show")
        self.back_button.setAccessibleName("Show the snapshot")
        self.back_button.setToolTip("Show the snapshot again instead of the model that was opened since.")
        self.close_button = QToolButton()
        theme.set_role(self.close_button, "flat")
        self.close_button.setIcon(icons.icon("close", "dim"))
        self.close_button.setAccessibleName("Close the snapshots")
        self.close_button.setToolTip("Close the folder; the model that is open stays.")
        self._row = layout = QHBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN, theme.px(4), theme.px(4), theme.px(4))
        layout.setSpacing(theme.px(8))
        layout.addWidget(self.label)
        layout.addWidget(self.slider, 2)
        layout.addWidget(self.place)
        layout.addWidget(self.name, 3)
        layout.addWidget(self.back_button)
        layout.addWidget(self.close_button)
        self.back_button.clicked.connect(lambda: self._snapshots.go_to(self._snapshots.index))
        self.close_button.clicked.connect(snapshots.leave)
        snapshots.changed.connect(self._show)
        self._show()

    def _slider_over(self, count: int) -> ValueSlider:
        """Return a slider over `count` snapshots; a slider's range is fixed."""
        slider = ValueSlider(0, max(1, count - 1), step=1, snap=1)
        slider.setAccessibleName("Snapshot")
        slider.setToolTip("Drag to another snapshot, or press the arrow keys; the latent stays.")
        slider.setMinimumWidth(theme.px(120))
        slider.setEnabled(count > 1)
        slider.moved.connect(lambda place, _: self._snapshots.go_to(round(place)))
        self._count = count
        return slider

    @Slot()
    def _show(self) -> None:
        files, index = self._snapshots.files, self._snapshots.index
        self.setVisible(bool(files))
        if not files:
            return
        if len(files) != self._count:
            former, self.slider = self.slider, self._slider_over(len(files))
            self._row.replaceWidget(former, self.slider)
            former.deleteLater()
        if not self.slider.is_held:
            self.slider.show_amount(index)
        self.place.setText(f"{index + 1} of {len(files)}")
        name = files[index].stem
        is_left = self._snapshots.is_left
        self.back_button.setVisible(is_left)
        if self._snapshots.is_broken:
            name = f"{name} cannot be opened"
        elif self._snapshots.is_reading:
            name = f"{name} · reading"
        elif is_left:
            name = f"{name} · another model is shown"
        self.name.show_name(name)

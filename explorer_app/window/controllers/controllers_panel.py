"""The panel of controllers: inputs, the table of patches, the settings of the selected one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from explorer_app.inputs.sampler import Level
from explorer_app.session.patch_table import ADJUST, SetPatches, with_changed, without_patch
from explorer_app.session.patches import Patch
from explorer_app.session.session import Session
from explorer_app.window.controllers.input_rows import InputRows
from explorer_app.window.controllers.patch_editor import PatchEditor
from explorer_app.window.controllers.patch_row import PatchRow
from explorer_app.window.controls.column_scroll import ColumnScroll
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.look import theme

if TYPE_CHECKING:
    from explorer_app.controller import Learning
    from gpu_backend import Directions, ModelFacts

_EMPTY = (
    "Nothing is mapped yet. Right-click a slider, choose “Learn controller”, and move a knob, a fader or a key. "
    "A preset brings a whole table."
)

_COLOURS = {"midi": 4, "osc": 0, "gamepad": 2, "input": 3, "audio": 1}
"""Room of a source -> its colour among those of plot series."""


class ControllersPanel(QWidget):
    """What controllers and sounds move.

    Signals
    -------
    edited(object, bool)
        `SetPatches`; True for the last one of a gesture.
    gesture_cancelled()
        Never: a number that is being typed is cancelled in its field.
    learn_requested(str, float, float)
        A control is to be learned for a parameter, with a range.
    learning_cancelled()
        The wait for a control is to end.
    take_requested()
        The values that controllers give are to become those of the session.
    save_requested(), open_requested()
        The patches are to be written to a preset, or read from one.
    """

    SESSION_PARTS: ClassVar[tuple[str, ...]] = ("patches", "sliders")

    edited = Signal(object, bool)
    gesture_cancelled = Signal()
    learn_requested = Signal(str, float, float)
    learning_cancelled = Signal()
    take_requested = Signal()
    save_requested = Signal()
    open_requested = Signal()

    def __init__(self, label: Callable[[Session, str], str], parent: QWidget | None = None) -> None:
        """Build the panel; `label` returns how a parameter of a session is called, by its path."""
        super().__init__(parent)
        self.setAccessibleName("Controllers")
        self._label = label
        self._session = Session()
        self._selected: int | None = None
        self.inputs = InputRows()
        self.rows: list[PatchRow] = []
        self.empty = WrappedLabel(_EMPTY)
        theme.set_role(self.empty, "dim")
        self.learning = WrappedLabel()
        theme.set_role(self.learning, "accent")
        self.cancel = QPushButton("Cancel")
        self.cancel.setToolTip("Wait for no control (Escape).")
        self.cancel.clicked.connect(lambda _on: self.learning_cancelled.emit())
        self.editor = PatchEditor()
        self.editor.changed.connect(self._change)
        self.editor.learn_requested.connect(self._learn)
        self.editor.remove_requested.connect(self.remove_selected)
        self.open = self._button("Open preset…", "Replace the controllers by those of a file.", self.open_requested)
        self.save = self._button(
            "Save preset…", "Write the controllers to a file for other pieces.", self.save_requested
        )
        self.take = self._button(
            "Take values", "Put what the controllers show into the session, as one step of undo.", self.take_requested
        )
        self._build()
        self.show_learning(None)
        self.show_session(Session())

    def _button(self, text: str, tip: str, signal: object) -> QPushButton:
        button = QPushButton(text)
        button.setToolTip(tip)
        theme.set_role(button, "flat")
        button.clicked.connect(lambda _on: signal.emit())  # type: ignore[attr-defined]
        return button

    def _build(self) -> None:
        self._list = QWidget()
        self._list_layout = QVBoxLayout(self._list)
        self._list_layout.setContentsMargins(0, 0, 0, 0)
        self._list_layout.setSpacing(0)
        self._list_layout.addWidget(self.empty)
        self._list_layout.addStretch(1)
        learning = QHBoxLayout()
        learning.addWidget(self.learning, 1)
        learning.addWidget(self.cancel)
        files = QHBoxLayout()
        files.addWidget(self.take)
        files.addStretch(1)
        files.addWidget(self.open)
        files.addWidget(self.save)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN, theme.px(8), theme.MARGIN, theme.px(8))
        layout.setSpacing(theme.px(6))
        layout.addWidget(self.inputs)
        layout.addLayout(learning)
        layout.addWidget(ColumnScroll(self._list, self), 1)
        layout.addWidget(self.editor)
        layout.addLayout(files)

    # -- what is shown ----------------------------------------------------------------------------------------------

    def show_model(self, facts: ModelFacts | None, directions: Directions | None) -> None:
        """Patches do not depend on the model; the session is fitted to it elsewhere."""

    def show_session(self, session: Session) -> None:
        """Show the patches of a session."""
        self._session = session
        patches = session.patches
        while len(self.rows) > len(patches):
            row = self.rows.pop()
            row.hide()
            row.deleteLater()
        while len(self.rows) < len(patches):
            self._add_row()
        for row, patch in zip(self.rows, patches, strict=True):
            row.show_patch(patch, self._label(session, patch.parameter), _COLOURS[patch.source.partition("/")[0]])
        self.empty.setVisible(not patches)
        self.take.setEnabled(bool(patches))
        self.save.setEnabled(any(not patch.is_of_sound for patch in patches))
        if self._selected is not None and self._selected >= len(patches):
            self._selected = len(patches) - 1 if patches else None
        self._show_selected()

    def show_levels(self, level: Callable[[Patch], Level]) -> None:
        """Show the values of the sources; `level` returns that of a patch."""
        for row, patch in zip(self.rows, self._session.patches, strict=True):
            row.show_level(level(patch))

    def show_learning(self, learning: Learning | None) -> None:
        """Show which parameter waits for a control."""
        self.learning.setText("" if learning is None else f"Move a control for {learning.label} …")
        self.learning.setVisible(learning is not None)
        self.cancel.setVisible(learning is not None)

    @property
    def selected(self) -> int | None:
        """Index of the patch whose settings are shown."""
        return self._selected

    def select(self, index: int | None) -> None:
        """Show the settings of a patch."""
        self._selected = index
        self._show_selected()

    def remove_selected(self) -> None:
        """Remove the selected patch."""
        if self._selected is not None:
            self.edited.emit(SetPatches(without_patch(self._session.patches, self._selected), "Remove patch"), True)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _add_row(self) -> None:
        row, index = PatchRow(), len(self.rows)
        row.clicked.connect(lambda _on: self.select(None if self._selected == index else index))
        row.moved_on.connect(lambda step: self._go_to(index + step))
        row.removed.connect(lambda: self._remove(index))
        self.rows.append(row)
        self._list_layout.insertWidget(self._list_layout.count() - 1, row)

    def _go_to(self, index: int) -> None:
        if 0 <= index < len(self.rows):
            self.rows[index].setFocus(Qt.FocusReason.TabFocusReason)
            self.select(index)

    def _remove(self, index: int) -> None:
        self.select(index)
        self.remove_selected()
        if self.rows:
            self.rows[min(index, len(self.rows) - 1)].setFocus(Qt.FocusReason.TabFocusReason)

    def _show_selected(self) -> None:
        index = self._selected
        for place, row in enumerate(self.rows):
            row.setChecked(place == index)
        self.editor.setVisible(index is not None)
        if index is not None:
            self.editor.show_patch(self._session.patches[index])

    def _change(self, patch: Patch, final: bool) -> None:
        if self._selected is not None:
            self.edited.emit(SetPatches(with_changed(self._session.patches, self._selected, patch), ADJUST), final)

    def _learn(self) -> None:
        if self._selected is not None:
            patch = self._session.patches[self._selected]
            self.learn_requested.emit(patch.parameter, patch.low, patch.high)

"""The panel of controllers: inputs, the table of patches, the settings of the selected one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QVBoxLayout, QWidget

from explorer_app.inputs.sampler import Level
from explorer_app.inputs.sources import is_live
from explorer_app.session.parameters import parameters_of
from explorer_app.session.patch_table import ADJUST, SetPatches, with_changed, with_patch, without_patch
from explorer_app.session.patches import Patch
from explorer_app.session.session import Session
from explorer_app.window.controllers.input_rows import InputRows
from explorer_app.window.controllers.patch_editor import PatchEditor
from explorer_app.window.controllers.patch_row import PatchRow
from explorer_app.window.controls.column_scroll import ColumnScroll
from explorer_app.window.controls.drive_menu import add_sound_sources, is_driven
from explorer_app.window.controls.fitting_row import FittingRow
from explorer_app.window.controls.menu_text import menu_text
from explorer_app.window.controls.slider_row import below
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.look import theme
from gpu_backend import LoomError

if TYPE_CHECKING:
    from explorer_app.controller import Learning
    from gpu_backend import Directions, ModelFacts

_EMPTY = (
    "Nothing is mapped yet. Right-click a slider, choose “Learn controller”, and move a knob, a fader or a key. "
    "Add… lets sound move a parameter, a preset adds a whole table."
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
    learn_requested(object)
        Another control is to be learned for a patch.
    learning_cancelled()
        The wait for a control is to end.
    take_requested()
        Request to copy the controllers' values to the session.
    refused(str)
        A sentence about an edit that is impossible.
    save_requested(), open_requested()
        The patches are to be written to a preset, or read from one.
    """

    SESSION_PARTS: ClassVar[tuple[str, ...]] = ("patches", "sliders", "mix", "timeline")

    edited = Signal(object, bool)
    gesture_cancelled = Signal()
    learn_requested = Signal(object)
    learning_cancelled = Signal()
    take_requested = Signal()
    refused = Signal(str)
    save_requested = Signal()
    open_requested = Signal()

    def __init__(self, label: Callable[[Session, str], str], parent: QWidget | None = None) -> None:
        """Build the panel; `label` returns how a parameter of a session is called, by its path."""
        super().__init__(parent)
        self.setAccessibleName("Controllers")
        self._label = label
        self._session = Session()
        self._facts: ModelFacts | None = None
        self._directions: Directions | None = None
        self._selected: int | None = None
        self.level_of: Callable[[Patch], Level] = lambda patch: Level()
        """Returns what a patch does at the moment."""
        self.inputs = InputRows()
        self.rows: list[PatchRow] = []
        self.empty = WrappedLabel(_EMPTY)
        theme.set_role(self.empty, "dim")
        self.learning = WrappedLabel()
        theme.set_role(self.learning, "accent")
        self.cancel = QPushButton("Cancel")
        self.cancel.setToolTip("Stop waiting for a control (Escape).")
        self.cancel.clicked.connect(lambda _on: self.learning_cancelled.emit())
        self.editor = PatchEditor()
        self.editor.changed.connect(self._change)
        self.editor.learn_requested.connect(self._learn)
        self.editor.remove_requested.connect(self.remove_selected)
        self.add = QPushButton("Add…")
        self.add.setToolTip("Let a sound of the timeline or the microphone move a parameter.")
        self.add.clicked.connect(lambda _on: self.open_parameters())
        self.add.setEnabled(False)
        theme.set_role(self.add, "flat")
        self.open = self._button(
            "Open preset…", "Replace all mappings with those of a preset file.", self.open_requested
        )
        self.save = self._button(
            "Save preset…", "Save all mappings to a preset file, for use in other projects.", self.save_requested
        )
        self.take = self._button(
            "Apply values",
            "Set the parameters to the controllers' present values, as one undo step.",
            self.take_requested,
        )
        self._build()
        self.show_learning(None)
        self.show_session(Session())

    def _button(self, text: str, tip: str, signal: object) -> QPushButton:
        button = QPushButton(text)
        button.setAccessibleName(text.rstrip("…"))
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
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN, theme.px(8), theme.MARGIN, theme.px(8))
        layout.setSpacing(theme.px(6))
        layout.addWidget(self.inputs)
        layout.addLayout(learning)
        layout.addWidget(ColumnScroll(self._list, self), 1)
        layout.addWidget(self.editor)
        commands = (self.add, self.take, None, self.open, self.save)  # made last, since Tab follows the order of making
        self.commands = FittingRow(commands, (self.save, self.open, self.take), self, edge_px=0)
        layout.addWidget(self.commands)

    # -- what is shown ----------------------------------------------------------------------------------------------

    def show_model(self, facts: ModelFacts | None, directions: Directions | None) -> None:
        """Offer the parameters of a model; the session is fitted to it elsewhere."""
        self._facts, self._directions = facts, directions
        self.add.setEnabled(facts is not None)

    def show_session(self, session: Session) -> None:
        """Show the patches of a session."""
        self._session = session
        patches = session.patches
        is_new = len(patches) != len(self.rows)
        while len(self.rows) > len(patches):
            row = self.rows.pop()
            row.hide()
            row.deleteLater()
        while len(self.rows) < len(patches):
            self._add_row()
        for row, patch in zip(self.rows, patches, strict=True):
            row.show_patch(patch, self._label(session, patch.parameter), _COLOURS[patch.source.partition("/")[0]])
        if is_new:
            self.show_levels()
        self.empty.setVisible(not patches)
        self.take.setEnabled(any(is_live(patch.source) for patch in patches))
        self.save.setEnabled(any(not patch.is_of_sound for patch in patches))
        if self._selected is not None and self._selected >= len(patches):
            self._selected = len(patches) - 1 if patches else None
        self._show_selected()

    def show_levels(self) -> None:
        """Show the values of the sources."""
        for row, patch in zip(self.rows, self._session.patches, strict=True):
            row.show_level(self.level_of(patch))

    def show_learning(self, learning: Learning | None) -> None:
        """Show which parameter waits for a control."""
        self.learning.setText("" if learning is None else f"Move a control for {learning.label} …")
        self.learning.setVisible(learning is not None)
        self.cancel.setVisible(learning is not None)

    @property
    def selected(self) -> int | None:
        """Index of the patch whose settings are shown; None for none, also if its edit was not made."""
        index = self._selected
        return None if index is None or index >= len(self._session.patches) else index

    def select(self, index: int | None) -> None:
        """Show the settings of a patch."""
        self._selected = index
        self._show_selected()

    def remove_selected(self) -> None:
        """Remove the selected patch."""
        if self.selected is not None:
            self.edited.emit(SetPatches(without_patch(self._session.patches, self.selected), "Remove patch"), True)

    def open_parameters(self) -> QMenu | None:
        """Open the menu of what sound can move, and return it; None without a model."""
        if self._facts is None:
            return None
        own = (row.path for row in parameters_of(self._session, self._facts) if not row.path.startswith("noise.layer"))
        sliders = () if self._directions is None else (f"slider/{name}" for name in self._directions.names[:32])
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for path in dict.fromkeys((*own, "position.x", "position.y", *sliders)):
            if is_driven(path):
                name = self._label(self._session, path)
                sub = menu.addMenu(menu_text(name[:1].upper() + name[1:]))
                add_sound_sources(sub, path, self._sounds, self._drive, hears=True)
        menu.popup(below(self.add))
        return menu

    # -- inside -----------------------------------------------------------------------------------------------------

    @property
    def _sounds(self) -> tuple[str, ...]:
        return tuple(sound.name for sound in self._session.timeline.sounds)

    def _drive(self, patch: Patch) -> None:
        """Add a patch and show its settings."""
        try:
            patches = with_patch(self._session.patches, patch)
        except LoomError as error:
            self.refused.emit(error.sentence)
            return
        self._selected = len(patches) - 1
        self.edited.emit(SetPatches(patches, "Drive by sound"), True)

    def _add_row(self) -> None:
        row, index = PatchRow(), len(self.rows)
        row.clicked.connect(lambda _on: self.select(None if self._selected == index else index))
        row.moved_on.connect(lambda step: self._go_to(index + step))
        row.removed.connect(lambda: self._remove(index))
        before = self.rows[-1] if self.rows else self.cancel
        self.rows.append(row)
        self._list_layout.insertWidget(self._list_layout.count() - 1, row)
        QWidget.setTabOrder(before, row)

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
        index = self.selected
        for place, row in enumerate(self.rows):
            row.setChecked(place == index)
        self.editor.setVisible(index is not None)
        if index is not None:
            self.editor.show_patch(self._session.patches[index], self._sounds)

    def _change(self, patch: Patch, final: bool) -> None:
        if self.selected is not None:
            self.edited.emit(SetPatches(with_changed(self._session.patches, self.selected, patch), ADJUST), final)

    def _learn(self) -> None:
        if self.selected is not None:
            self.learn_requested.emit(self._session.patches[self.selected])

"""A label, a slider and a number field for one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLabel, QLineEdit, QSizePolicy, QVBoxLayout, QWidget
from shiboken6 import isValid

from explorer_app.window.controls.number_field import NumberField
from explorer_app.window.controls.parameter_menu import open_parameter_menu
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.controls.value_slider import ValueSlider
from explorer_app.window.look import theme


class RowLabel(QLabel):
    """A name, elided if it is too long; F2 or a double-click renames an editable one.

    Signals
    -------
    renamed(str)
        The new name, stripped; an empty name restores the default.
    """

    renamed = Signal(str)

    elided = Qt.TextElideMode.ElideRight
    """Where the ellipsis is; in the middle for names that differ at their ends."""

    def __init__(self, text: str, *, editable: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._full = text
        self._editor: QLineEdit | None = None
        self._came_from: QWidget | None = None
        """What had the focus before the rename."""
        self._editable = editable
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        if editable:
            self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.show_text(text)

    @property
    def full_text(self) -> str:
        """The full name."""
        return self._full

    @property
    def editor(self) -> QLineEdit | None:
        """The field of an active rename; None otherwise."""
        return self._editor

    def show_text(self, text: str) -> None:
        """Show a name."""
        self._full = text
        self._elide()

    def rename(self) -> None:
        """Open a field over the name."""
        if not self._editable or self._editor is not None:
            return
        self._came_from = QApplication.focusWidget()
        editor = QLineEdit(self._full, self)
        editor.setAccessibleName(f"Name of {self._full}")
        editor.setMaxLength(80)
        editor.setGeometry(self.rect())
        editor.selectAll()
        editor.editingFinished.connect(self._take)
        self._editor = editor
        editor.show()
        editor.setFocus()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Return the size of the full name."""
        return QSize(self.fontMetrics().horizontalAdvance(self._full) + 2, theme.px(theme.ROW))

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Return a width at which the name may be elided."""
        return QSize(24, theme.px(theme.ROW) - 4)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """F2 renames; Escape in the field discards the new name."""
        if event.key() == Qt.Key.Key_F2:
            self.rename()
        elif event.key() == Qt.Key.Key_Escape and self._editor is not None:
            self._drop()
        else:
            super().keyPressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Rename."""
        self.rename()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Elide the name for the new width."""
        super().resizeEvent(event)
        self._elide()
        if self._editor is not None:
            self._editor.setGeometry(self.rect())

    def _take(self) -> None:
        editor = self._editor
        if editor is None:
            return
        text = editor.text().strip()
        self._drop()
        if text != self._full:
            self.renamed.emit(text)

    def _drop(self) -> None:
        if self._editor is not None:
            editor, self._editor = self._editor, None
            came_from, self._came_from = self._came_from, None
            if came_from is not None and isValid(came_from) and editor.hasFocus():
                came_from.setFocus()
            editor.hide()
            editor.deleteLater()

    def _elide(self) -> None:
        width = self.width() if self.width() > 24 else 400
        self.setText(self.fontMetrics().elidedText(self._full, self.elided, width))


class SliderRow(QWidget):
    """One value: its name, a slider and a number.

    Signals
    -------
    moved(float, bool)
        The user's value; True for the last one of a gesture.
    cancelled()
        Escape ended a gesture.
    renamed(str)
        Only where `editable`.

    Parameters
    ----------
    label_px
        Width of the name, in px at the usual font size.
    least_label_px
        Width to which the name shrinks in a narrow row; None if it does not shrink.
    corner
        A widget at the end of a line that the name has for itself, above the slider; None for a name beside the slider.
    """

    moved = Signal(float, bool)
    cancelled = Signal()
    renamed = Signal(str)

    def __init__(
        self,
        label: str,
        low: float,
        high: float,
        *,
        neutral: float = 0.0,
        reset: float | None = None,
        step: float = 0.01,
        snap: float = 0.1,
        marks: Sequence[float] = (),
        decimals: int = 2,
        signed: bool = False,
        beyond: float | None = None,
        widest: str = "−0.00",
        editable: bool = False,
        label_px: int = 98,
        least_label_px: int | None = None,
        corner: QWidget | None = None,
        tip: str = "",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._tip = tip
        self.path = ""
        """Path of the parameter, which a right click offers to animate and to map; empty for none."""
        self.label = RowLabel(label, editable=editable)
        self.slider = ValueSlider(low, high, neutral=neutral, reset=reset, step=step, snap=snap, marks=marks)
        self.field = NumberField(
            low if beyond is None else -beyond,
            high if beyond is None else beyond,
            decimals=decimals,
            step=snap,
            signed=signed,
            widest=widest,
            quiet=True,
        )
        self.field.setFixedWidth(self.field.sizeHint().width())
        if corner is None:
            line = QHBoxLayout(self)
            self.label.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
            self.label.setMinimumWidth(theme.px(label_px if least_label_px is None else least_label_px))
            self.label.setMaximumWidth(theme.px(label_px))
            line.addWidget(self.label, 0 if least_label_px is None else 3)
        else:
            column, head, line = QVBoxLayout(self), QHBoxLayout(), QHBoxLayout()
            column.setContentsMargins(0, 0, 0, 0)
            column.setSpacing(0)
            head.addWidget(self.label, 1)
            head.addWidget(corner)
            column.addLayout(head)
            column.addLayout(line)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(6)
        line.addWidget(self.slider, 2)
        line.addWidget(self.field)
        self.setFixedHeight(theme.px(theme.ROW) * (1 if corner is None else 2))
        self.slider.moved.connect(self._slid)
        self.slider.cancelled.connect(self._cancelled)
        self.field.entered.connect(self._typed)
        self.label.renamed.connect(self.renamed)
        self.describe(label)
        self.show_amount(self.slider.amount)

    def describe(self, label: str) -> None:
        """Set the row's name in its label, tooltip and accessible names."""
        self.label.show_text(label)
        self.slider.setAccessibleName(label)
        self.field.setAccessibleName(f"{label}, number")
        self.set_tip(self._tip)

    def set_tip(self, tip: str) -> None:
        """Set the tooltip's sentence; the name, the range and the reset gesture are added to it."""
        self._tip = tip
        low, high = (self.field.textFromValue(end) for end in self.slider.ends)
        reset = self.field.textFromValue(self.slider.resets_to)
        sentence = (
            f"{self.label.full_text}, {low} to {high}: {tip} " if tip else f"{self.label.full_text}, {low} to {high}. "
        )
        text = f"{sentence}Shift moves finely, Ctrl snaps, a double-click sets {reset}."
        for part in (self.label, self.slider, self.field):
            part.setToolTip(plain_tip(text))
        self.slider.setAccessibleDescription(text)

    def show_amount(self, amount: float) -> None:
        """Show a value without emitting."""
        self.slider.show_amount(amount)
        if not self.slider.is_held:
            self.field.show_number(amount)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802
        """Offer to animate the value, and to learn a controller for it."""
        if self.path:
            open_parameter_menu(self, self.path, event.globalPos(), *self.slider.ends)
        else:
            super().contextMenuEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """F2 anywhere in an editable row renames it."""
        if event.key() == Qt.Key.Key_F2:
            self.label.rename()
        else:
            super().keyPressEvent(event)

    def _slid(self, amount: float, final: bool) -> None:
        self.field.show_number(amount)
        self.moved.emit(amount, final)

    def _cancelled(self) -> None:
        self.field.show_number(self.slider.amount)
        self.cancelled.emit()

    def _typed(self, amount: float, final: bool) -> None:
        self.slider.show_amount(amount)
        self.moved.emit(amount, final)


def below(widget: QWidget) -> QPoint:
    """Return the screen position for a popup below a widget."""
    return widget.mapToGlobal(QPoint(0, widget.height() + 2))


def show_played(panel: QWidget, values: Mapping[str, float]) -> None:
    """Show on each row of a panel the value that a sound or a controller gives its parameter, by its path."""
    for row in panel.findChildren(SliderRow):
        row.slider.show_played(values.get(row.path))

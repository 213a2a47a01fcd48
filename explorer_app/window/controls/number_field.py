"""Number fields of constant width: type, step, or reset by a double-click."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
    QValidator,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractSpinBox, QDoubleSpinBox, QSizePolicy, QSpinBox, QWidget

from explorer_app.window.controls.parameter_menu import open_parameter_menu
from explorer_app.window.look import theme

_MINUS = "−"
_COMMIT_MS = 400

_BARE = """
QAbstractSpinBox { padding: 0; }
QLineEdit { background: transparent; border: none; padding: 0; min-height: 0; }
"""
_QUIET = """
QAbstractSpinBox { background: transparent; border: 1px solid transparent; }
QAbstractSpinBox:hover { background: palette(button); }
QAbstractSpinBox:focus { background: palette(button); border-color: palette(highlight); }
QLineEdit { padding: 0; }
"""


class SpinBox(QSpinBox):
    """An integer field with arrows for forms; its text aligns with that of the other fields."""

    def __init__(self, low: int, high: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setRange(low, high)
        self.lineEdit().setTextMargins(theme.px(7), 0, 0, 0)  # style sheet padding has no effect here


class NumberField(QDoubleSpinBox):
    """A number in tabular figures, with a true minus sign and, if `signed`, a plus.

    Enter or leaving the field accepts the typed number, Escape discards it; arrow keys step by one, Page keys by ten;
    the wheel steps only with focus; a double-click resets a field that has a reset value. `quiet` fields look like text
    until the pointer is on them.

    Signals
    -------
    entered(float, bool)
        The user's number; True for the last one of a gesture, when typing or stepping ends.
    """

    entered = Signal(float, bool)

    def __init__(
        self,
        low: float,
        high: float,
        *,
        decimals: int = 2,
        step: float = 0.01,
        signed: bool = False,
        reset: float | None = None,
        widest: str = "",
        quiet: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        self._quiet = quiet
        super().__init__(parent)
        self.path = ""
        """Path of the parameter, which a right click offers to animate and to map; empty for none."""
        self.mapped_to = (low, high)
        """Values at the ends of a controller that is learned."""
        self._signed = signed
        self._reset = reset
        self._widest = widest
        self._stepping = False
        self._commit_timer = QTimer(self, singleShot=True, interval=_COMMIT_MS)
        self._commit_timer.timeout.connect(self._commit)
        self.setDecimals(decimals)
        self.setRange(low, high)
        self.setSingleStep(step)
        self.setKeyboardTracking(False)
        self.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
        self.setAlignment(Qt.AlignmentFlag.AlignRight if quiet else Qt.AlignmentFlag.AlignHCenter)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setStyleSheet(_BARE + _QUIET if quiet else _BARE)
        self.lineEdit().installEventFilter(self)
        self.lineEdit().setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)
        self.valueChanged.connect(self._changed)

    def show_number(self, number: float) -> None:
        """Show a number without emitting; text that is being typed stays."""
        if self.hasFocus() and self.lineEdit().isModified():
            return
        if number != self.value():
            self._commit_timer.stop()
            self.blockSignals(True)
            self.setValue(number)
            self.blockSignals(False)

    def setMinimum(self, low: float) -> None:  # noqa: N802
        """Set the minimum without emitting: a number that is clamped to the new range is not the user's choice."""
        self.setRange(low, max(low, self.maximum()))

    def setMaximum(self, high: float) -> None:  # noqa: N802
        """Set the maximum, without emitting."""
        self.setRange(min(high, self.minimum()), high)

    def setRange(self, low: float, high: float) -> None:  # noqa: N802
        """Set both ends of the range, without emitting."""
        before = self.blockSignals(True)
        super().setRange(low, high)
        self.blockSignals(before)

    def textFromValue(self, value: float) -> str:  # noqa: N802
        """Return the number as the field shows it."""
        text = f"{abs(value):.{self.decimals()}f}"
        is_zero = not text.strip("0.")
        if value < 0 and not is_zero:
            return _MINUS + text
        return "+" + text if self._signed and not is_zero else text

    def valueFromText(self, text: str) -> float:  # noqa: N802
        """Parse a number with either minus sign and either decimal mark."""
        try:
            return float(self._typed(text))
        except ValueError:
            return self.value()

    def validate(self, text: str, position: int) -> tuple[object, str, int]:  # type: ignore[override]
        """Accept any text that can become a number."""
        cleaned = self._typed(text)
        try:
            number = float(cleaned)
        except ValueError:
            good_start = cleaned in ("", "-", "+", ".", "-.", "+.")
            state = QValidator.State.Intermediate if good_start else QValidator.State.Invalid
            return state, text, position
        if not self.minimum() <= number <= self.maximum():
            return QValidator.State.Intermediate, text, position
        return QValidator.State.Acceptable, text, position

    def _typed(self, text: str) -> str:
        """Return what Python reads as a number: the text without prefix and suffix, which Qt passes too."""
        bare = text.removeprefix(self.prefix()).removesuffix(self.suffix())
        return bare.strip().replace(_MINUS, "-").replace(",", ".")

    def stepBy(self, steps: int) -> None:  # noqa: N802
        """Step the number; consecutive steps are one gesture."""
        self._stepping = True
        super().stepBy(steps)
        self._stepping = False

    def sizeHint(self) -> QSize:  # noqa: N802
        """Return a size that fits the widest number with its prefix and suffix: one px less shows only a part of it."""
        widest = self._widest or max(self.textFromValue(self.minimum()), self.textFromValue(self.maximum()), key=len)
        text_px = self.fontMetrics().horizontalAdvance(f"{self.prefix()}{widest}{self.suffix()}")
        return QSize(text_px + theme.px(8 if self._quiet else 12), theme.px(23))

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Return the size hint, because numbers are never elided."""
        return self.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Give the text the whole width, because there are no arrow buttons."""
        super().resizeEvent(event)
        self._place_text()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802
        """Restore the text's geometry after a style change."""
        super().changeEvent(event)
        self._place_text()

    def _place_text(self) -> None:
        side = 0 if self._quiet else 3
        self.lineEdit().setGeometry(self.rect().adjusted(side, 1, -side, -1))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802
        """Offer to animate the number, and to learn a controller for it."""
        if self.path:
            open_parameter_menu(self, self.path, event.globalPos(), *self.mapped_to)
        else:
            super().contextMenuEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802
        """Step with focus only."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Escape discards the typed text."""
        if event.key() == Qt.Key.Key_Escape and self.lineEdit().isModified():
            self.lineEdit().setText(f"{self.prefix()}{self.textFromValue(self.value())}{self.suffix()}")
            self.selectAll()
            return
        super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: N802
        """Leaving ends a run of steps."""
        super().focusOutEvent(event)
        if self._commit_timer.isActive():
            self._commit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """A double-click on the text resets; a click that brings focus selects the whole number."""
        if isinstance(event, QMouseEvent):
            if event.type() == QEvent.Type.MouseButtonDblClick and self._reset is not None:
                if self.value() != self._reset:
                    self.setValue(self._reset)
                self.selectAll()
                return True
            if event.type() == QEvent.Type.MouseButtonPress and not self.hasFocus():
                QTimer.singleShot(0, self, self.selectAll)
        return super().eventFilter(watched, event)

    def _changed(self, number: float) -> None:
        if self._stepping:
            self.entered.emit(number, False)
            self._commit_timer.start()
        else:
            self._commit_timer.stop()
            self.entered.emit(number, True)

    def _commit(self) -> None:
        self._commit_timer.stop()
        self.entered.emit(self.value(), True)


class PanelNumberField(NumberField):
    """A number field on a panel, for numbers that follow a gesture.

    It paints the panel's colour below its rounded corners itself. Otherwise each new number would repaint all widgets
    below it, down to the dock, which costs as much as the number.
    """

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Declare the field opaque; polishing it for a style sheet takes that back."""
        super().showEvent(event)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802
        """Do the same after a change of style."""
        super().changeEvent(event)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint the panel's colour, then the field."""
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(theme.current().panel))
        painter.end()
        super().paintEvent(event)

"""Selects the rows of w that a direction acts on: a button with a small bar, and its popup."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from explorer_app.session.row_groups import held_rows, range_name, range_text, row_groups, same_rows
from explorer_app.window.controls.number_field import NumberField
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.controls.popup import Popup
from explorer_app.window.controls.segmented import SegmentedControl
from explorer_app.window.look import theme
from gpu_backend import RowRange

_CHOICES = (
    ("all", "All", "All rows"),
    ("coarse", "Coarse", "The rows up to 16 px: pose and shape"),
    ("middle", "Middle", "The rows of 32 and 64 px: features"),
    ("fine", "Fine", "The rows from 128 px: colour and texture"),
)


class RowRangeButton(QAbstractButton):
    """A bar over all rows of w, filled where the direction acts. A press requests another range."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows = RowRange()
        self._resolutions: tuple[int, ...] = ()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    @property
    def rows(self) -> RowRange:
        """The shown range."""
        return self._rows

    def show_rows(self, rows: RowRange, resolutions: Sequence[int], name: str) -> None:
        """Show a range; `name` is the direction's, for the tooltip and the accessible name."""
        self._rows, self._resolutions = rows, tuple(resolutions)
        if self._resolutions:
            known = range_name(rows, resolutions)
            words = range_text(rows, resolutions) + (f" ({known})" if known else "")
            self.setToolTip(plain_tip(f"{name} acts on {words} of 0–{len(resolutions) - 1}: click to choose others."))
            self.setAccessibleName(f"Rows of {name}")
            self.setAccessibleDescription(words)
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Return the size of the bar."""
        return QSize(theme.px(26), theme.px(19))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint the bar: dim for the whole range, accented for a narrower one."""
        tokens = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        if self.underMouse() or self.hasFocus():
            painter.setPen(QPen(QColor(tokens.accent if self.hasFocus() else tokens.edge), 1))
            painter.setBrush(QColor(tokens.raised))
            painter.drawRoundedRect(rect, 4, 4)
        count = len(self._resolutions)
        if count:
            everything = same_rows(self._rows, RowRange(), count)
            on = QColor(tokens.dim if everything or not self.isEnabled() else tokens.accent)
            track = QRectF(rect.left() + 3, rect.center().y() - 2, rect.width() - 6, 4)
            pitch = track.width() / count
            held = held_rows(self._rows, count)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(tokens.track))
            painter.drawRoundedRect(track, 2, 2)
            if held:
                painter.setBrush(on)
                left, right = track.left() + held[0] * pitch, track.left() + (held[-1] + 1) * pitch
                painter.drawRoundedRect(QRectF(left, track.top(), max(right - left, 3.0), 4), 2, 2)
        painter.end()


class RowRangePicker(Popup):
    """A popup that selects all, coarse, middle or fine rows, or any range.

    Signals
    -------
    rows_chosen(object)
        The selected `RowRange`; a range up to the last row has `last` None.
    """

    rows_chosen = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._resolutions: tuple[int, ...] = (4,)
        self.title = QLabel()
        theme.set_role(self.title, "dim")
        self.named = SegmentedControl(_CHOICES, "Rows")
        self.first = NumberField(0, 17, decimals=0, step=1, widest="00")
        self.last = NumberField(0, 17, decimals=0, step=1, widest="00")
        self.first.setAccessibleName("First row")
        self.last.setAccessibleName("Last row")
        self.pixels = QLabel()
        theme.set_role(self.pixels, "dim")
        line = QHBoxLayout()
        line.setSpacing(6)
        for part in (QLabel("from row"), self.first, QLabel("to"), self.last):
            line.addWidget(part)
        line.addStretch(1)
        line.addWidget(self.pixels)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN, theme.MARGIN, theme.MARGIN, theme.MARGIN)
        layout.setSpacing(8)
        layout.addWidget(self.title)
        layout.addWidget(self.named)
        layout.addLayout(line)
        self.named.chosen.connect(self._choose_name)
        self.first.entered.connect(lambda first, final: self._choose(int(first), max(int(first), self._last()), final))
        self.last.entered.connect(lambda last, final: self._choose(min(int(last), self._first()), int(last), final))

    def open_for(self, name: str, rows: RowRange, resolutions: Sequence[int], point: QPoint) -> None:
        """Open at a screen position for a direction."""
        self._resolutions = tuple(resolutions) or (4,)
        self.title.setText(self.fontMetrics().elidedText(name, Qt.TextElideMode.ElideRight, theme.px(220)))
        for field in (self.first, self.last):
            field.setMaximum(len(self._resolutions) - 1)
        known = {group.name for group in row_groups(self._resolutions)}
        for key, segment in self.named.segments.items():
            segment.setEnabled(key == "all" or key in known)
        self._show(rows)
        self.open_at(point)

    def _first(self) -> int:
        return int(self.first.value())

    def _last(self) -> int:
        return int(self.last.value())

    def _show(self, rows: RowRange) -> None:
        end = len(self._resolutions) - 1
        first = min(rows.first, end)
        last = end if rows.last is None else min(rows.last, end)
        self.first.show_number(first)
        self.last.show_number(last)
        self.pixels.setText(f"{self._resolutions[first]}–{self._resolutions[last]} px")
        self.named.show_choice(range_name(RowRange(first, last), self._resolutions))

    def _choose_name(self, name: str) -> None:
        group = next((item for item in row_groups(self._resolutions) if item.name == name), None)
        if group is None:
            self._choose(0, len(self._resolutions) - 1, True)
        else:
            self._choose(group.first, group.last, True)

    def _choose(self, first: int, last: int, final: bool) -> None:
        end = len(self._resolutions) - 1
        self._show(RowRange(first, last))
        if final:
            self.rows_chosen.emit(RowRange(first, None if last >= end else last))

"""The head of the mix grid: groups and resolutions of the rows, and the base latent below the sources."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QHelpEvent, QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from explorer_app.session.row_groups import RowGroup, resolution_spans, row_groups
from explorer_app.window.look import fonts, theme
from explorer_app.window.mix.mix_cells import GridShape, off_colour, paint_picture

_LABEL = 14


class GridHead(QWidget):
    """Labels over the columns, and a line of cells for the base's remaining share in each row."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._resolutions: tuple[int, ...] = ()
        self._shares: tuple[float, ...] = ()
        self._picture: QPixmap | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Base of the mix")

    def sizeHint(self) -> QSize:  # noqa: N802
        """Return the size of two lines of labels and one of cells."""
        return QSize(theme.px(280), theme.px(_LABEL) * 2 + 2 + GridShape(1, 1).pitch_y)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Return a small width: the cells may become narrow."""
        return QSize(theme.px(200), self.sizeHint().height())

    def show_rows(self, resolutions: Sequence[int]) -> None:
        """Set the resolution of each row of w; empty without a model."""
        self._resolutions = tuple(resolutions)
        self.update()

    def show_base(self, shares: Sequence[float]) -> None:
        """Show the base's remaining share in each row, in 0..1."""
        if tuple(shares) == self._shares:
            return
        self._shares = tuple(shares)
        covered = sum(share < 1 for share in self._shares)
        self.setAccessibleDescription(f"{covered} of {len(self._shares)} rows are covered by sources")
        self.update()

    def show_picture(self, picture: QPixmap | None) -> None:
        """Show the base's picture."""
        if picture is not self._picture:
            self._picture = picture
            self.update()

    def event(self, event: QEvent) -> bool:
        """Show the tooltips of cells and labels."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip and self._resolutions:
            shape = GridShape(self.width(), len(self._resolutions))
            group = self._group_at(event.pos().x())
            if event.pos().x() < shape.left:
                words = "The current latent, the base of the mix."
            elif event.pos().y() < 2 * theme.px(_LABEL) and group is not None:
                words = f"Rows {group.first}–{group.last}: {group.caption} px."
            else:
                row = shape.column_at(event.pos().x())
                left = self._shares[row] if row < len(self._shares) else 1.0
                words = f"Row {row}, {self._resolutions[row]} px: {100 * left:.0f} % of the current latent remains."
            QToolTip.showText(event.globalPos(), words, self)
            return True
        return super().event(event)

    def group_text(self, group: RowGroup) -> str:
        """Return a group's label, with its range if it fits, otherwise shortened."""
        groups = row_groups(self._resolutions)
        shape = GridShape(self.width(), max(len(self._resolutions), 1))
        is_last = group.last == groups[-1].last
        end = self.width() if is_last else shape.cell(0, group.last + 1).left() - theme.GRID
        room = end - shape.cell(0, group.first).left()
        metrics = QFontMetricsF(fonts.caption())
        shorter = (f"{group.name} {group.from_px}+",) if is_last else ()
        return next(
            (words for words in (group.caption, *shorter) if metrics.horizontalAdvance(words) <= room), group.name
        )

    def _group_at(self, x: float) -> RowGroup | None:
        row = GridShape(self.width(), max(len(self._resolutions), 1)).column_at(x)
        return next((group for group in row_groups(self._resolutions) if row in group), None)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint groups, resolutions and the base."""
        tokens = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shape = GridShape(self.width(), max(len(self._resolutions), 1))
        painter.setFont(fonts.caption())
        height = theme.px(_LABEL)
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.setPen(QColor(tokens.dim))
        for group in row_groups(self._resolutions):
            first, last = shape.cell(0, group.first), shape.cell(0, group.last)
            room = QRectF(first.left(), 0, last.right() - first.left(), height)
            painter.drawText(room, left | Qt.TextFlag.TextDontClip, self.group_text(group))
        for span in resolution_spans(self._resolutions):
            first, last = shape.cell(0, span.first), shape.cell(0, span.last)
            room = QRectF(first.left(), height, last.right() - first.left(), height)
            if painter.fontMetrics().horizontalAdvance(span.name) <= room.width() + 4:
                painter.drawText(room, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextDontClip, span.name)
        top = 2.0 * height + 2
        paint_picture(painter, shape.picture(0, top), self._picture)
        painter.setPen(Qt.PenStyle.NoPen)
        colour = tokens.sources[0]
        for row in range(len(self._resolutions)):
            rect = shape.cell(0, row, top)
            share = self._shares[row] if row < len(self._shares) else 1.0
            painter.setBrush(off_colour(colour))
            painter.drawRoundedRect(rect, 3, 3)
            if share > 0:
                painter.setBrush(QColor(colour))
                rest = rect.adjusted(0, rect.height() * (1 - share), 0, 0)
                painter.drawRoundedRect(rest, min(3.0, rest.height() / 2), min(3.0, rest.height() / 2))
        painter.end()

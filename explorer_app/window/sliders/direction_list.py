"""Named directions and the first SeFa directions, one row each: star, name, slider, number, rows of w."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QEnterEvent, QHideEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QToolButton, QVBoxLayout, QWidget

from explorer_app.session.direction_names import default_name, is_named, shown_directions
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Session, Slider
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.controls.row_range_picker import RowRangeButton
from explorer_app.window.controls.slider_row import SliderRow
from explorer_app.window.look import icons, theme
from gpu_backend import RowRange, dataclass

if TYPE_CHECKING:
    from gpu_backend import Directions

_TYPED_UP_TO = 999.0
_LABEL_PX, _NAMED_PX = 86, 108
"""Width of names in px: fits "Direction 24", or "Mountain height" if there are named directions."""

_FIRST_ROWS, _MORE_ROWS = 10, 4
"""Number of rows created immediately, and per later batch."""

_START_MS = 2500
"""Delay of the other rows in ms, so that they do not delay the first live picture."""

_MORE_MS = 15
"""Pause between batches in ms, in which the window is painted."""


_LEAST_SIDE = 0.05
"""Smallest share of the reach that makes a side of 0 usable."""


@dataclass(frozen=True, slots=True)
class DirectionRange:
    """A direction, the ends of its slider and the rows of w it acts on by default."""

    direction: str
    low: float
    high: float
    rows: RowRange


class DirectionRow(SliderRow):
    """One direction.

    Signals
    -------
    edited(object, bool)
        An Edit of the amount, the name or the star; True once a gesture.
    rows_requested()
        The button of the rows was pressed.
    """

    edited = Signal(object, bool)
    rows_requested = Signal()

    def __init__(self, made_for: DirectionRange, label_px: int = _LABEL_PX) -> None:
        snap = 0.5 if made_for.high - made_for.low >= 10 else 0.1
        super().__init__(
            default_name(made_for.direction),
            made_for.low,
            made_for.high,
            snap=snap,
            signed=True,
            beyond=_TYPED_UP_TO,
            widest="−00.00",
            editable=True,
            label_px=label_px,
            tip="how far to go along this direction.",
        )
        self._made_for = made_for
        self._slider = Slider(made_for.direction)
        self.path = f"slider/{made_for.direction}"
        self._resolutions: Sequence[int] = ()
        self.star = QToolButton()
        theme.set_role(self.star, "flat")
        self.star.setIconSize(QSize(theme.px(13), theme.px(13)))
        self.star.setFixedSize(theme.px(20), theme.px(20))
        self.star.setStyleSheet("QToolButton { padding: 0; min-height: 0; }")
        self.star.clicked.connect(self._toggle_star)
        self.rows = RowRangeButton()
        self.rows.clicked.connect(self.rows_requested)
        layout = self.layout()
        layout.insertWidget(0, self.star)  # type: ignore[union-attr]
        layout.addWidget(self.rows)  # type: ignore[union-attr]
        layout.setSpacing(4)  # type: ignore[union-attr]
        self.moved.connect(self._move)
        self.renamed.connect(self._rename)
        self.show_slider(self._slider, (4,))

    @property
    def shown(self) -> Slider:
        """The shown slider."""
        return self._slider

    @property
    def name(self) -> str:
        """The name given by the user, or the default name."""
        return self._slider.label or default_name(self._slider.direction)

    @property
    def own_rows(self) -> RowRange:
        """The direction's default rows of w."""
        return self._made_for.rows

    @property
    def acts_on(self) -> RowRange:
        """The rows of w that the shown slider acts on."""
        return self._slider.rows or self._made_for.rows

    def show_slider(self, slider: Slider, resolutions: Sequence[int]) -> None:
        """Show a slider without emitting."""
        if slider == self._slider and resolutions == self._resolutions:
            self.show_amount(slider.amount)
            return
        self._resolutions = resolutions
        changed = slider.label != self._slider.label or slider.starred != self._slider.starred
        self._slider = slider
        self.show_amount(slider.amount)
        self.rows.show_rows(self.acts_on, resolutions, self.name)
        if changed or not self.star.accessibleName():
            self.describe(self.name)
            self.star.setIcon(icons.icon(*(("star-filled", "accent") if slider.starred else ("star", "track"))))
            self.star.setAccessibleName(f"Star of {self.name}")
            words = (
                f"Remove the star from {self.name}."
                if slider.starred
                else f"Star {self.name}: starred ones come first."
            )
            self.star.setToolTip(plain_tip(words))

    def _move(self, amount: float, final: bool) -> None:
        self.edited.emit(SetParameter(self.path, amount, self.name), final)

    def _rename(self, name: str) -> None:
        self.edited.emit(SetParameter(f"name/{self._slider.direction}", name), True)

    def _toggle_star(self) -> None:
        starred = not self._slider.starred
        label = "" if starred else "Remove star"
        self.edited.emit(SetParameter(f"star/{self._slider.direction}", starred, label), True)


class DirectionList(QScrollArea):
    """The rows of all shown directions, starred ones first.

    Signals
    -------
    edited(object, bool)
        An Edit of one direction; True once a gesture.
    gesture_cancelled()
        Escape ended a drag.
    rows_requested(object)
        The `DirectionRow` whose button for the rows of w was pressed.
    """

    edited = Signal(object, bool)
    gesture_cancelled = Signal()
    rows_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName("Directions")
        self._rows: list[DirectionRow] = []
        self._shown: tuple[Session, Sequence[int]] | None = None
        self._row_timer = QTimer(self)
        self.verticalScrollBar().valueChanged.connect(self._hurry)
        self._row_timer.timeout.connect(self._make_more)
        self._made_for: tuple[DirectionRange, ...] = ()
        self._order: list[int] = []
        self._pointed_at = False
        self._after: QWidget | None = None
        self._content = QWidget()
        self._layout = QVBoxLayout(self._content)
        self._layout.setContentsMargins(theme.MARGIN - 4, 8, 0, 8)
        self._layout.setSpacing(0)
        self.more = QToolButton()
        theme.set_role(self.more, "flat")
        self.more.setText("Find more directions…")
        self.more.setToolTip("Find directions: PCA, SeFa, or from kept pictures (Ctrl+D).")
        self.more.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # its action has a shortcut
        self.more.hide()
        self._layout.addWidget(self.more, 0, Qt.AlignmentFlag.AlignLeft)
        self._layout.addStretch(1)
        self.setWidget(self._content)

    @property
    def names(self) -> tuple[str, ...]:
        """The directions that have a row."""
        return tuple(made_for.direction for made_for in self._made_for)

    def row_ranges(self, session: Session) -> list[RowRange]:
        """Return the rows of w that each direction acts on."""
        return [session.slider(made_for.direction).rows or made_for.rows for made_for in self._made_for]

    def own_rows(self, direction: str) -> RowRange:
        """Return the default rows of w of a direction that has a row."""
        return next(made_for.rows for made_for in self._made_for if made_for.direction == direction)

    @property
    def rows(self) -> list[DirectionRow]:
        """All rows, in the order of the directions."""
        self._make_rows(len(self._made_for))
        return self._rows

    def show_directions(self, directions: Directions | None) -> None:
        """Create a row for each of a model's named and first directions.

        The first rows are created immediately. The others are below the visible part and take milliseconds each: they
        are created in small batches after a delay, or as soon as the pointer enters the list or it is scrolled.
        """
        ranges = () if directions is None else _ranges(directions)
        if ranges == self._made_for:
            return
        self._made_for = ranges
        self.more.setVisible(bool(ranges))
        self._pointed_at = False  # the new rows have no geometry yet
        for row in self._rows:
            row.hide()
            row.deleteLater()
        self._rows = []
        self._order = []
        self._shown = None
        self._row_timer.start(_START_MS)
        self._make_rows(_FIRST_ROWS)

    @Slot()
    def _make_more(self) -> None:
        self._row_timer.setInterval(_MORE_MS)
        self._make_rows(len(self._rows) + _MORE_ROWS)

    @Slot()
    def _hurry(self) -> None:
        """Create the remaining rows now, because they are about to be visible."""
        if self._row_timer.isActive() and self._row_timer.interval() != _MORE_MS:
            self._row_timer.start(_MORE_MS)

    def _make_rows(self, count: int) -> None:
        """Create rows up to `count`, or all if there are fewer."""
        ranges = self._made_for
        first, count = len(self._rows), min(count, len(ranges))
        label_px = _NAMED_PX if any(is_named(item.direction) for item in ranges) else _LABEL_PX
        for index in range(first, count):
            row = DirectionRow(ranges[index], label_px)
            row.edited.connect(self.edited)
            row.cancelled.connect(self.gesture_cancelled)
            row.rows_requested.connect(lambda row=row: self.rows_requested.emit(row))
            if self._shown is not None:
                session, resolutions = self._shown
                row.show_slider(session.slider(row.shown.direction), resolutions)
            self._layout.insertWidget(index, row)
            row.show()
            self._rows.append(row)
            self._order.append(index)
        if count > first:
            self._chain()
            # Lay out now: the scroll area would do so one event loop iteration later and squeeze all rows until then.
            least = self._content.minimumSizeHint().height()
            self._content.resize(self._content.width(), max(self._content.height(), least))
        if count == len(ranges):
            self._row_timer.stop()

    def show_session(self, session: Session, resolutions: Sequence[int]) -> None:
        """Show the session's sliders; starred rows move to the front when the pointer is not on the list."""
        if any(slider.starred for slider in session.sliders):
            self._make_rows(len(self._made_for))  # a starred row may be among the last
        self._shown = session, resolutions
        for row in self._rows:
            row.show_slider(session.slider(row.shown.direction), resolutions)
        if not self._pointed_at:
            self._sort()

    def chain_after(self, widget: QWidget) -> None:
        """Set the tab order from a widget to the first row."""
        self._after = widget
        self._chain()

    def enterEvent(self, event: QEnterEvent) -> None:  # noqa: N802
        """Create the remaining rows, and keep the order while the pointer is on the list."""
        self._pointed_at = True
        self._hurry()
        super().enterEvent(event)

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802
        """Sort starred rows to the front."""
        self._left()
        super().leaveEvent(event)

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802
        """Treat hiding as the pointer leaving."""
        self._left()
        super().hideEvent(event)

    def _left(self) -> None:
        self._pointed_at = False
        self._sort()

    def _sort(self) -> None:
        order = sorted(range(len(self._rows)), key=lambda index: (not self._rows[index].shown.starred, index))
        if order == self._order:
            return
        self._order = order
        for place, index in enumerate(order):
            self._layout.removeWidget(self._rows[index])
            self._layout.insertWidget(place, self._rows[index])
        self._chain()

    def _chain(self) -> None:
        """Set the tab order to the visual order of the rows."""
        last = self._after
        if last is not None and last.window() is not self.window():
            last = None  # the header is not in the window yet
        for index in self._order:
            row = self._rows[index]
            for widget in (row.star, row.slider, row.field, row.rows):
                if last is not None:
                    QWidget.setTabOrder(last, widget)
                last = widget


def _ranges(directions: Directions) -> tuple[DirectionRange, ...]:
    ranges = []
    for place in shown_directions(directions.names):
        low, high = slider_ends(directions.centre[place], directions.reach[place])
        ranges.append(DirectionRange(directions.names[place], low, high, directions.rows[place]))
    return tuple(ranges)


def slider_ends(centre: float, reach: float) -> tuple[float, float]:
    """Return (low, high) of a direction's slider, with 0 between them.

    A one-sided direction gets the same range on the other side, so that its 0 is in the middle too.
    """
    low, high = centre - reach, centre + reach
    if low > -_LEAST_SIDE * reach:
        low = -high
    elif high < _LEAST_SIDE * reach:
        high = -low
    return low, high

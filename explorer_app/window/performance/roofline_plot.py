"""The roofline plot: each kernel's operations per byte and per second, below the device's limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent
from PySide6.QtWidgets import QGraphicsItem, QSizePolicy, QVBoxLayout, QWidget

from explorer_app.rendering.frame_statistics import StepCost
from explorer_app.window.controls.hint_label import HintLabel
from explorer_app.window.look import fonts, theme
from explorer_app.window.performance.kernel_state import SYMBOLS, state_of
from explorer_app.window.performance.plotting import pyqtgraph as _pg
from explorer_app.window.performance.step_columns import amount, microseconds, percent, roofline_share

if TYPE_CHECKING:
    from gpu_backend import Roofline

_TIP = (
    "Across: operations per byte moved. Up: operations per second. The line is what the device can do: at the left "
    "its memory bounds, at the right its arithmetic. Circle: fused; square: plain; triangle: fallback. "
    "Steps without counted operations are not shown."
)
_EMPTY = "Point at a kernel to see its name and statistics."
_LEAST_DECADES = 2
"""Smallest height of the view in decades, so that it has more than one labelled tick."""

_HEADROOM = 0.1
"""Share of the view's height above the roof, for its label."""

_TREMBLING = 0.015
"""Points that move by less than this share of a decade (about one pixel) are not redrawn."""

_PREFIXES = ("", "k", "M", "G", "T", "P")

_ROUNDING = 1e-9
"""Tolerance in decades within which a power of ten at the end of the view counts as inside."""

_TICK_PX = {"bottom": 30, "left": 17}
"""Largest extent of a tick label along its axis, in px."""

_REACH_PX = 12
"""Distance in px within which the pointer hits a point."""


class _LogAxis(_pg.AxisItem):  # type: ignore[misc]
    """A logarithmic axis: a tick at each power of ten, or at 1, 2 and 5 where fewer than three powers are in view."""

    def logTickValues(  # noqa: N802 - pyqtgraph's name
        self, low: float, high: float, size: float, linear: object
    ) -> list[tuple[float, list[float]]]:
        """Return one level of ticks as decimal logarithms, with labels that fit into `size` px."""
        first, last = math.ceil(low - _ROUNDING), math.floor(high + _ROUNDING)
        powers = [float(power) for power in range(first, last + 1)]
        if len(powers) > 2:
            room = max(size, 1.0) / theme.px(_TICK_PX[self.orientation])
            return [(1.0, powers[:: math.ceil(len(powers) / room)])]
        steps = [power + math.log10(part) for power in range(first - 1, last + 1) for part in (1, 2, 5)]
        return [(1.0, [step for step in steps if low - _ROUNDING <= step <= high + _ROUNDING])]


class _Ratios(_LogAxis):
    """An axis with plain numbers: 0.01, 1, 100."""

    def logTickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:  # noqa: N802
        """Return the label of each tick."""
        return [f"{10.0**value:.6g}".replace("e+0", "e") for value in values]


class _Rates(_LogAxis):
    """An axis with SI prefixes: 100 M, 10 G, 1 T."""

    def logTickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:  # noqa: N802
        """Return the label of each tick."""
        return [_rate(value) for value in values]


class RooflinePlot(QWidget):
    """A scatter plot with logarithmic axes. Hovering names a kernel, a click selects it.

    Signals
    -------
    step_chosen(int)
        Index in execution order of a clicked step.
    """

    step_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("roofline-plot")
        self.setAccessibleName("Roofline")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._steps: tuple[StepCost, ...] = ()
        self._roofline: Roofline | None = None
        self._places: list[int] = []
        """Point -> index of its step."""
        self._x = self._y = np.zeros(0)
        self._chosen = self._hovered = -1
        self._view: tuple[object, ...] = ()
        self._look: tuple[object, ...] = ()
        self._plot: Any = _pg.PlotWidget(
            self, background=None, axisItems={"left": _Rates("left"), "bottom": _Ratios("bottom")}
        )
        self._plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._plot.setMenuEnabled(False)
        self._plot.setMouseEnabled(False, False)
        self._plot.hideButtons()
        self._plot.setLogMode(True, True)
        self._plot.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._plot.getViewBox().setBorder(None)
        self.setMouseTracking(True)
        self.setToolTip(_TIP)
        self.words = HintLabel(_EMPTY, self)
        self.words.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.words.setFixedHeight(theme.px(18))
        theme.set_role(self.words, "caption")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(2))
        layout.addWidget(self._plot, 1)
        layout.addWidget(self.words)
        self._roof: Any = self._plot.plot([], [], antialias=True)
        self._points: Any = _pg.ScatterPlotItem(pxMode=True)
        self._ring: Any = _pg.ScatterPlotItem(pxMode=True)
        self._plot.addItem(self._points)
        self._plot.addItem(self._ring)
        self._bounds: tuple[Any, Any] = (_pg.TextItem("", anchor=(1, 1)), _pg.TextItem("", anchor=(1, 1)))
        """Labels of the roof: bytes per second on the slope, operations per second on the flat part."""
        for label in self._bounds:
            label.setZValue(-1)
            self._plot.addItem(label, ignoreBounds=True)
        self._plot.setLabel("bottom", "operations per byte")
        self._plot.setLabel("left", "FLOP/s")
        self._colour()
        self._update_words()

    @property
    def roof(self) -> tuple[list[float], list[float]]:
        """Operations per byte and operations per second along the roof."""
        x, y = self._roof.getOriginalDataset()
        return ([], []) if x is None else (list(x), list(y))

    @property
    def points(self) -> list[int]:
        """Indices in execution order of the steps that have a point."""
        return list(self._places)

    def place_of(self, step: int) -> tuple[float, float]:
        """Return the widget coordinates in px of a step's point."""
        number = self._places.index(step)
        at = self._plot.getViewBox().mapViewToDevice(_pg.Point(self._x[number], self._y[number]))
        return at.x() + self._plot.x(), at.y() + self._plot.y()

    def show_steps(self, steps: Sequence[StepCost], roofline: Roofline | None) -> None:
        """Show steps below the roof; without a roofline the roof is omitted."""
        self._steps, self._roofline = tuple(steps), roofline
        counted = [number for number, step in enumerate(steps) if step.flops and step.nbytes and step.time_us > 0]
        self._places = counted
        fastest = max((steps[number].flop_per_s for number in counted), default=0.0)
        ceiling = roofline.matrix_flop_per_s if roofline is not None else fastest
        x = np.array([math.log10(steps[number].flops / steps[number].nbytes) for number in counted])
        y = np.array([math.log10(steps[number].flop_per_s) for number in counted])
        look = (tuple(counted), tuple(state_of(steps[number]) for number in counted), roofline)
        is_calm = look == self._look and np.allclose(x, self._x, rtol=0, atol=_TREMBLING)
        if not (is_calm and np.allclose(y, self._y, rtol=0, atol=_TREMBLING)):
            self._look, self._x, self._y = look, x, y
            self._frame_view(ceiling)
            self._draw_points()
        self._update_words()

    def show_chosen(self, step: int) -> None:
        """Mark a step by its index in execution order; -1 marks none."""
        if step != self._chosen:
            self._chosen = step
            self._draw_ring()
            self._update_words()

    # -- drawing ----------------------------------------------------------------------------------------------------

    def _frame_view(self, ceiling: float) -> None:
        """Fit the view to all points and the roof, in whole decades so that it rarely changes."""
        xs, ys = self._x.tolist(), self._y.tolist()
        if self._roofline is not None:
            xs.append(math.log10(self._roofline.matrix_flop_per_s / self._roofline.copy_bytes_per_s))
        if ceiling > 0:
            ys.append(math.log10(ceiling))
        if not xs or not ys:
            return
        left, right = math.floor(min(xs) - 0.05), math.ceil(max(xs) + 0.05)
        low, high = math.floor(min(ys) - 0.05), math.ceil(max(ys) * 2 + 0.2) / 2 + 0.05
        low = min(low, math.floor(high) - _LEAST_DECADES)
        if self._roofline is not None:
            high = max(max(ys) + _HEADROOM * (max(ys) - low), high)
        if (view := (left, right, low, high, self._roofline)) == self._view:
            return
        self._view = view
        self._plot.setXRange(left, right, padding=0)
        self._plot.setYRange(low, high, padding=0)
        self._draw_roof(left, right, low)

    def _draw_roof(self, left: float, right: float, low: float) -> None:
        """Draw and label the roof over a view between these powers of ten."""
        if self._roofline is None:
            self._roof.setData([], [])
            for label in self._bounds:
                label.setVisible(False)
            return
        copies, top = self._roofline.copy_bytes_per_s, self._roofline.matrix_flop_per_s
        bend = math.log10(top / copies)
        self._roof.setData([10.0**left, 10.0**bend, 10.0**right], [10.0**left * copies, top, top])
        start = max(left, low - math.log10(copies))
        middle = start + 0.6 * (bend - start)
        bytes_label, flops_label = self._bounds
        bytes_label.setVisible(bend - start > 0.25 * (right - left))
        bytes_label.setPos(middle, math.log10(copies) + middle)
        bytes_label.setText(f"{amount(copies)}B/s")
        flops_label.setVisible(True)
        flops_label.setPos(right, math.log10(top))
        flops_label.setText(f"{amount(top)}FLOP/s")

    def _draw_points(self) -> None:
        tokens = theme.current()
        colours = {"fused": theme.source_colour(1), "plain": theme.source_colour(0), "fallback": tokens.bad}
        brushes = {state: _pg.mkBrush(theme.alpha(colour, 0.7)) for state, colour in colours.items()}
        states = [state_of(self._steps[number]) for number in self._places]
        shares = [self._steps[number].share for number in self._places]
        largest = max(shares, default=1.0) or 1.0
        self._points.setData(
            x=self._x,
            y=self._y,
            symbol=[SYMBOLS.get(state, "o") for state in states],
            size=[theme.px(6 + 2 * round(4 * math.sqrt(share / largest))) for share in shares],
            brush=[brushes.get(state, brushes["fused"]) for state in states],
            pen=_pg.mkPen(theme.alpha(tokens.panel, 0.9), width=1),
        )
        self._draw_ring()

    def _draw_ring(self) -> None:
        marked = [step for step in (self._chosen, self._hovered) if step in self._places]
        numbers = [self._places.index(step) for step in dict.fromkeys(marked)]
        pen = _pg.mkPen(QColor(theme.current().strong), width=1.6)
        self._ring.setData(x=self._x[numbers], y=self._y[numbers], size=theme.px(18), brush=None, pen=pen)

    def _colour(self) -> None:
        tokens = theme.current()
        self._plot.setBackground(theme.mixed(tokens.panel, tokens.well, 0.45))
        self._roof.setPen(_pg.mkPen(QColor(tokens.accent), width=1.6))
        for side in ("bottom", "left"):
            axis = self._plot.getAxis(side)
            axis.setPen(_pg.mkPen(theme.mixed(tokens.panel, tokens.edge, 0.8)))
            axis.setTextPen(QColor(tokens.dim))
            axis.setTickFont(fonts.caption())
            axis.setStyle(tickLength=-4, tickTextOffset=4, maxTickLevel=0, maxTextLevel=0)
            axis.setGrid(28)
            axis.label.setFont(fonts.caption())
            axis.enableAutoSIPrefix(False)
            axis.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)  # caches label layouts
            axis.setLabel(axis.labelText, color=tokens.dim)
        for label in self._bounds:
            label.setFont(fonts.caption())
            label.setColor(QColor(tokens.dim))
        self._draw_points()

    # -- text and mouse ---------------------------------------------------------------------------------------------

    def _update_words(self) -> None:
        number = self._hovered if self._hovered in self._places else self._chosen
        if not 0 <= number < len(self._steps):
            self.words.show_text(_EMPTY)
            return
        step = self._steps[number]
        name = f"{step.layer.removeprefix('synthesis.')} · {step.kernel}"
        figures = [f"{microseconds(step.time_us)} µs"]
        if step.flops and step.nbytes:
            figures.append(f"{_ratio(step.flops / step.nbytes)} operations per byte")
        else:
            figures.append("counts no operations")
        share = roofline_share(step, self._roofline)
        if share is not None:
            figures.append(f"{percent(share)} of its roofline")
        state = state_of(step)
        if state and state != "fused":
            figures.insert(0, state)
        last = figures[-1]
        first = figures[0]
        brief = f"{name.split(' · ')[0]} · {first} · {last}"
        self.words.show_text(" · ".join([name, *figures]), f"{name} · {first} · {last}", brief, name)

    def _step_at(self, x: float, y: float) -> int:
        """Return the step with the point nearest to a position in px; -1 if none is near."""
        near, found = float(theme.px(_REACH_PX)), -1
        for step in self._places:
            at_x, at_y = self.place_of(step)
            if (far := math.hypot(at_x - x, at_y - y)) <= near:
                near, found = far, step
        return found

    def _hover(self, step: int) -> None:
        if step != self._hovered:
            self._hovered = step
            self.setCursor(Qt.CursorShape.PointingHandCursor if step >= 0 else Qt.CursorShape.ArrowCursor)
            self._draw_ring()
            self._update_words()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Name the kernel under the pointer."""
        self._hover(self._step_at(event.position().x(), event.position().y()))

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Clear the name of the kernel under the pointer."""
        self._hover(-1)
        super().leaveEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Select the kernel under the pointer."""
        step = self._step_at(event.position().x(), event.position().y())
        if event.button() == Qt.MouseButton.LeftButton and step >= 0:
            self.step_chosen.emit(step)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return a size at which points are distinguishable."""
        return QSize(theme.px(320), theme.px(240))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the smallest usable size."""
        return QSize(theme.px(200), theme.px(130))

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Apply the colours of the new theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "_ring"):
            self._colour()


def _ratio(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _rate(value: float) -> str:
    """Format a decimal logarithm of operations per second with an SI prefix: 8.3 as "200 M"."""
    power = max(0, min(17, math.floor(value + _ROUNDING)))
    return f"{10 ** (value - power) * 10 ** (power % 3):.3g} {_PREFIXES[power // 3]}"

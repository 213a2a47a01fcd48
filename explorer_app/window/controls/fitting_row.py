"""A row of controls that leaves out those without room, and shows them in a popup behind a button."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, Signal
from PySide6.QtGui import QHideEvent, QResizeEvent
from PySide6.QtWidgets import QFormLayout, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QToolButton, QWidget

from explorer_app.window.controls.popup import Popup
from explorer_app.window.controls.slider_row import SliderRow
from explorer_app.window.look import theme


class _Rest(Popup):
    """Shows the controls that the row has no room for, each beside its name; a button closes it.

    Signals
    -------
    closed()
        The popup was closed.
    """

    closed = Signal()

    def __init__(self, controls: Sequence[QWidget], parent: QWidget) -> None:
        super().__init__(parent)
        form = QFormLayout(self)
        form.setContentsMargins(theme.MARGIN, theme.MARGIN, theme.MARGIN, theme.MARGIN)
        form.setHorizontalSpacing(theme.px(12))
        for control in controls:
            if isinstance(control, (QPushButton, SliderRow)):  # its own text describes it
                form.addRow(control)
                if isinstance(control, QPushButton):
                    control.clicked.connect(self.close)
            else:
                label = QLabel(control.accessibleName())
                theme.set_role(label, "dim")
                form.addRow(label, control)
            control.show()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802 - Qt's name
        """Give the controls back."""
        super().hideEvent(event)
        self.closed.emit()


class FittingRow(QWidget):
    """A row of controls. Call `fit` after a control was resized; `resizeEvent` calls it, too.

    Parameters
    ----------
    controls
        The controls from left to right; a None is a stretch.
    dropped
        Those that may be left out, in this order: all but the last need room for the button of the rest, too. Their
        accessible names are their labels in the popup; one without a name is just hidden.
    edge_px
        Margin at both ends, in px at the usual font size; above and below there is half of it.
    """

    def __init__(
        self, controls: Sequence[QWidget | None], dropped: Sequence[QWidget], parent: QWidget, *, edge_px: int = 8
    ) -> None:
        super().__init__(parent)
        self._controls, self._dropped = tuple(controls), tuple(dropped)
        self._absent: frozenset[QWidget] = frozenset()
        self._out: tuple[QWidget, ...] = ()
        self._rest: _Rest | None = None
        self.more_button = QToolButton(self)
        self.more_button.setText("⋯")
        self.more_button.setToolTip("Show the controls that do not fit into this row.")
        self.more_button.setAccessibleName("More controls")
        theme.set_role(self.more_button, "flat")
        self.more_button.clicked.connect(self.open_rest)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(
            theme.px(edge_px), theme.px(edge_px // 2), theme.px(edge_px), theme.px(edge_px // 2)
        )
        self._row.setSpacing(theme.px(6))
        self.take_controls()
        self.fit()

    @property
    def is_open(self) -> bool:
        """Whether the popup shows the controls that were left out."""
        return self._rest is not None

    @property
    def left_out(self) -> tuple[QWidget, ...]:
        """The controls that are in the popup now, or would be."""
        return self._out

    def set_absent(self, controls: Sequence[QWidget]) -> None:
        """Show no trace of some controls, because they do not apply now or are in another row."""
        self._absent = frozenset(controls)
        self.fit()

    def fit(self) -> None:
        """Leave out controls until the others fit; not while the popup shows some of them."""
        if self._rest is not None:
            return
        spacing = self._row.spacing()
        margins = self._row.contentsMargins()
        present = [item for item in self._controls if item is not None and item not in self._absent]
        widths = {item: _width(item) + spacing for item in present}
        room = self.width() - margins.left() - margins.right() + spacing
        total, more = sum(widths.values()), self.more_button.sizeHint().width() + spacing
        out: list[QWidget] = []
        for item in self._dropped:
            if item in widths and total + (more if _named(out) else 0) > room:
                out.append(item)
                total -= widths[item]
        self._out = _named(out)
        self.more_button.setVisible(bool(self._out))
        for control in self._controls:
            if control is not None and (control in widths or control.parentWidget() is self):
                control.setVisible(control in widths and control not in out)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Fit the controls to the new width."""
        super().resizeEvent(event)
        self.fit()

    def open_rest(self) -> None:
        """Show the controls that were left out in a popup."""
        if self._rest is not None or not self._out:
            return
        self._rest = _Rest(self._out, self)
        self._rest.closed.connect(self._take_back)
        self._rest.open_at(self.more_button.mapToGlobal(QPoint(0, self.more_button.height())))

    def _take_back(self) -> None:
        rest, self._rest = self._rest, None
        if rest is not None:
            self.take_controls()
            rest.deleteLater()
            self.fit()

    def take_controls(self) -> None:
        """Put the controls into the row, also back from another layout that they were put into meanwhile."""
        while self._row.count():
            self._row.takeAt(0)
        last = next((place for place, item in enumerate(self._controls) if item is None), len(self._controls))
        for place, control in enumerate(self._controls):
            if place == last:
                self._row.addWidget(self.more_button)
            if control is None:
                self._row.addStretch(1)
            else:
                self._row.addWidget(control)
        if last == len(self._controls):
            self._row.addWidget(self.more_button)


def _width(control: QWidget) -> int:
    """Return the width in px that a layout gives to a control."""
    return max(control.minimumWidth(), min(control.sizeHint().width(), control.maximumWidth()))


def _named(controls: Sequence[QWidget]) -> tuple[QWidget, ...]:
    return tuple(control for control in controls if control.accessibleName())

"""A dock: a rounded panel under a header whose tabs turn the panel's pages.

The panel is made when it is first asked for; until then the dock has its frame, its header and its size. What a panel
has to say beside its tabs it hands over with `header_widgets()`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, runtime_checkable

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QContextMenuEvent, QPainter, QPainterPath, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QDockWidget,
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from explorer_app.window.controls.action_button import ActionButton
from explorer_app.window.docks.header_tab import HeaderTab
from explorer_app.window.look import theme


@runtime_checkable
class PagedPanel(Protocol):
    """A panel with pages; the dock's header shows a tab for each."""

    page_titles: Sequence[str]

    def show_page(self, index: int) -> None:
        """Turn to a page."""
        ...


@runtime_checkable
class HeadedPanel(Protocol):
    """A panel with something to show at the right end of the header."""

    def header_widgets(self) -> Sequence[QWidget]:
        """Return the widgets, from left to right."""
        ...


class DockHeader(QWidget):
    """The header: title and tabs at the left, what the panel has to say at the right. The rest of it moves the dock.

    Parameters
    ----------
    title
        What the dock is called.
    pages
        Titles of the panel's pages; none where it has only one.
    extras
        Widgets for the right end.
    """

    page_requested = Signal(int)

    def __init__(self, title: str, pages: Sequence[str], extras: Sequence[QWidget], parent: QWidget) -> None:
        super().__init__(parent)
        self.tabs: list[HeaderTab] = []
        self._extras = tuple(extras)
        self._has_title = True
        layout = QHBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN, 0, theme.MARGIN, 0)
        layout.setSpacing(theme.GRID * 2)
        self.title = HeaderTab(title, False, self)
        self.title.setChecked(not pages)
        layout.addWidget(self.title)
        for index, page in enumerate(pages):
            tab = HeaderTab(page, True, self)
            tab.setChecked(index == 0)
            tab.toggled.connect(partial(self._toggled, index))
            self.tabs.append(tab)
            layout.addWidget(tab)
        layout.addStretch(1)
        self._right = QHBoxLayout()
        self._right.setSpacing(theme.GRID * 2)
        for extra in extras:
            self._right.addWidget(extra)
        layout.addLayout(self._right)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    @property
    def page(self) -> int:
        """The page whose tab is chosen; 0 where there are none."""
        return next((index for index, tab in enumerate(self.tabs) if tab.isChecked()), 0)

    def _toggled(self, index: int, on: bool) -> None:
        if on:
            self.page_requested.emit(index)

    def add_extras(self, extras: Sequence[QWidget]) -> None:
        """Add widgets to the right end, to the left of those that are there."""
        for place, extra in enumerate(extras):
            self._right.insertWidget(place, extra)
        self._extras = (*extras, *self._extras)
        self._compact()

    def show_title(self, shown: bool) -> bool:
        """Show the title, or leave it to the tab that the dock has beside others; return whether anything is left."""
        self._has_title = shown
        self._compact()
        return shown or bool(self.tabs) or bool(self._extras)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the height of one header row."""
        return QSize(super().sizeHint().width(), theme.px(30))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the height of one header row; the width may shrink."""
        return QSize(theme.px(80), theme.px(30))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Where there is no room for words, buttons show their icons, and the title leaves the row to the pages."""
        super().resizeEvent(event)
        self._compact()

    def event(self, event: QEvent) -> bool:
        """Share the room anew when a panel shows or hides what it has here."""
        if event.type() == QEvent.Type.LayoutRequest:
            self._compact()
        return super().event(event)

    def _compact(self) -> None:
        buttons = [widget for widget in self._extras if isinstance(widget, ActionButton)]
        left = [self.title, *self.tabs] if self._has_title else self.tabs
        words = sum(button.full_width() for button in buttons)
        rest = [widget for widget in self._extras if widget not in buttons and not widget.isHidden()]
        others = sum(widget.sizeHint().width() for widget in (*left, *rest))
        spaces = theme.GRID * (2 * (len(left) + 1) + 2 * max(0, len(self._extras) - 1)) + 2 * theme.MARGIN
        for button in buttons:
            button.set_compact(self.width() < words + others + spaces)
        icons = sum(button.sizeHint().width() for button in buttons)
        is_wide = self.width() >= icons + others + spaces
        self.title.setVisible(self._has_title and (is_wide or not self.tabs))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the upper part of the rounded panel and the hairline below it."""
        tokens = theme.current()
        painter = QPainter(self)
        paint_panel(painter, self, tokens.head, top=True, bottom=False)
        painter.setPen(QPen(theme.mixed(tokens.head, tokens.edge, 0.5), 1))
        painter.drawLine(1, self.height() - 1, self.width() - 2, self.height() - 1)


class Placeholder(QWidget):
    """Stands where a panel will be, and asks for as much room.

    Parameters
    ----------
    least, wanted
        The panel's minimum size and size hint.
    """

    def __init__(self, least: QSize, wanted: QSize) -> None:
        super().__init__()
        self._least = least
        self._wanted = wanted

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return that of the panel."""
        return self._least

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return that of the panel."""
        return self._wanted


class DockBody(QFrame):
    """The lower part of the rounded panel, around the panel itself."""

    def __init__(self, panel: QWidget, scrolls: bool, parent: QWidget) -> None:
        super().__init__(parent)
        self._above: QWidget | None = None
        self._notice = QLabel(self)
        self._notice.setWordWrap(True)
        self._notice.setTextFormat(Qt.TextFormat.PlainText)
        self._notice.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._notice.setMargin(theme.MARGIN)
        theme.set_role(self._notice, "dim")
        self._notice.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(1, 0, 1, 1)
        layout.setSpacing(0)
        layout.addWidget(self._notice)
        self._layout = layout
        self._panel = panel
        self._inside = panel
        self._area: QScrollArea | None = None
        if scrolls:
            self._inside = self._area = area = QScrollArea(self)
            area.setWidgetResizable(True)
            area.setFrameShape(QFrame.Shape.NoFrame)
            area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
            area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            area.setWidget(panel)
        layout.addWidget(self._inside)

    def replace_panel(self, panel: QWidget) -> None:
        """Show another panel; the one before is deleted."""
        former, self._panel = self._panel, panel
        if self._area is not None:
            self._area.setWidget(panel)  # deletes the former one
            return
        panel.setParent(self)  # before it is shown: it would be a window of its own
        self._layout.replaceWidget(former, panel)
        self._inside = panel
        panel.setVisible(not self._notice.text())
        former.hide()
        former.deleteLater()

    def show_above(self, widget: QWidget) -> None:
        """Show a widget between the header and the panel."""
        self._layout.insertWidget(0, widget)
        self._above = widget
        widget.destroyed.connect(self._forget_above)
        widget.show()

    @Slot()
    def _forget_above(self) -> None:
        self._above = None

    def height_above(self, width: int) -> int:
        """Return the height of what stands between the header and the panel, at a width."""
        if self._above is None or self._above.isHidden():
            return 0
        return self._above.heightForWidth(width)

    def show_notice(self, text: str) -> None:
        """Say in place of the panel why it has nothing to show; an empty text brings the panel back."""
        if text != self._notice.text():
            self._notice.setText(text)
            self._notice.setVisible(bool(text))
            self._inside.setVisible(not text)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the panel's ground."""
        paint_panel(QPainter(self), self, theme.current().panel, top=False, bottom=True)


class Dock(QDockWidget):
    """A panel in its dock.

    Parameters
    ----------
    name
        Object name: under it the dock's place is remembered.
    title
        What the header, the View menu and a screen reader call it.
    make
        Makes the panel.
    pages
        Titles of the panel's pages; none where it has only one.
    least, wanted
        Minimum size and size hint of the panel, which count until it is made.
    scrolls
        Whether a panel that is too tall for its dock scrolls as a whole.
    extras
        More widgets for the right end of the header.
    first_height
        Height in px that the first layout gives it at least, for a panel that is empty at first.

    Signals
    -------
    toggled_by_person()
        A person showed or hid it.
    made()
        Its panel is there.
    """

    toggled_by_person = Signal()
    made = Signal()

    def __init__(
        self,
        name: str,
        title: str,
        make: Callable[[], QWidget],
        *,
        pages: Sequence[str] = (),
        least: QSize,
        wanted: QSize,
        scrolls: bool = True,
        extras: Sequence[QWidget] = (),
        first_height: int = 0,
    ) -> None:
        super().__init__(title)
        self.setObjectName(name)
        self.setAccessibleName(title)
        self._make = make
        self._panel: QWidget | None = None
        self._placeholder = Placeholder(least, wanted)
        self._first_height = first_height
        self.header = DockHeader(title, pages, extras, self)
        self.header.setAccessibleName(f"{title} header")
        self.setTitleBarWidget(self.header)
        self._no_header = QWidget(self)
        """In place of a header that has nothing to say; Qt would draw one of its own."""
        self._no_header.hide()
        self._body = DockBody(self._placeholder, scrolls, self)
        self.setWidget(self._body)
        toggle = self.toggleViewAction()
        toggle.triggered.disconnect()  # Qt would hide a dock that waits behind a tab, which is never meant
        toggle.triggered.connect(self._toggle)

    @property
    def is_made(self) -> bool:
        """Whether the panel is there."""
        return self._panel is not None

    @property
    def panel(self) -> QWidget:
        """The panel; it is made now if it was not before."""
        return self.make_panel()

    def make_panel(self) -> QWidget:
        """Make the panel, if it was not made before, and return it."""
        if self._panel is None:
            panel = self._panel = self._make()
            if isinstance(panel, HeadedPanel):
                self.header.add_extras(panel.header_widgets())
            if isinstance(panel, PagedPanel):
                self.header.page_requested.connect(panel.show_page)
                if self.header.page:
                    panel.show_page(self.header.page)
            self._body.replace_panel(panel)
            self.made.emit()
        return self._panel

    @property
    def is_seen(self) -> bool:
        """Whether the dock is open, and not behind another one's tab."""
        return self.isVisible() and not self.visibleRegion().isEmpty()

    def make_panel_when_seen(self) -> None:
        """Make the panel as soon as the dock is opened or its tab is chosen, unless it is there by then."""
        self.visibilityChanged.connect(self._seen)

    @Slot(bool)
    def _seen(self, on: bool) -> None:
        if on:
            self.visibilityChanged.disconnect(self._seen)
            self.make_panel()

    def show_notice(self, text: str) -> None:
        """Say in place of the panel why it has nothing to show; an empty text brings the panel back."""
        self._body.show_notice(text)

    def show_above(self, widget: QWidget) -> None:
        """Show a widget between the header and the panel; it may hide or delete itself."""
        self._body.show_above(widget)

    def set_shares_place(self, shares: bool) -> None:
        """Take note of whether the dock has a tab beside others, which says its title."""
        bar = self.header if self.header.show_title(not shares) else self._no_header
        if bar is not self.titleBarWidget():
            self.setTitleBarWidget(bar)
            self.header.setVisible(bar is self.header)
            self._no_header.setVisible(bar is self._no_header)

    def reveal(self) -> None:
        """Show the dock, in front of those that share its place."""
        self.show()
        self.raise_()

    def _toggle(self, on: bool) -> None:
        is_behind = not self.isFloating() and not self.isHidden() and self.visibleRegion().isEmpty()
        if on or is_behind:
            self.toggleViewAction().setChecked(True)
            self.reveal()
        else:
            self.close()
        self.toggled_by_person.emit()

    def _hide_by_person(self) -> None:
        self.hide()
        self.toggled_by_person.emit()

    @property
    def key(self) -> str:
        """Its key in the table of docks."""
        return self.objectName().removesuffix("-dock")

    def lay_out(self) -> None:
        """Lay out what has changed in the dock now, not with the next round of events."""
        for widget in (self._body, self):
            layout = widget.layout()
            if layout is not None:
                layout.activate()

    def least_width(self) -> int:
        """Return the width below which the panel would be cut."""
        return (self._panel or self._placeholder).minimumSizeHint().width() + 2

    def wanted_height(self, width: int) -> int:
        """Return the height at which the panel shows all of itself at a width, header included."""
        panel = self._panel or self._placeholder
        height = panel.heightForWidth(width - 2) if panel.hasHeightForWidth() else panel.sizeHint().height()
        height += self._body.height_above(width - 2)
        return max(self._first_height, self.header.sizeHint().height() + height + theme.px(4))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802 - Qt's name
        """Offer to float or hide the dock, from its header."""
        if not self.header.geometry().contains(event.pos()):
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction("Put back" if self.isFloating() else "Float", lambda: self.setFloating(not self.isFloating()))
        menu.addAction("Hide", self._hide_by_person)
        menu.popup(event.globalPos())


def paint_panel(painter: QPainter, widget: QWidget, colour: str, *, top: bool, bottom: bool) -> None:
    """Fill a widget as a rounded panel with a hairline; `top` and `bottom` say which ends are rounded."""
    tokens = theme.current()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    radius = theme.DOCK_RADIUS
    area = QRectF(widget.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
    if not bottom:
        area.setBottom(area.bottom() + 2 * radius)
    if not top:
        area.setTop(area.top() - 2 * radius)
    path = QPainterPath()
    path.addRoundedRect(area, radius, radius)
    painter.setPen(QPen(theme.mixed(tokens.panel, tokens.edge, 0.55), 1))
    painter.setBrush(QColor(colour))
    painter.drawPath(path)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)

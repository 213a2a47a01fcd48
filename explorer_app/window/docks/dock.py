"""A dock: a rounded panel below a header whose tabs switch the panel's pages.

The panel is created on first access; until then a placeholder gives the dock its size. A panel adds widgets to the
header with `header_widgets()`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, runtime_checkable

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
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
from explorer_app.window.controls.focus_keys import FocusKeys
from explorer_app.window.docks.header_tab import HeaderTab
from explorer_app.window.look import theme

_OPAQUE = Qt.WidgetAttribute.WA_OpaquePaintEvent


@runtime_checkable
class PagedPanel(Protocol):
    """A panel with pages; the dock's header shows a tab for each."""

    page_titles: Sequence[str]

    def show_page(self, index: int) -> None:
        """Show the page with this index."""
        ...


@runtime_checkable
class HeadedPanel(Protocol):
    """A panel with widgets for the right end of the header."""

    def header_widgets(self) -> Sequence[QWidget]:
        """Return the widgets, from left to right."""
        ...


class DockHeader(QWidget):
    """The header: title and tabs at the left, the panel's widgets at the right. Dragging elsewhere moves the dock.

    Parameters
    ----------
    title
        Title of the dock.
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
        """Index of the selected page; 0 without tabs."""
        return next((index for index, tab in enumerate(self.tabs) if tab.isChecked()), 0)

    def _toggled(self, index: int, on: bool) -> None:
        if on:
            self.page_requested.emit(index)

    def add_extras(self, extras: Sequence[QWidget]) -> None:
        """Add widgets to the right end, left of the existing ones."""
        for place, extra in enumerate(extras):
            self._right.insertWidget(place, extra)
        self._extras = (*extras, *self._extras)
        self._compact()

    def show_title(self, shown: bool) -> bool:
        """Show or hide the title, which a tabbed dock shows in its tab; return whether the header has other content."""
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
        """In a narrow header, show buttons as icons and hide the title in favour of the page tabs."""
        super().resizeEvent(event)
        self._compact()

    def event(self, event: QEvent) -> bool:
        """Lay out the header again when a panel shows or hides one of its header widgets."""
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
    """Reserves the size of a panel that is not created yet.

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


def is_uncovered(widget: QWidget) -> bool:
    """Return whether a part of a widget is to be seen, or of an opaque child, which Qt takes off its visible region."""
    if not widget.visibleRegion().isEmpty():
        return True
    children = (child for child in widget.children() if isinstance(child, QWidget) and child.isVisible())
    return any(child.testAttribute(_OPAQUE) and is_uncovered(child) for child in children)


class _PanelScroll(QScrollArea):
    """Scrolls a panel vertically, and is never narrower than it."""

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the least width of the panel."""
        panel = self.widget()
        width = 0 if panel is None else panel.minimumSizeHint().width()
        return QSize(width, super().minimumSizeHint().height())


class DockBody(QFrame):
    """The lower part of the rounded panel, around the panel itself."""

    def __init__(self, panel: QWidget, scrolls: bool, parent: QWidget) -> None:
        super().__init__(parent)
        # Otherwise Qt repaints the four widgets below, two of them styled, for each number that changes in the panel.
        self.setAttribute(_OPAQUE)
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
            self._inside = self._area = area = _PanelScroll(self)
            area.setWidgetResizable(True)
            area.setFrameShape(QFrame.Shape.NoFrame)
            area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
            area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            area.setWidget(panel)
        layout.addWidget(self._inside)

    def replace_panel(self, panel: QWidget) -> None:
        """Replace the panel; the previous one is deleted."""
        former, self._panel = self._panel, panel
        if self._area is not None:
            self._area.setWidget(panel)  # deletes the former one
            return
        panel.setParent(self)  # before it is shown, or it becomes a window
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

    @property
    def above(self) -> QWidget | None:
        """The widget between the header and the panel; None if there is none."""
        return self._above

    def height_above(self, width: int) -> int:
        """Return the height in px of the widget between the header and the panel, at a width in px."""
        if self._above is None or self._above.isHidden():
            return 0
        return self._above.heightForWidth(width)

    def show_notice(self, text: str) -> None:
        """Show a text in place of an empty panel; an empty text shows the panel again."""
        if text != self._notice.text():
            self._notice.setText(text)
            self._notice.setVisible(bool(text))
            self._inside.setVisible(not text)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the panel's background; the ground shows at its rounded corners."""
        painter, tokens = QPainter(self), theme.current()
        edge = theme.DOCK_RADIUS
        if self.rect().adjusted(edge, edge, -edge, -edge).contains(event.rect()):
            painter.fillRect(event.rect(), QColor(tokens.panel))
        else:
            painter.fillRect(event.rect(), QColor(tokens.ground))
            paint_panel(painter, self, tokens.panel, top=False, bottom=True)


class Dock(QDockWidget):
    """A panel in its dock.

    Parameters
    ----------
    name
        Object name, under which Qt stores the dock's place.
    title
        Title in the header, in the View menu and for screen readers.
    make
        Creates the panel.
    shortcut
        Key sequence that shows and hides the dock.
    pages
        Titles of the panel's pages; none where it has only one.
    least, wanted
        Minimum size and size hint that apply until the panel is created.
    scrolls
        Whether the dock scrolls a panel that is too tall.
    extras
        More widgets for the right end of the header.
    first_height
        Minimum height in px in the first layout, for a panel that is empty at first.

    Signals
    -------
    toggled_by_user()
        The user showed or hid the dock.
    shown_by_user()
        The user showed the dock or brought it to the front, by its action; `toggled_by_user` follows.
    made()
        The panel was created.
    """

    toggled_by_user = Signal()
    shown_by_user = Signal()
    made = Signal()

    def __init__(
        self,
        name: str,
        title: str,
        make: Callable[[], QWidget],
        *,
        shortcut: str,
        pages: Sequence[str] = (),
        least: QSize,
        wanted: QSize,
        scrolls: bool = True,
        extras: Sequence[QWidget] = (),
        first_height: int = 0,
    ) -> None:
        self._focus_keys = FocusKeys()
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
        """Replaces an empty header; without it Qt would draw its own title bar."""
        self._no_header.hide()
        self._body = DockBody(self._placeholder, scrolls, self)
        self.setWidget(self._body)
        toggle = self.toggleViewAction()
        toggle.triggered.disconnect()  # Qt would hide a dock that is behind a tab
        toggle.triggered.connect(self._toggle)
        toggle.setShortcut(QKeySequence(shortcut))
        toggle.setToolTip(f"Show or hide the {title.lower()} panel ({shortcut}).")

    @property
    def is_made(self) -> bool:
        """Whether the panel was created."""
        return self._panel is not None

    @property
    def panel(self) -> QWidget:
        """The panel; created on first access."""
        return self.make_panel()

    def make_panel(self) -> QWidget:
        """Create the panel if needed, and return it."""
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
        return self.isVisible() and is_uncovered(self)

    def make_panel_when_seen(self) -> None:
        """Create the panel when the dock is opened or its tab is selected, unless it exists by then."""
        self.visibilityChanged.connect(self._seen)

    @Slot(bool)
    def _seen(self, on: bool) -> None:
        if on:
            self.visibilityChanged.disconnect(self._seen)
            self.make_panel()

    def show_notice(self, text: str) -> None:
        """Show a text in place of an empty panel; an empty text shows the panel again."""
        self._body.show_notice(text)

    def parts(self) -> tuple[QWidget, ...]:
        """Return what the keyboard visits, in its order: the header, what is above the panel, and the body with it."""
        above = self._body.above
        return (self.header, self._body) if above is None else (self.header, above, self._body)

    def show_above(self, widget: QWidget) -> None:
        """Show a widget between the header and the panel; it may hide or delete itself."""
        self._body.show_above(widget)

    def set_shares_place(self, shares: bool) -> None:
        """Set whether the dock is tabbed with others, so that its tab shows the title."""
        bar = self.header if self.header.show_title(not shares) else self._no_header
        if bar is not self.titleBarWidget():
            self.setTitleBarWidget(bar)
            self.header.setVisible(bar is self.header)
            self._no_header.setVisible(bar is self._no_header)

    def reveal(self) -> None:
        """Raise the dock above the docks tabbed with it."""
        self.show()
        self.raise_()

    def _toggle(self, on: bool) -> None:
        is_behind = not self.isFloating() and not self.isHidden() and not is_uncovered(self)
        if on or is_behind:
            self.toggleViewAction().setChecked(True)
            self.reveal()
            self.shown_by_user.emit()
        else:
            self.close()
        self.toggled_by_user.emit()

    def _hide_by_user(self) -> None:
        self.hide()
        self.toggled_by_user.emit()

    @property
    def key(self) -> str:
        """The dock's key in the table of docks."""
        return self.objectName().removesuffix("-dock")

    def lay_out(self) -> None:
        """Apply pending layout changes now instead of in the next event loop iteration."""
        for widget in (self._body, self):
            layout = widget.layout()
            if layout is not None:
                layout.activate()

    def least_width(self) -> int:
        """Return the smallest width in px that does not clip the panel."""
        return (self._panel or self._placeholder).minimumSizeHint().width() + 2

    def wanted_height(self, width: int) -> int:
        """Return the height in px, header included, that shows the whole panel at a width in px."""
        panel = self._panel or self._placeholder
        height = panel.heightForWidth(width - 2) if panel.hasHeightForWidth() else panel.sizeHint().height()
        height += self._body.height_above(width - 2)
        return max(self._first_height, self.header.sizeHint().height() + height + theme.px(4))

    def event(self, event: QEvent) -> bool:
        """Note who has the focus when a key is pressed."""
        self._focus_keys.note(event)
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Press a focused button with Enter, also while the dock floats: then no key reaches the main window."""
        if not self._focus_keys.act(event):
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802 - Qt's name
        """Show the header's menu: float or hide the dock."""
        if not self.header.geometry().contains(event.pos()):
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction("Put back" if self.isFloating() else "Float", lambda: self.setFloating(not self.isFloating()))
        menu.addAction("Hide", self._hide_by_user)
        menu.popup(event.globalPos())


def paint_panel(painter: QPainter, widget: QWidget, colour: str, *, top: bool, bottom: bool) -> None:
    """Fill a widget as a panel with a hairline; `top` and `bottom` select the rounded ends."""
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

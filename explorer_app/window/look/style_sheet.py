"""The application's style sheet, generated from the tokens: all styling beyond Fusion and the palette."""

from __future__ import annotations

from functools import cache
from string import Template

from explorer_app.window.look import fonts, memory_files, theme
from explorer_app.window.look.theme import Tokens

_SHEET = Template("""
QToolTip { background: $raised; color: $text; border: 1px solid $edge; padding: ${p4}px ${p6}px; }

QMenuBar { background: $ground; color: $text; border: none; padding: 0 ${p6}px; }
QMenuBar::item { background: transparent; padding: ${p6}px ${p8}px; border-radius: ${radius}px; }
QMenuBar::item:selected { background: $raised; color: $strong; }
QMenu { background: $head; color: $text; border: 1px solid $edge; padding: ${p4}px; }
QMenu::item { padding: ${p5}px ${p28}px ${p5}px ${p10}px; border-radius: 4px; }
QMenu::item:selected { background: $raised; color: $strong; }
QMenu::item:disabled { color: $faint; }
QMenu::icon { padding-left: ${p8}px; }
QMenu::separator { height: 1px; background: $edge; margin: ${p4}px ${p6}px; }
QMenu::indicator { width: ${p14}px; height: ${p14}px; left: ${p8}px; }
QMenu::indicator:checked { image: url("$check"); }
QMenu::right-arrow { image: url("$right"); width: ${p10}px; height: ${p10}px; right: ${p6}px; }

QStatusBar { background: $ground; color: $dim; border-top: 1px solid $line; }
QStatusBar::item { border: none; }
QStatusBar QToolButton, QStatusBar QToolButton[role="flat"] { min-height: 0; padding: ${p2}px ${p6}px; }
QMainWindow { background: $ground; }
QMainWindow::separator { background: $ground; width: ${gap}px; height: ${gap}px; }
QMainWindow::separator:hover { background: $edge; }
QDialog, QMessageBox { background: $panel; }
QDialogButtonBox { dialogbuttonbox-buttons-have-icons: 0; }

QLabel { background: transparent; }
QLabel[role="dim"], QLabel[role="caption"], QLabel[role="hint"] { color: $dim; }
QLabel[role="caption"] { font-size: ${caption}px; }
QLabel[role="strong"], QLabel[role="figure"] { color: $strong; }
QLabel[role="accent"] { color: $accent_text; }
QLabel[role="good"] { color: $good_text; }
QLabel[role="warn"] { color: $warn_text; }
QLabel[role="bad"] { color: $bad_text; }
QLabel:disabled, QLabel[role="dim"]:disabled { color: $faint; }
QLabel[role="sentence"], QLabel[role="sentence"]:disabled { color: $dim; }

QPushButton, QToolButton {
    background: $raised; color: $text; border: 1px solid $edge; border-radius: ${radius}px;
    padding: 0 ${p10}px; min-height: ${control}px;
}
QPushButton:hover, QToolButton:hover { background: $hover; color: $strong; }
QPushButton:pressed, QToolButton:pressed, QPushButton:checked, QToolButton:checked {
    background: $pressed; color: $strong;
}
QPushButton:focus, QToolButton:focus { border-color: $accent; }
QPushButton:disabled, QToolButton:disabled { background: $panel; color: $faint; border-color: $line; }
QPushButton::menu-indicator, QToolButton::menu-indicator { width: 0; image: none; }
QToolButton { padding: 0 ${p6}px; }
QPushButton[role="main"], QPushButton[role="main"]:default {
    background: $accent; color: $on_accent; border-color: $accent; font-weight: 600;
}
QPushButton[role="main"]:hover { background: $accent_hover; border-color: $accent_hover; }
QPushButton[role="main"]:pressed { background: $accent_pressed; border-color: $accent_pressed; }
QPushButton[role="main"]:focus { border: 2px solid $strong; }
QPushButton[role="main"]:disabled { background: $raised; color: $faint; border-color: $line; }
QPushButton[role="flat"], QToolButton[role="flat"] {
    background: transparent; border: 1px solid transparent; padding: 0 ${p4}px;
}
QPushButton[role="flat"]:hover, QToolButton[role="flat"]:hover { background: $raised; }
QPushButton[role="flat"]:focus, QToolButton[role="flat"]:focus { border-color: $accent; }
QPushButton[role="flat"]:checked, QToolButton[role="flat"]:checked { background: $raised; color: $strong; }
QToolButton[role="thumb"] { background: transparent; border: 2px solid transparent; border-radius: 4px; padding: 0; }
QToolButton[role="empty-thumb"] { background: $raised; border: 2px solid $line; border-radius: 6px; padding: 0; }
QToolButton[role="thumb"]:hover, QToolButton[role="empty-thumb"]:hover { border-color: $edge; }
QToolButton[role="thumb"]:focus, QToolButton[role="thumb"]:checked { border-color: $accent; }
QToolButton[role="empty-thumb"]:focus, QToolButton[role="empty-thumb"]:checked { border-color: $accent; }
QPushButton[role="chip"], QToolButton[role="chip"] {
    background: $panel; border: 1px solid transparent; border-radius: 5px; padding: 0 ${p8}px; min-height: ${chip}px;
}
QPushButton[role="chip"]:hover, QToolButton[role="chip"]:hover { background: $raised; }
QPushButton[role="chip"]:focus, QToolButton[role="chip"]:focus { border-color: $accent; }

QToolButton[role="badge"] {
    background: $selection; color: $strong; border: 1px solid $accent; border-radius: 5px; padding: 0 ${p6}px;
    min-height: ${chip}px;
}
QToolButton[role="badge"]:hover { background: $hover; }
QToolButton[role="badge"]:pressed { background: $pressed; }
QToolButton[role="badge"]:focus { border-color: $strong; }

QLineEdit, QPlainTextEdit, QTextEdit, QAbstractSpinBox {
    background: $raised; color: $strong; border: 1px solid $line; border-radius: 5px;
    padding: 0 ${p6}px; min-height: ${field}px;
    selection-background-color: $accent; selection-color: $on_accent;
}
QPlainTextEdit, QTextEdit { padding: ${p4}px; background: $panel_deep; color: $text; }
QLineEdit:focus, QPlainTextEdit:focus, QTextEdit:focus, QAbstractSpinBox:focus { border-color: $accent; }
QLineEdit:disabled, QAbstractSpinBox:disabled { background: $panel; color: $faint; }
QAbstractSpinBox QLineEdit { border: none; background: transparent; padding: 0 0 0 ${p4}px; }
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button { width: ${p16}px; border: none; background: transparent; }
QAbstractSpinBox::up-arrow { image: url("$up"); width: ${p8}px; height: ${p8}px; }
QAbstractSpinBox::down-arrow { image: url("$down"); width: ${p8}px; height: ${p8}px; }

QComboBox {
    background: $raised; color: $text; border: 1px solid $edge; border-radius: ${radius}px;
    padding: 0 ${p8}px; min-height: ${control}px; combobox-popup: 0;
}
QComboBox:hover { background: $hover; }
QComboBox:focus { border-color: $accent; }
QComboBox QLineEdit { border: none; background: transparent; padding: 0; margin: 0 0 0 -4px; }
QComboBox:disabled { background: $panel; color: $faint; border-color: $line; }
QComboBox::drop-down { border: none; width: ${p20}px; }
QComboBox::down-arrow { image: url("$down"); width: ${p10}px; height: ${p10}px; }
QComboBox QAbstractItemView {
    background: $head; color: $text; border: 1px solid $edge; outline: none; padding: ${p4}px;
    selection-background-color: $raised; selection-color: $strong;
}
QComboBox QAbstractItemView::item { min-height: ${field}px; padding: 0 ${p4}px; border-radius: 4px; }
QComboBox QAbstractItemView::item:selected, QComboBox QAbstractItemView::item:hover {
    background: $raised; color: $strong;
}

QCheckBox, QRadioButton { background: transparent; color: $text; spacing: ${p6}px; min-height: ${field}px; }
QCheckBox::indicator, QRadioButton::indicator {
    width: ${p14}px; height: ${p14}px; border: 1px solid $edge; background: $raised;
}
QCheckBox::indicator { border-radius: 4px; }
QRadioButton::indicator { border-radius: ${p8}px; }
QCheckBox::indicator:hover, QRadioButton::indicator:hover { background: $hover; }
QCheckBox::indicator:focus, QRadioButton::indicator:focus { border-color: $accent; }
QCheckBox::indicator:checked { background: $accent; border-color: $accent; image: url("$check_on"); }
QRadioButton::indicator:checked { background: $accent; border-color: $accent; image: url("$dot_on"); }
QCheckBox:disabled, QRadioButton:disabled { color: $faint; }

QProgressBar { background: $track; border: none; border-radius: 2px; min-height: 4px; max-height: 4px; }
QProgressBar::chunk { background: $accent; border-radius: 2px; }

QScrollArea, QScrollArea > QWidget > QWidget { background: transparent; border: none; }
QScrollArea[role="text"] { border: 1px solid transparent; }
QScrollBar { background: transparent; border: none; }
QScrollBar:vertical { width: ${p10}px; margin: 0; }
QScrollBar:horizontal { height: ${p10}px; margin: 0; }
QScrollBar::handle { background: $edge; border-radius: 3px; margin: 2px; }
QScrollBar::handle:vertical { margin: 2px 1px 2px 3px; min-height: ${p28}px; }
QScrollBar::handle:horizontal { min-width: ${p28}px; }
QScrollBar::handle:hover { background: $dim; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; border: none; background: none; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }

QAbstractItemView { background: transparent; alternate-background-color: $stripe; color: $text;
    border: 1px solid transparent; outline: none; selection-background-color: $selection; selection-color: $strong; }
QAbstractItemView:focus, QScrollArea[role="text"]:focus { border-color: $accent; }
QListView[role="well"] {
    background: $panel_deep; border: 1px solid $line; border-radius: ${radius}px; padding: ${p4}px;
}
QListView[role="well"]:focus { border-color: $accent; }
QHeaderView { background: transparent; border: none; font-size: ${table}px; }
QHeaderView::section {
    background: transparent; color: $dim; border: none; border-bottom: 1px solid $line; padding: ${p2}px ${p4}px;
}
QHeaderView::section:hover { color: $strong; }
QHeaderView::up-arrow { image: url("$up"); width: ${p8}px; height: ${p8}px; subcontrol-position: top center; }
QHeaderView::down-arrow { image: url("$down"); width: ${p8}px; height: ${p8}px; subcontrol-position: top center; }
QAbstractScrollArea::corner { background: transparent; border: none; }
QTableCornerButton::section { background: transparent; border: none; }

QTabBar { background: transparent; }
QTabBar::tab {
    background: transparent; color: $dim; padding: ${p6}px ${p10}px; border: none; border-bottom: 2px solid transparent;
}
QTabBar::tab:hover { color: $text; }
QTabBar::tab:selected { color: $strong; border-bottom-color: $accent; }
QTabBar::tab:focus { color: $strong; }
QTabBar QToolButton { padding: 0; border: none; border-radius: 0; background: $head; }
QTabBar QToolButton::left-arrow { image: url("$left"); width: ${p10}px; height: ${p10}px; }
QTabBar QToolButton::right-arrow { image: url("$right"); width: ${p10}px; height: ${p10}px; }
QTabWidget::pane { border: none; }
QSplitter::handle { background: transparent; }
QGroupBox { border: none; margin-top: ${p20}px; }
QGroupBox::title { subcontrol-origin: margin; color: $dim; }
""")

_STROKE = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" width="16" height="16">'
    '<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}"'
    ' stroke-linecap="round" stroke-linejoin="round"/></svg>'
)
_DOT = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" width="16" height="16">'
    '<circle cx="8" cy="8" r="4" fill="{colour}"/></svg>'
)


@cache
def _image_paths(tokens: Tokens) -> dict[str, str]:
    """Return name -> path of arrows and ticks in a theme's colours, files in memory."""
    drawings = {
        "down": _STROKE.format(path="M3 6l5 5 5-5", colour=tokens.dim, width=2),
        "up": _STROKE.format(path="M3 10l5-5 5 5", colour=tokens.dim, width=2),
        "left": _STROKE.format(path="M10 3l-5 5 5 5", colour=tokens.dim, width=2),
        "right": _STROKE.format(path="M6 3l5 5-5 5", colour=tokens.dim, width=2),
        "check": _STROKE.format(path="M3 8.5l3.5 3.5 6.5-8", colour=tokens.accent, width=2),
        "check_on": _STROKE.format(path="M3 8.5l3.5 3.5 6.5-8", colour=tokens.on_accent, width=2.4),
        "dot_on": _DOT.format(colour=tokens.on_accent),
    }
    paths = memory_files.register(
        f"style-{tokens.name}", {f"{name}.svg": drawing.encode() for name, drawing in drawings.items()}
    )
    return {name: paths[f"{name}.svg"] for name in drawings}


def style_sheet(tokens: Tokens) -> str:
    """Return the style sheet of a theme, scaled to the system's font size."""
    px = theme.px
    values: dict[str, object] = {
        name: getattr(tokens, name) for name in tokens.__dataclass_fields__ if name not in ("sources", "name")
    }
    values |= {f"p{size}": px(size) for size in (2, 4, 5, 6, 8, 10, 14, 16, 20, 28)}
    values |= {
        "table": fonts.table().pixelSize(),
        "caption": fonts.caption().pixelSize(),
        "radius": px(theme.RADIUS),
        "gap": theme.GAP,
        "control": px(theme.ROW) - 2,
        "field": px(21),
        "chip": px(20),
        "line": theme.mixed(tokens.panel, tokens.edge, 0.55).name(),
        "faint": theme.mixed(tokens.dim, tokens.panel, 0.4).name(),
        "stripe": theme.mixed(tokens.panel, tokens.head, 0.7).name(),
        "selection": theme.mixed(tokens.panel, tokens.accent, 0.22).name(),
        "panel_deep": theme.mixed(tokens.panel, tokens.well, 0.5).name(),
        "accent_hover": theme.mixed(tokens.accent, tokens.strong, 0.18).name(),
        "accent_pressed": theme.mixed(tokens.accent, tokens.ground, 0.18).name(),
    }
    values |= _image_paths(tokens)
    return _SHEET.substitute(values)

"""The order in which Tab visits the controls of a panel or a dialog: that of its layout, not that of their creation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLayout, QWidget


def chain(parts: Sequence[QWidget | QLayout]) -> None:
    """Let Tab visit the controls of the parts, all of one window, one part after the other."""
    for before, after in itertools.pairwise(field for part in parts for field in _fields_in(part)):
        QWidget.setTabOrder(before, after)


def _fields_in(part: QWidget | QLayout) -> Iterator[QWidget]:
    """Return the widgets that Tab reaches, in the order of the layout."""
    layout = part.layout()
    if isinstance(part, QWidget) and part.focusPolicy() & Qt.FocusPolicy.TabFocus:
        yield part
    elif layout is not None:
        for place in range(layout.count()):
            item = layout.itemAt(place)
            inside = None if item is None else item.widget() or item.layout()
            if inside is not None:
                yield from _fields_in(inside)

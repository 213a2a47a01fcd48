"""Layouts of workspaces as text: what a user made of the first layout, or a layout of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from PySide6.QtCore import QByteArray, QSize

from explorer_app.window.docks.layouts import HOMES
from gpu_backend import dataclass


@dataclass(slots=True)
class CustomLayout:
    """A custom layout of a workspace: Qt's saved state, and the preferred sizes of the docks."""

    state: QByteArray
    sizes: dict[str, QSize] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredLayout:
    """What is stored of a workspace.

    Attributes
    ----------
    custom
        None for the first layout.
    fronts
        Docks in front of the first one of their tabs, in the first layout.
    toggled
        Which docks the user showed or hid in the first layout.
    """

    custom: CustomLayout | None = None
    fronts: frozenset[str] = frozenset()
    toggled: Mapping[str, bool] = field(default_factory=dict)

    @classmethod
    def from_text(cls, text: str) -> StoredLayout:
        """Parse what `text` wrote; what is not valid is left out."""
        try:
            data = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            return cls()
        if not isinstance(data, dict):
            return cls()
        return cls(_custom(data), _fronts(data.get("fronts")), _toggled(data.get("toggled")))

    @property
    def text(self) -> str:
        """JSON; empty for the first layout as it is. A custom layout has its own tabs in front."""
        data: dict[str, object] = {}
        if self.custom is not None:
            data["state"] = bytes(self.custom.state.toBase64().data()).decode("ascii")
            data["sizes"] = {key: [size.width(), size.height()] for key, size in self.custom.sizes.items()}
        elif self.fronts:
            data["fronts"] = sorted(self.fronts)
        if self.toggled:
            data["toggled"] = dict(self.toggled)
        return json.dumps(data) if data else ""


def _custom(data: Mapping[str, Any]) -> CustomLayout | None:
    try:
        sizes = {str(key): QSize(_length(width), _length(height)) for key, (width, height) in data["sizes"].items()}
        state = QByteArray.fromBase64(data["state"].encode("ascii"))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None
    return None if state.isEmpty() else CustomLayout(state, sizes)


def _fronts(value: object) -> frozenset[str]:
    return frozenset(key for key in value if isinstance(key, str)) if isinstance(value, list) else frozenset()


def _toggled(value: object) -> dict[str, bool]:
    if not isinstance(value, dict):
        return {}
    return {key: shown for key, shown in value.items() if key in HOMES and isinstance(shown, bool)}


def _length(value: object) -> int:
    """Return a width or height of a stored layout. Raises ValueError if no panel has it."""
    if not isinstance(value, int) or not 0 <= value < 1 << 16:
        raise ValueError("a length beyond every screen")
    return value

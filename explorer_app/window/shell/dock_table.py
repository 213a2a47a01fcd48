"""The docks of the window, as one table: the window builds them from it, and so are the View menu and the layouts.

To add a panel, write a widget, add a line here and say in `layouts` where it is at first. A panel that follows the
session keeps `SessionPanel`; the window connects it and tells it of models and sessions without further code.

Panels are imported and made when they are first shown, after the window's first paint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from PySide6.QtCore import SignalInstance
from PySide6.QtWidgets import QWidget

from explorer_app.window.docks.session_views import SessionView

if TYPE_CHECKING:
    from gpu_backend import Directions, ModelFacts


@runtime_checkable
class SessionPanel(SessionView, Protocol):
    """A panel that shows a session of a model and edits it.

    `edited(object, bool)` emits an Edit, True with the last one of a gesture; `gesture_cancelled()` ends a gesture that
    leaves nothing behind.
    """

    gesture_cancelled: SignalInstance

    def show_model(self, facts: ModelFacts | None, directions: Directions | None) -> None:
        """Show another model, or that there is none."""
        ...


@dataclass(frozen=True, slots=True)
class DockSpec:
    """One line of the table.

    Attributes
    ----------
    key
        Under it `layouts.first_layout` gives it a place in each workspace.
    title
        What the header, the View menu and a screen reader call it.
    make
        Imports and makes the panel.
    least, wanted
        Minimum size and size hint of the panel, in px at the usual font size: its dock lays itself out by them until
        the panel is made.
    pages
        Titles of the panel's pages; none where it has only one.
    needs_model
        Whether the panel has nothing to show without a model.
    scrolls
        Whether a panel that is too tall for its dock scrolls as a whole.
    buttons
        Keys of actions whose buttons stand at the right end of the header -> role of the button.
    first_height
        Height that the first layout gives it at least, in px at the usual font size.
    """

    key: str
    title: str
    make: Callable[[], QWidget]
    least: tuple[int, int]
    wanted: tuple[int, int]
    pages: tuple[str, ...] = ()
    needs_model: bool = False
    scrolls: bool = False
    buttons: Mapping[str, str] = field(default_factory=dict)
    first_height: int = 0


def _latent() -> QWidget:
    from explorer_app.window.latent.latent_panel import LatentPanel

    return LatentPanel()


def _sliders() -> QWidget:
    from explorer_app.window.sliders.sliders_panel import SlidersPanel

    return SlidersPanel()


def _mix() -> QWidget:
    from explorer_app.window.mix.mix_panel import MixPanel

    return MixPanel()


def _performance() -> QWidget:
    from explorer_app.window.performance.performance_panel import PerformancePanel

    return PerformancePanel()


def _model() -> QWidget:
    from explorer_app.window.model.model_panel import ModelPanel

    return ModelPanel()


def _layers() -> QWidget:
    from explorer_app.window.layers.layers_panel import LayersPanel

    return LayersPanel()


def _history() -> QWidget:
    from explorer_app.window.history.history_strip import HistoryStrip

    return HistoryStrip()


DOCKS: tuple[DockSpec, ...] = (
    DockSpec("latent", "Latent", _latent, (277, 319), (330, 375), needs_model=True, scrolls=True),
    DockSpec("sliders", "Sliders", _sliders, (250, 100), (320, 216), pages=("Directions", "w"), needs_model=True),
    DockSpec("mix", "Mix", _mix, (250, 153), (320, 203), needs_model=True),
    DockSpec(
        "performance",
        "Performance",
        _performance,
        (266, 350),
        (368, 476),
        buttons={"copy-steps": "flat", "save-trace": "flat"},
    ),
    DockSpec("model", "Model", _model, (250, 256), (637, 294), scrolls=True, first_height=334),
    DockSpec("layers", "Layers", _layers, (0, 0), (0, 0), needs_model=True),
    DockSpec(
        "history",
        "History",
        _history,
        (200, 82),
        (600, 82),
        pages=("Steps", "Kept"),
        buttons={"undo": "", "redo": "", "save-picture": "", "export": "main"},
    ),
)

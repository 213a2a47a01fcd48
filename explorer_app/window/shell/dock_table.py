"""The table of docks. The window, the View menu and the layouts are built from it.

To add a panel, write a widget, add a row here and place it in `layouts`. A panel that follows the session implements
`SessionPanel`; the window connects it and passes models and sessions to it without further code.

Panels are imported and created when they are first shown, after the window's first paint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from PySide6.QtCore import SignalInstance
from PySide6.QtWidgets import QWidget

from explorer_app.window.docks.session_views import SessionView
from gpu_backend import dataclass

if TYPE_CHECKING:
    from gpu_backend import Directions, ModelFacts


@runtime_checkable
class SessionPanel(SessionView, Protocol):
    """A panel that shows a session of a model and edits it.

    `edited(object, bool)` emits an Edit, with True for the last one of a gesture; `gesture_cancelled()` reports a
    gesture that Escape reverted.
    """

    gesture_cancelled: SignalInstance

    def show_model(self, facts: ModelFacts | None, directions: Directions | None) -> None:
        """Show another model; `facts` is None if no model is open."""
        ...


@dataclass(frozen=True, slots=True)
class DockSpec:
    """One row of the table.

    Attributes
    ----------
    key
        Key of the dock in `layouts.first_layout`.
    title
        Title in the header, in the View menu and for screen readers.
    shortcut
        Key sequence that shows and hides the dock.
    make
        Imports and creates the panel.
    least, wanted
        Minimum size and size hint of the panel, in px at the usual font size. The dock uses them until the panel is
        created.
    pages
        Titles of the panel's pages; empty for a panel with one page.
    needs_model
        Whether the panel is empty without a model.
    scrolls
        Whether the dock scrolls a panel that is too tall; False if the panel scrolls its own parts.
    scrolls_if_low
        Whether the dock does so on a low screen, where fixed parts of the panel do not fit.
    buttons
        Action key -> button role, for the buttons at the right end of the header.
    first_height
        Minimum height in the first layout, in px at the usual font size.
    """

    key: str
    title: str
    shortcut: str
    make: Callable[[], QWidget]
    least: tuple[int, int]
    wanted: tuple[int, int]
    pages: tuple[str, ...] = ()
    needs_model: bool = False
    scrolls: bool = False
    scrolls_if_low: bool = False
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


def _pad() -> QWidget:
    from explorer_app.window.sliders.xy_pad import XyPad

    return XyPad()


def _library() -> QWidget:
    from explorer_app.window.library.library_panel import LibraryPanel

    return LibraryPanel()


def _performance() -> QWidget:
    from explorer_app.window.performance.performance_panel import PerformancePanel

    return PerformancePanel()


def _model() -> QWidget:
    from explorer_app.window.model.model_panel import ModelPanel

    return ModelPanel()


def _layers() -> QWidget:
    from explorer_app.window.layers.layers_panel import LayersPanel

    return LayersPanel()


def _edits() -> QWidget:
    from explorer_app.window.edits.edits_panel import EditsPanel

    return EditsPanel()


def _history() -> QWidget:
    from explorer_app.window.history.history_strip import HistoryStrip

    return HistoryStrip()


def _timeline() -> QWidget:
    from explorer_app.window.timeline.timeline_panel import TimelinePanel

    return TimelinePanel()


def _controllers() -> QWidget:
    from explorer_app.session.parameter_names import name_in_text
    from explorer_app.window.controllers.controllers_panel import ControllersPanel

    return ControllersPanel(lambda session, path: name_in_text(path, session))


DOCKS: tuple[DockSpec, ...] = (
    DockSpec(
        "latent",
        "Latent",
        "Alt+1",
        _latent,
        (277, 319),
        (330, 375),
        needs_model=True,
        scrolls=True,
        buttons={"variations": "flat"},
    ),
    DockSpec(
        "sliders", "Sliders", "Alt+2", _sliders, (250, 100), (320, 216), pages=("Directions", "w"), needs_model=True
    ),
    DockSpec("mix", "Mix", "Alt+3", _mix, (250, 153), (320, 203), needs_model=True),
    DockSpec(
        "performance",
        "Performance",
        "Alt+4",
        _performance,
        (266, 350),
        (368, 476),
        first_height=510,
        scrolls_if_low=True,
        buttons={"tune": "flat", "copy-steps": "flat", "save-trace": "flat"},
    ),
    DockSpec("model", "Model", "Alt+5", _model, (250, 256), (637, 294), scrolls=True, first_height=334),
    DockSpec("layers", "Layers", "Alt+6", _layers, (0, 0), (0, 0), needs_model=True, scrolls_if_low=True),
    DockSpec("edits", "Edits", "Alt+7", _edits, (260, 120), (340, 300), needs_model=True, scrolls=True),
    DockSpec(
        "history",
        "History",
        "Alt+8",
        _history,
        (200, 82),
        (600, 82),
        pages=("Steps", "Kept"),
        buttons={"undo": "", "redo": "", "save-picture": "", "export": "main"},
    ),
    DockSpec(
        "timeline",
        "Timeline",
        "Alt+9",
        _timeline,
        (310, 105),
        (900, 300),
        needs_model=True,
    ),
    DockSpec("pad", "XY pad", "Alt+0", _pad, (180, 200), (320, 330), needs_model=True),
    DockSpec(
        "controllers",
        "Controllers",
        "Alt+Shift+C",
        _controllers,
        (300, 220),
        (368, 320),
        needs_model=True,
        scrolls_if_low=True,
    ),
    DockSpec("library", "Library", "Alt+Shift+L", _library, (178, 150), (260, 380)),
)

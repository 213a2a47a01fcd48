"""The docks of the window, as one table: the window builds them from it, and so are the View menu and the layouts.

To add a panel, write a widget, add a line here and say in `layouts` where it is at first. A panel that follows the
session keeps `SessionPanel`; the window connects it and tells it of models and sessions without further code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from PySide6.QtCore import SignalInstance
from PySide6.QtWidgets import QWidget

from explorer_app.window.docks.session_views import SessionView
from explorer_app.window.history.history_strip import HistoryStrip
from explorer_app.window.latent.latent_panel import LatentPanel
from explorer_app.window.layers.layers_panel import LayersPanel
from explorer_app.window.mix.mix_panel import MixPanel
from explorer_app.window.model.model_panel import ModelPanel
from explorer_app.window.performance.performance_panel import PerformancePanel
from explorer_app.window.sliders.sliders_panel import SlidersPanel

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
        Makes the panel.
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
    scrolls: bool = False
    buttons: Mapping[str, str] = field(default_factory=dict)
    first_height: int = 0


DOCKS: tuple[DockSpec, ...] = (
    DockSpec("latent", "Latent", LatentPanel, scrolls=True),
    DockSpec("sliders", "Sliders", SlidersPanel),
    DockSpec("mix", "Mix", MixPanel),
    DockSpec("performance", "Performance", PerformancePanel, buttons={"copy-steps": "flat", "save-trace": "flat"}),
    DockSpec("model", "Model", ModelPanel, scrolls=True, first_height=334),
    DockSpec("layers", "Layers", LayersPanel),
    DockSpec(
        "history",
        "History",
        HistoryStrip,
        buttons={"undo": "", "redo": "", "save-picture": "", "export": "main"},
    ),
)

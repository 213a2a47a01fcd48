"""Connects each panel, once it is created, to the objects that it shows and changes.

Panels that follow the session (`SessionPanel`) get sessions and models from `SessionPanels`; a link adds what only its
panel has. A link is a child of the window, so a panel that was never opened costs no connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPointF, Slot

from explorer_app.controller import Editing, Engine, KeptArithmetic, LocalEditing, Playback, PlayedValues, VariationGrid
from explorer_app.session.history import KeptSession
from explorer_app.session.variations import GridAxis
from explorer_app.settings import Settings
from explorer_app.window.canvas.comparing import Comparing
from explorer_app.window.docks.dock import Dock
from explorer_app.window.library.kept_drop import KeptDrop

if TYPE_CHECKING:
    from explorer_app.window.edits.edits_panel import EditsPanel
    from explorer_app.window.history.history_strip import HistoryStrip
    from explorer_app.window.latent.latent_panel import LatentPanel
    from explorer_app.window.layers.layers_panel import LayersPanel
    from explorer_app.window.model.model_panel import ModelPanel
    from explorer_app.window.shell.editing_tools import EditingTools
    from explorer_app.window.sliders.xy_pad import XyPad


class LatentLink(QObject):
    """Random seeds and drift of the latent panel."""

    def __init__(self, panel: LatentPanel, editing: Editing, parent: QObject) -> None:
        super().__init__(parent)
        self._panel = panel
        self._editing = editing
        panel.random_requested.connect(editing.random_seed)
        panel.drift_changed.connect(self._drift_requested)
        editing.drifting_changed.connect(self._show)
        self._show()

    @Slot()
    def _show(self) -> None:
        self._panel.show_drift(self._editing.drift_speed if self._editing.drifting else 0.0)

    @Slot(float)
    def _drift_requested(self, speed: float) -> None:
        if speed:
            self._editing.set_drift_speed(speed)
        self._editing.set_drifting(bool(speed))


class PlayedLink(QObject):
    """What sounds and controllers set, on a panel's sliders: `show` gets path -> value."""

    def __init__(self, show: Callable[[Mapping[str, float]], object], played: PlayedValues, parent: QObject) -> None:
        super().__init__(parent)
        self._show, self._played = show, played
        played.changed.connect(self._changed)
        self._changed()

    @Slot()
    def _changed(self) -> None:
        self._show(self._played.values)


class HistoryLink(QObject):
    """Steps and kept pictures."""

    def __init__(
        self,
        panel: HistoryStrip,
        engine: Engine,
        editing: Editing,
        comparing: Comparing,
        grid: VariationGrid,
        arithmetic: KeptArithmetic,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._panel = panel
        self._engine = engine
        self._editing = editing
        self._grid = grid
        panel.mix_grid_requested.connect(self._show_mix_grid)
        panel.average_requested.connect(arithmetic.average)
        panel.weighted_requested.connect(arithmetic.weighted)
        panel.difference_requested.connect(arithmetic.difference)
        panel.go_to_requested.connect(editing.go_to)
        panel.kept_requested.connect(editing.go_to_kept)
        panel.star_requested.connect(editing.kept.star)
        panel.rename_requested.connect(editing.kept.rename)
        panel.move_requested.connect(editing.kept.move)
        panel.compare_requested.connect(comparing.compare)
        editing.history_changed.connect(self._show)
        engine.model_changed.connect(self._show_model)
        self._show_model()
        self._show()

    @Slot()
    def _show(self) -> None:
        self._panel.show_history(self._editing.history)

    @Slot()
    def _show_model(self) -> None:
        self._panel.set_has_model(self._engine.model.facts is not None)

    @Slot(object, str)
    def _show_mix_grid(self, numbers: tuple[int, ...], side: str) -> None:
        """Show the mix grid with kept latents on one side, in their order."""
        history = self._editing.history
        entries = (history.entry(number) for number in numbers)
        kept = [KeptSession(entry.session, entry.label, entry.kept_s) for entry in entries if entry is not None]
        self._grid.change(kind="mix")
        self._grid.use_sides(kept if side == "rows" else None, kept if side == "columns" else None)
        self._grid.set_on(True)


class PadLink(QObject):
    """Paths that are drawn over the XY pad, and kept pictures that are dropped on it."""

    def __init__(self, pad: XyPad, playback: Playback, arithmetic: KeptArithmetic, parent: QObject) -> None:
        super().__init__(parent)
        self._pad = pad
        self._arithmetic = arithmetic
        pad.path_drawn.connect(playback.draw)
        KeptDrop(pad.field, self._take)

    def _take(self, numbers: tuple[int, ...], place: QPointF) -> None:
        """Find the direction towards a kept picture, for the axis on whose side it was dropped."""
        self._pad.await_direction(place)
        self._arithmetic.toward(numbers[0])


class GridMemory(QObject):
    """Remembers size, spread, kind and directions of grids for the next start."""

    def __init__(self, grid: VariationGrid, settings: Settings, parent: QObject) -> None:
        super().__init__(parent)
        self._grid = grid
        self._settings = settings
        side, spread = settings.choice("grid.side"), settings.choice("grid.spread")
        known, kind = grid.settings, settings.choice("grid.kind")
        grid.change(
            side=int(side) if side.isdecimal() and len(side) < 3 else known.side,
            spread=int(spread) / 100.0 if spread.isdecimal() and len(spread) < 4 else known.spread,
            kind=kind if kind in _REMEMBERED else known.kind,
            across=GridAxis(settings.choice("grid.across"), 1.0),
            down=GridAxis(settings.choice("grid.down"), 1.0),
        )
        grid.changed.connect(self._remember)

    @Slot()
    def _remember(self) -> None:
        now = self._grid.settings
        values = {"side": str(now.side), "spread": str(round(100.0 * now.spread))}
        if now.kind in _REMEMBERED:
            values["kind"] = now.kind
        if now.kind == "axes":
            values |= {"across": now.across.direction, "down": now.down.direction}
        for name, value in values.items():
            if self._settings.choice(f"grid.{name}") != value:
                self._settings.choose(f"grid.{name}", value)


_REMEMBERED = ("random", "axes", "mix")
"""Kinds of grids that a start can show; children need picked cells."""


class LayersLink(QObject):
    """The values of the layer that the preview shows, and which one it is."""

    def __init__(self, panel: LayersPanel, dock: Dock, engine: Engine, editing: Editing, parent: QObject) -> None:
        super().__init__(parent)
        self._panel = panel
        self._preview = engine.preview
        self._editing = editing
        editing.session_changed.connect(self._remember)
        dock.visibilityChanged.connect(panel.set_on_show)
        panel.set_on_show(dock.is_seen)
        self._preview.frame_changed.connect(self._show)
        engine.model_changed.connect(self._show)
        self._show()

    @Slot()
    def _remember(self) -> None:
        self._panel.remember(self._editing.session.tap)

    @Slot()
    def _show(self) -> None:
        self._panel.show_frame(self._preview.frame)


class EditsLink(QObject):
    """Blends and their masks, channels of layers, and the search for style channels."""

    def __init__(
        self, panel: EditsPanel, local: LocalEditing, editing: Editing, tools: EditingTools, parent: QObject
    ) -> None:
        super().__init__(parent)
        blends = panel.blends
        blends.kept_names = lambda: [(entry.number, entry.label) for entry in reversed(editing.history.kept)]
        blends.seed_requested.connect(local.blend_with_seed)
        blends.shown_requested.connect(local.blend_with_shown)
        blends.kept_requested.connect(local.blend_with_kept)
        blends.paint_requested.connect(tools.paint_blend)
        local.mask_needed.connect(tools.paint_blend)
        tools.painting_changed.connect(blends.show_painting)
        KeptDrop(panel, lambda numbers, place: local.blend_with_kept(numbers[0]))
        panel.maps_requested.connect(local.request_maps)
        local.maps_made.connect(panel.show_maps)
        local.maps_failed.connect(panel.show_failure)
        self._panel, self._local = panel, local
        panel.find_requested.connect(local.find_style_channels)
        panel.stop_requested.connect(local.stop_search)
        local.search_changed.connect(self._show_search)
        self._show_search()

    @Slot()
    def _show_search(self) -> None:
        self._panel.show_search(self._local.text, self._local.is_searching)


class ModelLink(QObject):
    """Facts of the model, and the devices."""

    def __init__(self, panel: ModelPanel, engine: Engine, parent: QObject) -> None:
        super().__init__(parent)
        self._panel = panel
        self._engine = engine
        engine.model_changed.connect(self._show_model)
        engine.devices.changed.connect(self._show_devices)
        self._show_model()
        self._show_devices()

    @Slot()
    def _show_model(self) -> None:
        self._panel.show_model(self._engine.model.facts, is_bundled=self._engine.model.is_bundled)

    @Slot()
    def _show_devices(self) -> None:
        self._panel.show_devices(self._engine.devices.state)

"""The main window: builds its parts, connects them to the controller, stores its geometry."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Slot
from PySide6.QtGui import (
    QAction,
    QActionGroup,
    QCloseEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QGuiApplication,
    QKeyEvent,
)
from PySide6.QtWidgets import QApplication, QMainWindow

from explorer_app.controller import Controller
from explorer_app.messages import MessageLog
from explorer_app.settings import Settings
from explorer_app.window.actions import actions
from explorer_app.window.actions.action_table import ACTIONS
from explorer_app.window.canvas.canvas import Canvas
from explorer_app.window.canvas.canvas_overlay import CanvasOverlay
from explorer_app.window.canvas.comparing import Comparing
from explorer_app.window.controls.action_button import ActionButton
from explorer_app.window.controls.focus_keys import FocusKeys
from explorer_app.window.controls.slider_row import show_played
from explorer_app.window.dialogs.quit_question import QuitQuestion
from explorer_app.window.docks.dock import Dock
from explorer_app.window.docks.focus_order import scroll_to
from explorer_app.window.docks.layouts import WORKSPACES
from explorer_app.window.gestures.drag_holder import undo_drag_of
from explorer_app.window.gestures.input_age import InputAge
from explorer_app.window.library.kept_drop import KeptDrop
from explorer_app.window.look import theme
from explorer_app.window.look.app_icon import app_icon
from explorer_app.window.messages.message_strip import MessageStrip
from explorer_app.window.model.device_menu import DeviceMenu
from explorer_app.window.model.recent_menu import RecentMenu
from explorer_app.window.output.outputs import Outputs
from explorer_app.window.shell import panel_links
from explorer_app.window.shell.action_states import ActionStates
from explorer_app.window.shell.background_work import BackgroundWork
from explorer_app.window.shell.bars import Bars
from explorer_app.window.shell.commands import Commands
from explorer_app.window.shell.controllers_link import ControllersLink
from explorer_app.window.shell.dialogs import Dialogs
from explorer_app.window.shell.dock_table import DOCKS, DockSpec, SessionPanel
from explorer_app.window.shell.edit_commands import EditCommands
from explorer_app.window.shell.editing_tools import EditingTools
from explorer_app.window.shell.export_notices import ExportNotices
from explorer_app.window.shell.file_commands import FileCommands
from explorer_app.window.shell.file_drop import accept_copy, drop_text, dropped, dropped_sounds
from explorer_app.window.shell.help_commands import HelpCommands
from explorer_app.window.shell.hints import Hints
from explorer_app.window.shell.model_commands import ModelCommands
from explorer_app.window.shell.parameter_requests import ParameterRequests
from explorer_app.window.shell.picture_area import PictureArea
from explorer_app.window.shell.picture_state import PictureState
from explorer_app.window.shell.play_commands import PlayCommands
from explorer_app.window.shell.preference_commands import PreferenceCommands
from explorer_app.window.shell.recipe_clipboard import RecipeClipboard
from explorer_app.window.shell.session_panels import SessionPanels
from explorer_app.window.shell.sounds_link import SoundsLink
from explorer_app.window.shell.status_bar import StatusBar
from explorer_app.window.shell.thumbnail_dispatcher import ThumbnailDispatcher
from explorer_app.window.shell.timeline_link import TimelineLink
from explorer_app.window.shell.top_bar import TopBar
from explorer_app.window.shell.view_commands import ViewCommands
from explorer_app.window.shell.window_layout import WindowLayout

if TYPE_CHECKING:
    from explorer_app.window.controllers.controllers_panel import ControllersPanel
    from explorer_app.window.edits.edits_panel import EditsPanel
    from explorer_app.window.grids.variation_view import VariationView
    from explorer_app.window.history.history_strip import HistoryStrip
    from explorer_app.window.latent.latent_panel import LatentPanel
    from explorer_app.window.layers.layers_panel import LayersPanel
    from explorer_app.window.library.library_panel import LibraryPanel
    from explorer_app.window.mix.mix_panel import MixPanel
    from explorer_app.window.model.model_panel import ModelPanel
    from explorer_app.window.performance.performance_link import PerformanceLink
    from explorer_app.window.performance.performance_panel import PerformancePanel
    from explorer_app.window.sliders.sliders_panel import SlidersPanel
    from explorer_app.window.sliders.xy_pad import XyPad
    from explorer_app.window.timeline.timeline_panel import TimelinePanel

_LEAST_SIZE = (640, 440)
_LEAST_LOW_PX = 320
"""Minimum height of the window on a screen that is too low for the usual one."""
_TITLE_BAR_PX = 40
_LATEST_PANELS_MS = 400
"""Delay after which an unpainted (minimised or covered) window creates its panels, in ms."""


class Closes(Protocol):
    """What runs behind the window, and ends with it."""

    def close(self) -> None:
        """Stop, and wait for the end. May be called twice."""
        ...


class MainWindow(QMainWindow):
    """Canvas, docks, menus.

    Parameters
    ----------
    controller
        The objects that handle the requests of the window. Only the window knows it: each part below gets the ones of
        these objects that it uses.
    settings, messages
        Preferences, and the log of user messages.
    """

    def __init__(self, controller: Controller, settings: Settings, messages: MessageLog) -> None:
        self._focus_keys = FocusKeys()
        super().__init__()
        self._engine, self._editing, self._ladder = controller.engine, controller.editing, controller.ladder
        self._files, self._export = controller.files, controller.export
        self._playback, self._mixing = controller.playback, controller.mixing
        self._snapshots = controller.snapshots
        self._grid, self._arithmetic = controller.grid, controller.arithmetic
        self._learning, self._tuning = controller.learning, controller.tuning
        self._live = controller.live
        self._played = controller.played
        self._sounds, self._local_editing = controller.sounds, controller.local_editing
        self._recipes = RecipeClipboard(controller.engine, messages)
        self._parameter_requests = ParameterRequests(self._editing, self._playback, self._live, self._sounds)
        self._work: Closes = controller
        self._settings = settings
        self._messages = messages
        self._performance_link: PerformanceLink | None = None
        self._variations: VariationView | None = None
        self.setWindowIcon(app_icon())
        self.setAcceptDrops(True)
        free = self.screen().availableGeometry().height() - _TITLE_BAR_PX
        self.setMinimumSize(theme.px(_LEAST_SIZE[0]), min(theme.px(_LEAST_SIZE[1]), max(theme.px(_LEAST_LOW_PX), free)))
        self._make_parts(controller)
        self._make_docks()
        self._make_menus()
        self.comparing = Comparing(
            self.canvas,
            controller.engine,
            controller.editing,
            controller.whole_pictures,
            self.actions_by_key["before"],
            self,
        )
        self.tools = EditingTools(
            self.canvas,
            self.area.around_canvas,
            controller.engine,
            controller.editing,
            controller.point_drag,
            controller.photo_projection,
            controller.files,
            messages,
            self.actions_by_key,
            self,
        )
        self._connect()
        self._show_model()

    # -- parts ------------------------------------------------------------------------------------------------------

    def _make_parts(self, controller: Controller) -> None:
        self.quit_question = QuitQuestion(self, self._export, self._editing, self._messages)
        self.canvas = Canvas()
        self.outputs = Outputs(self, self._engine.preview, self._settings, self._messages)
        self._thumbnails = ThumbnailDispatcher(controller.thumbnails, self)
        self.actions_by_key: dict[str, QAction] = {}
        self.commands = self._make_commands(controller)
        self.actions_by_key.update(actions.make_actions(self, self.commands))
        self.addActions(list(self.actions_by_key.values()))
        groups: dict[str, QActionGroup] = {}
        for spec in ACTIONS:
            if spec.group:
                groups.setdefault(spec.group, QActionGroup(self)).addAction(self.actions_by_key[spec.key])
        self.actions_by_key["panels"].setChecked(True)
        self.actions_by_key[f"theme-{self._settings.values.theme}"].setChecked(True)
        self.actions_by_key["glide"].setChecked(self._settings.values.flick_glide)

        self.canvas.glides = self._settings.values.flick_glide
        self.canvas.transform.set_action(self.actions_by_key["transform"])
        self.canvas.addActions(
            [
                self.actions_by_key[key]
                for key in ("save-picture", "keep", "mix-in", "variations", "random", "fit", "one-to-one")
            ]
        )
        self.state = CanvasOverlay(self.canvas)
        self.message_strip = MessageStrip(self._messages)
        self.top_bar = TopBar(self)
        self.status_bar = StatusBar(self)
        self.setStatusBar(self.status_bar)

    def _make_commands(self, controller: Controller) -> Commands:
        dialogs = self._dialogs = Dialogs(self, self._settings)
        engine, editing, messages, thumbnails = self._engine, self._editing, self._messages, self._thumbnails
        return Commands(
            files=FileCommands(
                dialogs,
                self._files,
                self._export,
                controller.pictures,
                editing,
                engine,
                self._settings,
                thumbnails,
                controller.grid,
                controller.sounds,
            ),
            edit=EditCommands(editing, controller.mixing, self.canvas, self._recipes),
            preferences=PreferenceCommands(dialogs, self._settings, self.canvas, self.actions_by_key),
            view=ViewCommands(self, messages),
            model=ModelCommands(
                dialogs,
                self,
                engine,
                editing,
                controller.directions,
                self._tuning,
                self._learning,
                messages,
                thumbnails,
                controller.files,
                controller.snapshots,
            ),
            play=PlayCommands(controller.playback),
            help=HelpCommands(dialogs, self, engine, messages),
        )

    def _make_docks(self) -> None:
        self.area = PictureArea(self.canvas, self._snapshots, self.message_strip, self)
        self.workspace = self.area.workspace
        self.setCentralWidget(self.area)
        bars = (self.top_bar, self.status_bar)
        self._layout = WindowLayout(self, self.area, bars, self._settings, self.actions_by_key)
        self.docks = {spec.key: self._make_dock(spec) for spec in DOCKS}
        self.workspace.set_docks(self.docks)
        self.workspace.switched.connect(self._show_workspace)
        self.workspace.panels_shown.connect(self.actions_by_key["panels"].setChecked)
        self.addActions(self.workspace.toggles)

    def _make_dock(self, spec: DockSpec) -> Dock:
        return Dock(
            f"{spec.key}-dock",
            spec.title,
            spec.make,
            shortcut=spec.shortcut,
            pages=spec.pages,
            least=QSize(*map(theme.px, spec.least)),
            wanted=QSize(*map(theme.px, spec.wanted)),
            scrolls=spec.scrolls or (spec.scrolls_if_low and theme.is_on_low_screen(self)),
            extras=[ActionButton(self.actions_by_key[key], role=role) for key, role in spec.buttons.items()],
            first_height=theme.px(spec.first_height),
        )

    def _make_menus(self) -> None:
        self.recent_menu = self._recent_menu(())
        self.device_menu = DeviceMenu(lambda: self._engine.devices.state, self)
        inspect = [self.actions_by_key["open-model"], self.actions_by_key["bundled"], self.actions_by_key["inspect"]]
        self.top_bar.set_menus(self._recent_menu(inspect), self.device_menu)
        toggles = self.workspace.toggles
        bar = self.top_bar.menu_bar
        self.menus = actions.fill_menu_bar(bar, self.actions_by_key, toggles, self.recent_menu, self.device_menu)
        self.menus["View"].insertMenu(self.actions_by_key["next-panel"], self.outputs.make_menu(self.menus["View"]))
        self.top_bar.set_workspaces([self.actions_by_key[f"workspace-{name}"] for name in WORKSPACES])
        self.setMenuWidget(self.top_bar)

    def _recent_menu(self, below: Any) -> RecentMenu:
        menu = RecentMenu(lambda: self._settings.values.recent_models, self, below)
        menu.path_chosen.connect(self._files.open_model)
        return menu

    # -- connections ------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        engine, editing = self._engine, self._editing
        self._session_panels = SessionPanels(self.canvas, editing, engine, self)
        self.canvas.follow(engine.preview)
        engine.model_changed.connect(self._show_model)
        self._live.learning_changed.connect(self.message_strip.close_needless)
        self._editing.history_changed.connect(self.message_strip.close_needless)
        self._bars = Bars(self, self.top_bar, self.status_bar, self.message_strip, engine, self._export, self._files)
        strip, has_snapshot = self.message_strip, self._snapshots.has
        self._picture_state = PictureState(self.state, strip, self.docks, engine, has_snapshot, self)
        self._action_states = ActionStates(self.actions_by_key, engine, editing, self._export, self)
        self.state.open_requested.connect(self.commands.files.open_model)
        self.state.cancel_requested.connect(self._files.cancel_loading)
        self.state.bundled_requested.connect(self.commands.files.open_bundled)
        self.device_menu.device_chosen.connect(engine.devices.choose_device)
        self.device_menu.precision_chosen.connect(engine.devices.choose_precision)
        self.device_menu.again_requested.connect(engine.devices.try_again)
        self.status_bar.export_cancel_requested.connect(self._export.cancel)
        self.status_bar.exports_requested.connect(self.commands.files.show_exports)
        BackgroundWork(self.status_bar, self._learning, self._tuning, self.actions_by_key, self)
        self.notices = ExportNotices(self._export, self._settings, self)
        self.area.caption_moved.connect(self.tools.points.place)
        self.message_strip.progress.cancel_requested.connect(self._files.cancel_loading)
        self.input_age = InputAge(engine.preview.input_came, self)
        self._grid.changed.connect(self._show_grid)
        self.tools.share_canvas(self._grid)
        panel_links.GridMemory(self._grid, self._settings, self)
        self.hints = Hints(self.docks, self.workspace, self._settings, self)
        self.hints.watch("latent", self.canvas.edited)
        self._playback.playing_changed.connect(self._show_playing)
        self.outputs.actions = tuple(self.actions_by_key[key] for key in ("play", "record", "output"))
        self.outputs.changed.connect(lambda: self.actions_by_key["output"].setChecked(self.outputs.is_open))
        self.docks["layers"].visibilityChanged.connect(engine.preview.set_reading_values)
        for key, dock in self.docks.items():
            dock.made.connect(partial(self._panel_made, key))

    # -- panels -----------------------------------------------------------------------------------------------------

    @property
    def latent(self) -> LatentPanel:
        """The latent panel. Like the other panels it is created on first access."""
        return cast("LatentPanel", self.docks["latent"].panel)

    @property
    def sliders(self) -> SlidersPanel:
        """The panel of direction sliders and w axes."""
        return cast("SlidersPanel", self.docks["sliders"].panel)

    @property
    def mix(self) -> MixPanel:
        """The panel of mix sources."""
        return cast("MixPanel", self.docks["mix"].panel)

    @property
    def history(self) -> HistoryStrip:
        """The panel of steps and kept pictures."""
        return cast("HistoryStrip", self.docks["history"].panel)

    @property
    def performance(self) -> PerformancePanel:
        """The panel of frame and kernel times."""
        return cast("PerformancePanel", self.docks["performance"].panel)

    @property
    def layers(self) -> LayersPanel:
        """The panel of the model's layers."""
        return cast("LayersPanel", self.docks["layers"].panel)

    @property
    def model(self) -> ModelPanel:
        """The panel of the model and the device."""
        return cast("ModelPanel", self.docks["model"].panel)

    @property
    def pad(self) -> XyPad:
        """The pad of two directions."""
        return cast("XyPad", self.docks["pad"].panel)

    @property
    def timeline(self) -> TimelinePanel:
        """The panel of the timeline."""
        return cast("TimelinePanel", self.docks["timeline"].panel)

    @property
    def controllers(self) -> ControllersPanel:
        """The panel of controllers and what they move."""
        return cast("ControllersPanel", self.docks["controllers"].panel)

    @property
    def variations(self) -> VariationView:
        """The grid over the canvas. Like a panel it is created on first access."""
        if self._variations is None:
            from explorer_app.window.grids.variation_view import VariationView

            self._variations = view = VariationView(self.canvas, self._grid, self._engine, self._editing)
            view.save_requested.connect(self.commands.files.save_sheet)
        return self._variations

    @Slot()
    def _show_grid(self) -> None:
        self.actions_by_key["variations"].setChecked(self._grid.is_on)
        if self._grid.is_on and self._variations is None:
            self.variations.raise_()

    def _panel_made(self, key: str) -> None:
        """Connect a new panel, and pass it the current model, session and state."""
        link = getattr(self, f"_link_{key}", None)
        if link is not None:
            link()
        dock = self.docks[key]
        panel = dock.panel
        if isinstance(panel, SessionPanel):
            self.hints.watch(key, panel.edited)
            self._session_panels.add(panel, dock)

    def _link_latent(self) -> None:
        panel_links.LatentLink(self.latent, self._editing, self)
        panel_links.PlayedLink(partial(show_played, self.latent), self._played, self)
        self._thumbnails.serve(self.latent, "latent")

    def _link_sliders(self) -> None:
        self.sliders.find_requested.connect(self.commands.model.find_directions)
        panel_links.PlayedLink(self.sliders.show_played, self._played, self)

    def _link_mix(self) -> None:
        self.mix.mix_in_requested.connect(self._mixing.add_current)
        self._thumbnails.serve(self.mix, "mix")
        KeptDrop(self.mix, lambda numbers, place: self._mixing.add_kept(numbers))

    def _link_history(self) -> None:
        panel_links.HistoryLink(
            self.history, self._engine, self._editing, self.comparing, self._grid, self._arithmetic, self
        )
        self._thumbnails.serve(self.history, "history", on_disk=True)

    def _link_library(self) -> None:
        from explorer_app.window.shell.library_link import LibraryLink

        parts = (self._editing, self._mixing, self._playback, self._engine, self._files)
        panel = cast("LibraryPanel", self.docks["library"].panel)
        LibraryLink(panel, *parts, self._thumbnails, self.comparing, self._recipes, self._dialogs, self)

    def _link_performance(self) -> None:
        from explorer_app.window.performance.performance_link import PerformanceLink

        self.performance.measure_requested.connect(self.actions_by_key["workspace-measure"].trigger)
        dock = self.docks["performance"]
        self._performance_link = PerformanceLink(
            self.performance, dock, self.workspace, self._engine, self._ladder, self._settings, self
        )

    def _link_pad(self) -> None:
        panel_links.PadLink(self.pad, self._playback, self._arithmetic, self)

    def _link_timeline(self) -> None:
        TimelineLink(self.timeline, self._playback, self._engine, self._messages, self)
        SoundsLink(self.timeline, self._sounds, self._settings, self)
        self.timeline.export_requested.connect(self.actions_by_key["export"].trigger)
        self._thumbnails.serve(self.timeline, "timeline")

    def _link_controllers(self) -> None:
        dialogs = Dialogs(self, self._settings)
        dock = self.docks["controllers"]
        ControllersLink(self.controllers, dock, self._live, self._sounds, self._editing, dialogs, self)

    def _link_layers(self) -> None:
        panel_links.LayersLink(self.layers, self.docks["layers"], self._engine, self._editing, self)

    def _link_edits(self) -> None:
        panel = cast("EditsPanel", self.docks["edits"].panel)
        panel_links.EditsLink(panel, self._local_editing, self._editing, self.tools, self)
        panel_links.PlayedLink(partial(show_played, panel), self._played, self)
        self._thumbnails.serve(panel, "edits")

    def _link_model(self) -> None:
        self.model.set_recent_menu(self._recent_menu(()))
        self.model.set_device_menu(self.device_menu)
        self.model.open_requested.connect(self.commands.files.open_model)
        self.model.inspect_requested.connect(self.commands.model.inspect)
        panel_links.ModelLink(self.model, self._engine, self)

    @Slot()
    def _show_model(self) -> None:
        undo_drag_of(QApplication.focusWidget())  # of a value that this model may not have
        facts = self._engine.model.facts
        self._thumbnails.retry("" if facts is None else facts.model_id)
        self.canvas.show_model(facts)
        self.canvas.show_frame(self._engine.preview.frame)
        self.canvas.show_stored(self._engine.stored_picture)

    @Slot()
    def _show_playing(self) -> None:
        self.actions_by_key["play"].setChecked(self._playback.is_playing)
        self.actions_by_key["record"].setChecked(self._playback.is_recording)

    # -- files that are dropped -------------------------------------------------------------------------------------

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802 - Qt's name
        """Accept files, and show the effect of dropping them."""
        path = dropped(event)
        if path is None:
            event.ignore()
            return
        self.canvas.show_drop(drop_text(event))
        accept_copy(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:  # noqa: N802 - Qt's name
        """Let the pointer show a copy."""
        accept_copy(event)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:  # noqa: N802 - Qt's name
        """Hide the drop text when the drag leaves the window."""
        self.canvas.show_drop("")
        super().dragLeaveEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802 - Qt's name
        """Open the dropped file according to its suffix."""
        self.canvas.show_drop("")
        path, sounds = dropped(event), dropped_sounds(event)
        if path is not None:
            accept_copy(event)
            self._sounds.add(sounds) if sounds else self._files.open(path)

    # -- workspaces -------------------------------------------------------------------------------------------------

    @Slot(str)
    def _show_workspace(self, name: str) -> None:
        self.actions_by_key[f"workspace-{name}"].setChecked(True)

    def set_picture_alone(self, on: bool) -> None:
        """Fill the screen with the canvas, or restore the window."""
        self._layout.set_picture_alone(on)

    def customEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Carry out a request of a control's menu."""
        if not self._parameter_requests.handle(event):
            super().customEvent(event)

    def event(self, event: QEvent) -> bool:
        """Note who has the focus when a key is pressed."""
        self._focus_keys.note(event)
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Escape stops waiting for a control, ends a comparison, then leaves full screen; Enter presses a button."""
        if event.key() == Qt.Key.Key_Escape and self._live.learning is not None:
            self._live.stop_learning()
        elif event.key() == Qt.Key.Key_Escape and self.comparing.is_on:
            self.comparing.leave()
        elif event.key() == Qt.Key.Key_Escape and self._layout.is_picture_alone:
            self.set_picture_alone(False)
        elif not self._focus_keys.act(event):
            super().keyPressEvent(event)

    # -- geometry and closing --------------------------------------------------------------------------------------

    def show_restored(self) -> None:
        """Show the window with its stored geometry and docks; on the first start, at a comfortable size."""
        self._layout.restore_geometry()
        self.show()
        handle = self.windowHandle()
        self.input_age.watch(handle)
        handle.screenChanged.connect(lambda screen: self._editing.follow_screen(screen.refreshRate()))
        self._editing.follow_screen(handle.screen().refreshRate())
        self.canvas.painted_first.connect(self.workspace.make_panels)
        QTimer.singleShot(_LATEST_PANELS_MS, self.workspace, self.workspace.make_panels)
        self._show_hints()
        self._engine.model_changed.connect(self._show_hints)
        self._layout.restore_docks()
        self.canvas.setFocus()

    @Slot()
    def _show_hints(self) -> None:
        """Show the hints of the first start while there is a model, since they describe what can be done with it."""
        if self._engine.model.facts is not None:
            self.hints.begin()
        else:
            self.hints.withdraw()

    def close_now(self) -> None:
        """Close without asking; a running export can be resumed at the next start."""
        self.quit_question.allow()
        self.close()

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: N802 - Qt's names
        """Move the focus by Tab, panel by panel."""
        takes_all = QGuiApplication.styleHints().tabFocusBehavior() == Qt.TabFocusBehavior.TabFocusAllControls
        stop = self.workspace.focus_order.tab_stop_after(self.focusWidget(), 1 if next else -1) if takes_all else None
        if stop is None:
            return super().focusNextPrevChild(next)
        stop.setFocus(Qt.FocusReason.TabFocusReason if next else Qt.FocusReason.BacktabFocusReason)
        scroll_to(stop)
        return True

    def remember_layout(self) -> None:
        """Put geometry and docks among the preferences, unless panels are hidden at present."""
        self._layout.remember()

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """Store geometry and docks, and stop all work; ask first if an export runs or the session is not saved."""
        if not self.quit_question.may_close():
            event.ignore()
            return
        self.canvas.stop_glide()
        self.outputs.close()
        self.set_picture_alone(False)
        self.workspace.set_panels_shown(True)
        self.remember_layout()
        if self._performance_link is not None:
            self._performance_link.stop()
        self._bars.stop()
        self.workspace.stop_making_panels()
        self.message_strip.stop()
        self.hide()  # closing waits for the renderer's current step
        self._work.close()
        self._settings.save()
        super().closeEvent(event)

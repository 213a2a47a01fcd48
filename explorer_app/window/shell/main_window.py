"""The main window: builds its parts, connects them to the controller, stores its geometry."""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from PySide6.QtCore import QByteArray, QSize, Qt, QTimer, Slot
from PySide6.QtGui import (
    QActionGroup,
    QCloseEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QKeyEvent,
)
from PySide6.QtWidgets import QMainWindow, QVBoxLayout, QWidget

from explorer_app.controller import Controller
from explorer_app.messages import MessageLog
from explorer_app.settings import Settings
from explorer_app.window.actions import actions
from explorer_app.window.actions.action_table import ACTIONS
from explorer_app.window.canvas.canvas import Canvas
from explorer_app.window.canvas.canvas_overlay import CanvasOverlay
from explorer_app.window.canvas.comparing import Comparing
from explorer_app.window.canvas.picture_stage import EDGE_PX
from explorer_app.window.controls.action_button import ActionButton
from explorer_app.window.dialogs.quit_question import QuitQuestion
from explorer_app.window.docks.dock import Dock
from explorer_app.window.docks.layouts import WORKSPACES
from explorer_app.window.docks.session_views import SessionViews
from explorer_app.window.docks.workspace import Workspace
from explorer_app.window.look import theme
from explorer_app.window.look.app_icon import app_icon
from explorer_app.window.messages.message_strip import MessageStrip
from explorer_app.window.model.device_menu import DeviceMenu
from explorer_app.window.model.model_text import loading_text
from explorer_app.window.model.recent_menu import RecentMenu
from explorer_app.window.performance.input_age import InputAge
from explorer_app.window.shell.commands import FRAME, Commands
from explorer_app.window.shell.dock_table import DOCKS, DockSpec, SessionPanel
from explorer_app.window.shell.file_drop import drop_text, dropped
from explorer_app.window.shell.hints import Hints
from explorer_app.window.shell.status_bar import StatusBar
from explorer_app.window.shell.thumbnail_dispatcher import ThumbnailDispatcher
from explorer_app.window.shell.top_bar import TopBar
from gpu_backend import printable

if TYPE_CHECKING:
    from explorer_app.window.history.history_strip import HistoryStrip
    from explorer_app.window.latent.latent_panel import LatentPanel
    from explorer_app.window.layers.layers_panel import LayersPanel
    from explorer_app.window.mix.mix_panel import MixPanel
    from explorer_app.window.model.model_panel import ModelPanel
    from explorer_app.window.performance.performance_link import PerformanceLink
    from explorer_app.window.performance.performance_panel import PerformancePanel
    from explorer_app.window.sliders.sliders_panel import SlidersPanel
    from gpu_backend import Directions

_FIRST_SIZE = (1600, 980)
_LEAST_SIZE = (640, 440)
_LATEST_PANELS_MS = 400
"""Delay after which an unpainted (minimised or covered) window creates its panels, in ms."""

_SPEED_MS = 250
"""Shortest interval between updates of the top bar's figures, so that they stay readable."""


class MainWindow(QMainWindow):
    """Canvas, docks, menus.

    Parameters
    ----------
    controller
        Handles every request of the window, and is notified when frames are painted.
    settings, messages
        Preferences, and the log of user messages.
    """

    def __init__(self, controller: Controller, settings: Settings, messages: MessageLog) -> None:
        super().__init__()
        self._controller = controller
        self._engine, self._preview, self._editing = controller.engine, controller.engine.preview, controller.editing
        self._settings = settings
        self._messages = messages
        self._has_frame = False
        self._is_picture_alone = False
        self._had_panels = True
        self.performance_link: PerformanceLink | None = None
        self.setWindowTitle("Latent Loom")
        self.setWindowIcon(app_icon())
        self.setAcceptDrops(True)
        self.setMinimumSize(theme.px(_LEAST_SIZE[0]), theme.px(_LEAST_SIZE[1]))
        self._make_parts()
        self._make_docks()
        self._make_menus()
        self._connect()
        self._speed_timer = QTimer(self, singleShot=True, interval=_SPEED_MS)
        self._speed_timer.timeout.connect(self._show_speed)
        self._show_everything()

    # -- parts ------------------------------------------------------------------------------------------------------

    def _make_parts(self) -> None:
        self.quit_question = QuitQuestion(self, self._controller.export, self._messages)
        self.commands = Commands(self, self, self._controller, self._settings, self._messages)
        self.actions_by_key = actions.make_actions(self, self.commands)
        self.addActions(list(self.actions_by_key.values()))
        groups: dict[str, QActionGroup] = {}
        for spec in ACTIONS:
            if spec.group:
                groups.setdefault(spec.group, QActionGroup(self)).addAction(self.actions_by_key[spec.key])
        self.actions_by_key["panels"].setChecked(True)
        self.actions_by_key[f"theme-{self._settings.values.theme}"].setChecked(True)
        self.actions_by_key["glide"].setChecked(self._settings.values.flick_glide)

        self.canvas = Canvas()
        self._session_views = SessionViews([self.canvas])
        self._session_panels: list[SessionPanel] = []
        self.canvas.glides = self._settings.values.flick_glide
        self.canvas.transform.set_action(self.actions_by_key["transform"])
        self.canvas.addActions(
            [self.actions_by_key[key] for key in ("save-picture", "keep", "mix-in", "random", "fit", "one-to-one")]
        )
        self.state = CanvasOverlay(self.canvas)
        self.message_strip = MessageStrip(self._messages)
        self.top_bar = TopBar(self)
        self.status_bar = StatusBar(self)
        self.setStatusBar(self.status_bar)
        self._thumbnails = ThumbnailDispatcher(self._controller.thumbnails, self)

    def _make_docks(self) -> None:
        area = QWidget(self)
        centre = QWidget(area)
        around_canvas = QVBoxLayout(centre)
        around_canvas.setContentsMargins(0, 0, 0, 0)
        around_canvas.setSpacing(0)
        around_canvas.addWidget(self.canvas, 1)
        around_canvas.addWidget(self.message_strip)
        self.workspace = Workspace(centre, self.canvas, area)
        self._around = QVBoxLayout(area)
        self._around.setContentsMargins(theme.GAP, theme.GAP, theme.GAP, theme.GAP)
        self._around.addWidget(self.workspace)
        self.setCentralWidget(area)
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
            pages=spec.pages,
            least=QSize(*map(theme.px, spec.least)),
            wanted=QSize(*map(theme.px, spec.wanted)),
            scrolls=spec.scrolls,
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
        self.top_bar.set_workspaces([self.actions_by_key[f"workspace-{name}"] for name in WORKSPACES])
        self.setMenuWidget(self.top_bar)

    def _recent_menu(self, below: Any) -> RecentMenu:
        menu = RecentMenu(lambda: self._settings.values.recent_models, self, below)
        menu.path_chosen.connect(self._controller.files.open_model)
        return menu

    # -- connections ------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        controller, engine, editing = self._controller, self._engine, self._editing
        editing.session_changed.connect(self._show_session)
        self.canvas.follow(self._preview)
        self._preview.frame_changed.connect(self._show_frame)
        engine.model_changed.connect(self._show_model)
        engine.devices.changed.connect(self._show_device)
        editing.history_changed.connect(self._show_history)
        self._preview.statistics_changed.connect(self._statistics_changed)
        engine.model.loading_changed.connect(self._show_loading)
        controller.export.changed.connect(self._show_export)
        editing.drifting_changed.connect(self._show_drift)
        self._connect_editor(self.canvas)
        self.comparing = Comparing(
            self.canvas, engine, editing, controller.whole_pictures, self.actions_by_key["before"], self
        )
        self.state.open_requested.connect(self.commands.open_model)
        self.state.cancel_requested.connect(controller.files.cancel_loading)
        self.state.bundled_requested.connect(self.commands.open_bundled)
        self.device_menu.device_chosen.connect(engine.devices.choose_device)
        self.device_menu.precision_chosen.connect(engine.devices.choose_precision)
        self.device_menu.again_requested.connect(engine.devices.try_again)
        self.status_bar.export_cancel_requested.connect(controller.export.cancel)
        self.message_strip.filled.connect(self._show_caption)
        self.message_strip.progress.cancel_requested.connect(controller.files.cancel_loading)
        self.input_age = InputAge(self)
        self.input_age.input_came.connect(self._preview.input_came)
        self.hints = Hints(self.docks, self.workspace, self._settings, self)
        self.hints.watch("latent", self.canvas.edited)
        self.docks["layers"].visibilityChanged.connect(self._preview.set_reading_values)
        for key, dock in self.docks.items():
            dock.made.connect(partial(self._panel_made, key))

    def serve_thumbnails(self, widget: Any, name: str) -> None:
        """Bring a widget the small pictures that it asks for with `thumbnail_wanted(key, what)`."""
        widget.thumbnail_wanted.connect(lambda key, what: self._thumbnails.request(name, widget, key, what))
        widget.destroyed.connect(lambda: self._thumbnails.forget(name))

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

    def _panel_made(self, key: str) -> None:
        """Connect a new panel, and pass it the current model, session and state."""
        connect = getattr(self, f"_connect_{key}", None)
        if connect is not None:
            connect()
        dock = self.docks[key]
        panel = dock.panel
        if isinstance(panel, SessionPanel):
            self._connect_editor(panel)
            self.hints.watch(key, panel.edited)
            model = self._engine.model
            panel.show_model(model.facts, cast("Directions | None", model.directions))
            self._session_panels.append(panel)
            self._session_views.add(panel)
            dock.visibilityChanged.connect(partial(self._session_views.set_on_show, panel))

    def _connect_editor(self, panel: Canvas | SessionPanel) -> None:
        source = type(panel).__name__
        panel.edited.connect(partial(self._editing.edit, source=source))
        panel.gesture_cancelled.connect(partial(self._editing.cancel_gesture, source))

    def _connect_latent(self) -> None:
        self.latent.random_requested.connect(self._editing.random_seed)
        self.latent.drift_changed.connect(self._drift_requested)
        self.serve_thumbnails(self.latent, "latent")
        self._show_drift()

    def _connect_sliders(self) -> None:
        self.sliders.find_requested.connect(self.commands.find_directions)

    def _connect_mix(self) -> None:
        self.mix.mix_in_requested.connect(self._editing.mix_in_current)
        self.serve_thumbnails(self.mix, "mix")

    def _connect_history(self) -> None:
        history, editing = self.history, self._editing
        history.go_to_requested.connect(editing.go_to)
        history.kept_requested.connect(editing.go_to_kept)
        history.star_requested.connect(editing.set_starred)
        history.rename_requested.connect(editing.rename_kept)
        history.move_requested.connect(editing.move_kept)
        history.compare_requested.connect(self.comparing.compare)
        self.serve_thumbnails(history, "history")
        history.show_history(editing.history)

    def _connect_performance(self) -> None:
        from explorer_app.window.performance.performance_link import PerformanceLink

        dock = self.docks["performance"]
        self.performance.measure_requested.connect(self.actions_by_key["workspace-measure"].trigger)
        self.performance.set_compact(self.workspace.name != "measure")
        self.performance_link = PerformanceLink(self.performance, self._engine, self._settings, self)
        dock.visibilityChanged.connect(self.performance_link.set_on_show)
        if dock.is_seen:
            self.performance_link.set_on_show(True)

    def _connect_layers(self) -> None:
        dock = self.docks["layers"]
        dock.visibilityChanged.connect(self.layers.set_on_show)
        self.layers.set_on_show(dock.is_seen)
        self.layers.show_frame(self._preview.frame)

    def _connect_model(self) -> None:
        self.model.set_recent_menu(self._recent_menu(()))
        self.model.set_device_menu(self.device_menu)
        self.model.open_requested.connect(self.commands.open_model)
        self.model.inspect_requested.connect(self.commands.inspect)
        self.model.show_model(self._engine.model.facts, is_bundled=self._engine.model.is_bundled)
        self.model.show_devices(self._engine.devices.state)

    # -- updates from the controller -------------------------------------------------------------------------------

    def _show_everything(self) -> None:
        self._show_model()
        self._show_session()
        self._show_history()
        self._show_export()
        self._show_drift()
        self._show_speed()

    @Slot()
    def _show_session(self) -> None:
        self._session_views.show(self._editing.session)
        self.actions_by_key["layer"].setChecked(self._editing.session.tap is not None)

    @Slot()
    def _show_frame(self) -> None:
        if self.docks["layers"].is_made:
            self.layers.show_frame(self._preview.frame)
        if self._has_frame != (self._preview.frame is not None):
            self._show_state()
            self._enable()

    @Slot()
    def _show_model(self) -> None:
        model = self._engine.model
        facts = model.facts
        directions = cast("Directions | None", model.directions)
        self._thumbnails.retry()
        self.canvas.show_model(facts)
        self.canvas.show_frame(self._preview.frame)
        self.canvas.show_stored(self._engine.stored_picture)
        if self.docks["layers"].is_made:
            self.layers.show_frame(self._preview.frame)
        for panel in self._session_panels:
            panel.show_model(facts, directions)
        if self.docks["model"].is_made:
            self.model.show_model(facts, is_bundled=model.is_bundled)
        self.top_bar.show_model(facts.name if facts else "", facts.path if facts else "")
        self.setWindowTitle(f"{printable(facts.name)} – Latent Loom" if facts else "Latent Loom")
        self._show_device()
        self._enable()

    @Slot()
    def _show_device(self) -> None:
        devices = self._engine.devices.state
        if self.docks["model"].is_made:
            self.model.show_devices(devices)
        self.top_bar.show_devices(devices)
        self.message_strip.close_needless()
        self._show_loading()

    @Slot()
    def _show_history(self) -> None:
        history = self._editing.history
        if self.docks["history"].is_made:
            self.history.show_history(history)
        for key, label in (("undo", history.undo_label), ("redo", history.redo_label)):
            action = self.actions_by_key[key]
            word = key.capitalize()
            action.setText(f"&{word} {label.lower()}" if label else f"&{word}")
            action.setIconText(word)
        self._enable()

    @Slot()
    def _statistics_changed(self) -> None:
        if self.docks["performance"].is_made:
            self.performance.show_statistics(self._preview.statistics)
        if not self._speed_timer.isActive():
            self._speed_timer.start()

    @Slot()
    def _show_speed(self) -> None:
        statistics = self._preview.statistics
        self.top_bar.show_speed(statistics.fps, statistics.newest_ms)

    @Slot()
    def _show_loading(self) -> None:
        loading = self._engine.model.loading
        self.status_bar.show_loading(loading, self._engine.devices.state)
        is_empty = loading is not None and self._engine.model.facts is None
        name = printable(Path(loading.path).name) if loading is not None else ""
        for spec in DOCKS:
            if spec.needs_model:
                self.docks[spec.key].show_notice(f"{name} is being read." if is_empty else "")
        self._show_state()

    def _show_state(self) -> None:
        """Choose the overlay of an empty canvas, or the progress line below a picture."""
        loading, facts, frame = self._engine.model.loading, self._engine.model.facts, self._preview.frame
        self._has_frame = frame is not None
        stored = self._engine.stored_picture
        is_stored = stored is not None and facts is not None and (loading is None or loading.path == facts.path)
        if loading is None or frame is None or is_stored:
            self.message_strip.hide_progress()
        if is_stored:
            self.state.show_nothing()  # the status bar shows the progress
        elif loading is not None:
            news = printable(Path(loading.path).name), loading_text(loading.stage, loading.share), loading.share
            if frame is not None:
                self.message_strip.show_progress(*news)
                self.state.show_nothing()
            else:
                self.state.show_loading(*news)
        elif facts is None:
            self.state.show_no_model()
        elif frame is None:
            self.state.show_waiting(printable(facts.name), "Rendering the first picture.")
        else:
            self.state.show_nothing()

    @Slot()
    def _show_export(self) -> None:
        self.status_bar.show_export(self._controller.export.progress)
        self.message_strip.close_needless()
        self._enable()

    @Slot()
    def _show_drift(self) -> None:
        on = self._editing.drifting
        if self.docks["latent"].is_made:
            self.latent.show_drift(self._editing.drift_speed if on else 0.0)
        self.actions_by_key["drift"].setChecked(on)

    @Slot(float)
    def _drift_requested(self, speed: float) -> None:
        if speed:
            self._editing.set_drift_speed(speed)
        self._editing.set_drifting(bool(speed))

    def _enable(self) -> None:
        facts, history = self._engine.model.facts, self._editing.history
        there = {
            "model": facts is not None,
            "transform": facts is not None and facts.has_transform,
            "picture": self._preview.frame is not None or self._engine.stored_picture is not None,
            "undo": history.can_undo,
            "redo": history.can_redo,
            "exporting": self._controller.export.progress is not None,
        }
        actions.enable(self.actions_by_key, {need for need, is_there in there.items() if is_there})

    # -- files that are dropped -------------------------------------------------------------------------------------

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802 - Qt's name
        """Accept files, and show the effect of dropping them."""
        path = dropped(event)
        if path is None:
            event.ignore()
            return
        self.canvas.show_drop(drop_text(path))
        event.acceptProposedAction()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:  # noqa: N802 - Qt's name
        """Hide the drop text when the drag leaves the window."""
        self.canvas.show_drop("")
        super().dragLeaveEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802 - Qt's name
        """Open the dropped file according to its suffix."""
        self.canvas.show_drop("")
        path = dropped(event)
        if path is not None:
            event.acceptProposedAction()
            self._controller.files.open(path)

    # -- workspaces -------------------------------------------------------------------------------------------------

    @Slot(str)
    def _show_workspace(self, name: str) -> None:
        self.actions_by_key[f"workspace-{name}"].setChecked(True)
        if self.docks["performance"].is_made:
            self.performance.set_compact(name != "measure")

    @Slot(bool)
    def _show_caption(self, is_strip_filled: bool) -> None:
        """Hide the caption in full screen and while the message strip has lines: they take its room."""
        margin = 0 if is_strip_filled else theme.px(EDGE_PX)
        self.canvas.caption.set_shown(not is_strip_filled and not self._is_picture_alone, margin)

    def set_picture_alone(self, on: bool) -> None:
        """Fill the screen with the canvas, or bring back the window as it was."""
        if on == self._is_picture_alone:
            return
        self._is_picture_alone = on
        self.actions_by_key["picture-alone"].setChecked(on)
        self.top_bar.setVisible(not on)
        self.status_bar.setVisible(not on)
        self._show_caption(not self.message_strip.isHidden())
        edge = 0 if on else theme.GAP
        self._around.setContentsMargins(edge, edge, edge, edge)
        if on:
            self._had_panels = self.workspace.are_panels_shown
            self.workspace.set_panels_shown(False)
            self.setWindowState(self.windowState() | Qt.WindowState.WindowFullScreen)
        else:
            self.setWindowState(self.windowState() & ~Qt.WindowState.WindowFullScreen)
            self.workspace.set_panels_shown(self._had_panels)
        self.canvas.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Escape leaves full screen."""
        if event.key() == Qt.Key.Key_Escape and self._is_picture_alone:
            self.set_picture_alone(False)
        else:
            super().keyPressEvent(event)

    # -- geometry and closing --------------------------------------------------------------------------------------

    def show_restored(self) -> None:
        """Show the window with its stored geometry and docks; on the first start, at a comfortable size."""
        values = self._settings.values
        geometry = QByteArray.fromBase64(values.window_geometry.encode("ascii", "ignore"))
        if geometry.isEmpty() or not self.restoreGeometry(geometry):
            free = self.screen().availableGeometry()
            width, height = (theme.px(size) for size in _FIRST_SIZE)
            self.resize(min(width, free.width() - FRAME[0]), min(height, free.height() - FRAME[1]))
        self.show()
        handle = self.windowHandle()
        self.input_age.watch(handle)
        handle.screenChanged.connect(lambda screen: self._editing.follow_screen(screen.refreshRate()))
        self._editing.follow_screen(handle.screen().refreshRate())
        self.canvas.painted_first.connect(self.workspace.make_panels)
        QTimer.singleShot(_LATEST_PANELS_MS, self.workspace, self.workspace.make_panels)
        self.hints.begin()
        self.workspace.restore(values.layouts, values.workspace)
        self.canvas.setFocus()

    def close_now(self) -> None:
        """Close without asking; a running export can be resumed at the next start."""
        self.quit_question.allow()
        self.close()

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """Store geometry and docks, and stop all work; ask first if an export is running."""
        if not self.quit_question.may_close():
            event.ignore()
            return
        self.canvas.stop_glide()
        self.set_picture_alone(False)
        self._settings.change(
            window_geometry=bytes(self.saveGeometry().toBase64().data()).decode("ascii"),
            workspace=self.workspace.name,
            layouts=self.workspace.texts(),
        )
        if self.performance_link is not None:
            with contextlib.suppress(RuntimeError):
                self.docks["performance"].visibilityChanged.disconnect(self.performance_link.set_on_show)
        self._speed_timer.stop()
        self.workspace.stop_making_panels()
        self.message_strip.stop()
        self.hide()  # closing waits for the renderer's current step
        self._controller.close()
        self._settings.save()
        super().closeEvent(event)

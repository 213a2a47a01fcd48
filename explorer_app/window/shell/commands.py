"""Implements the actions of the table: each calls the controller or opens a dialog."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from PySide6.QtCore import QObject, QSize, QUrl
from PySide6.QtGui import QAction, QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QWidget

from explorer_app.controller import Controller
from explorer_app.exporting.formats.picture_format import FORMATS, PICTURE_ENDINGS, FormatName
from explorer_app.exporting.sequence import MANIFEST_SUFFIX
from explorer_app.logs import log_path
from explorer_app.messages import MessageLog
from explorer_app.session.edits import ZeroSliders, set_truncation
from explorer_app.session.session import Session
from explorer_app.settings import Settings
from explorer_app.window.canvas.canvas import Canvas
from explorer_app.window.canvas.comparing import Comparing
from explorer_app.window.docks.workspace import Workspace
from explorer_app.window.look import appearance, theme
from explorer_app.window.shell.hints import Hints
from explorer_app.window.shell.top_bar import TopBar

if TYPE_CHECKING:
    from explorer_app.controller import DirectionFinding
    from explorer_app.window.history.history_strip import HistoryStrip
    from explorer_app.window.layers.layers_panel import LayersPanel
    from explorer_app.window.performance.performance_panel import PerformancePanel
    from explorer_app.window.sliders.find_directions import FindDirections

_ZOOM_STEP = 1.25

FRAME = (16, 48)
"""Allowance for the window manager's frame, in px; its true size is unknown until the window is shown."""

MODEL_FILES = "Models (*.pkl *.pt *.pth *.safetensors);;All files (*)"
SESSION_FILES = "Sessions (*.loom)"
MANIFEST_FILES = f"Manifests of exports (*{MANIFEST_SUFFIX})"
LATENT_FILES = "Latents (*.npz *.npy *.pt)"
PICTURE_FILES = f"Pictures ({' '.join(f'*{ending}' for ending in PICTURE_ENDINGS)})"
_SAVED_FORMATS: tuple[FormatName, ...] = ("png", "jpeg", "webp", "tiff", "exr")
SAVED_PICTURES = ";;".join(
    f"{FORMATS[name].label} ({' '.join(f'*{ending}' for ending in FORMATS[name].endings)})" for name in _SAVED_FORMATS
)
TRACE_FILES = "Chrome traces (*.json)"


class WindowParts(Protocol):
    """The parts of the main window that commands use; they exist once the window is built."""

    actions_by_key: dict[str, QAction]
    canvas: Canvas
    comparing: Comparing
    hints: Hints
    top_bar: TopBar
    workspace: Workspace

    @property
    def history(self) -> HistoryStrip:
        """The panel of steps and kept pictures. Like the other panels it is created on first access."""
        ...

    @property
    def layers(self) -> LayersPanel:
        """The panel of the model's layers."""
        ...

    @property
    def performance(self) -> PerformancePanel:
        """The panel of frame and kernel times."""
        ...

    def serve_thumbnails(self, widget: Any, name: str) -> None:
        """Connect a widget's `thumbnail_wanted(key, what)` signal to the thumbnail dispatcher."""
        ...

    def set_picture_alone(self, on: bool) -> None:
        """Show only the canvas in full screen, or restore the window."""
        ...


class Commands(QObject):
    """One method per action; `action_table.ACTIONS` names them.

    Dialogs are not modal loops: each is opened and reports its result by a signal.

    Parameters
    ----------
    window
        Parent of the dialogs.
    parts
        The parts of the same window.
    """

    def __init__(
        self, window: QWidget, parts: WindowParts, controller: Controller, settings: Settings, messages: MessageLog
    ) -> None:
        super().__init__(window)
        self._window = window
        self._parts = parts
        self._controller = controller
        self._engine, self._editing, self._files = controller.engine, controller.editing, controller.files
        self._settings = settings
        self._messages = messages

    # -- files ------------------------------------------------------------------------------------------------------

    def open_model(self) -> None:
        """Choose a model file."""
        self._choose_file("model", "Open model", MODEL_FILES, self._files.open_model)

    def open_bundled(self) -> None:
        """Open the model that ships with the program."""
        self._files.open_model(None)

    def open_session(self) -> None:
        """Choose a session file."""
        self._choose_file("session", "Open session", SESSION_FILES, self._files.open_session)

    def save_session(self) -> None:
        """Choose a file for the session and save it."""
        self._choose_target("session", "Save session", SESSION_FILES, "session.loom", self._files.save_session)

    def import_latent(self) -> None:
        """Choose a file of w rows and show it as the latent."""
        self._choose_file("latent", "Import latent", LATENT_FILES, self._files.import_latent)

    def export_latent(self) -> None:
        """Choose a file for the picture's w rows and save them."""
        name = f"{picture_name(self._editing.session)}.npz"
        self._choose_target("latent", "Export latent", LATENT_FILES, name, self._files.export_latent)

    def open_picture(self) -> None:
        """Choose a saved picture and restore its session."""
        self._choose_file("picture", "Restore from picture", PICTURE_FILES, self._files.open_picture)

    def save_picture(self) -> None:
        """Choose a file for the picture and save it."""
        name = f"{picture_name(self._editing.session)}.png"
        self._choose_target("picture", "Save picture", SAVED_PICTURES, name, self._controller.export.save_picture)

    def export_sequence(self) -> None:
        """Open the export dialog."""
        facts = self._engine.model.facts
        if facts is None:
            return
        from explorer_app.window.export.export_dialog import ExportDialog  # dialogs are imported when they are opened

        frame = self._controller.engine.preview.frame
        frame_ms = None if frame is None or frame.is_draft or frame.tap is not None else frame.timings.total_ms
        dialog = ExportDialog(
            self._editing.session, self._editing.history, facts, self._settings, self._window, frame_ms=frame_ms
        )
        dialog.export_requested.connect(self._controller.export.start)
        dialog.picture_requested.connect(self._controller.export.save_picture)
        self._parts.serve_thumbnails(dialog.keys, "export")
        dialog.keys.ask_for_thumbnails()
        self._open(dialog)

    def resume_export(self) -> None:
        """Choose the manifest of an interrupted export and resume it."""
        self._choose_file("export", "Resume export", MANIFEST_FILES, self._controller.export.resume)

    def cancel_export(self) -> None:
        """Cancel the running export."""
        self._controller.export.cancel()

    def quit(self) -> None:
        """Close the window."""
        self._window.close()

    # -- edits ------------------------------------------------------------------------------------------------------

    def undo(self) -> None:
        """Undo the last step; a running glide ends first and is the last step."""
        self._parts.canvas.stop_glide()
        self._editing.undo()

    def redo(self) -> None:
        """Redo the step that was undone last."""
        self._parts.canvas.stop_glide()
        self._editing.redo()

    def mix_in_current(self) -> None:
        """Add the current latent as a mix source."""
        self._editing.mix_in_current()

    def keep_current(self) -> None:
        """Add the current step to the kept pictures, or remove it from them."""
        history = self._editing.history
        if history.current is not None:
            number = history.current.number
            self._editing.set_starred(number, not history.is_kept(number))

    def zero_sliders(self) -> None:
        """Set every direction slider to zero."""
        self._editing.edit(ZeroSliders(), True)

    def reset_truncation(self) -> None:
        """Reset truncation to the value of a new session."""
        self._editing.edit(set_truncation(Session().truncation), True)

    def random_seed(self) -> None:
        """Jump to a random seed."""
        self._editing.random_seed()

    def drift(self, on: bool) -> None:
        """Start or stop drifting over the seed plane."""
        self._editing.set_drifting(on)

    def glide(self, on: bool) -> None:
        """Enable or disable the glide after a flick."""
        self._settings.change(flick_glide=on)
        self._parts.canvas.glides = on
        if not on:
            self._parts.canvas.stop_glide()

    def preferences(self) -> None:
        """Open the preferences."""
        from explorer_app.window.dialogs.preferences_dialog import PreferencesDialog

        dialog = PreferencesDialog(self._settings.values, self._window)
        actions = self._parts.actions_by_key
        dialog.theme_chosen.connect(lambda mode: actions[f"theme-{mode}"].trigger())
        dialog.font_chosen.connect(lambda font: self._settings.change(font=font))
        dialog.glide_chosen.connect(actions["glide"].setChecked)
        dialog.glide_chosen.connect(self.glide)
        dialog.encoders_chosen.connect(lambda count: self._settings.choose("export.threads", str(count or "")))
        self._open(dialog)

    # -- view -------------------------------------------------------------------------------------------------------

    def fit(self) -> None:
        """Show the whole picture."""
        self._parts.canvas.fit()

    def one_to_one(self) -> None:
        """Show the picture's own pixels."""
        self._parts.canvas.one_to_one()

    def zoom_in(self) -> None:
        """Enlarge."""
        self._parts.canvas.zoom_by(_ZOOM_STEP)

    def zoom_out(self) -> None:
        """Shrink."""
        self._parts.canvas.zoom_by(1 / _ZOOM_STEP)

    def before(self, on: bool) -> None:
        """Show the picture before the last step; False shows the current picture again."""
        self._parts.comparing.show_before(on)

    def compare(self) -> None:
        """Compare the selected kept pictures, or the picture with the one before the last step."""
        numbers = self._parts.history.selected_numbers()
        if len(numbers) > 2:
            self._messages.info("Select one or two kept pictures to compare.")
        else:
            self._parts.comparing.compare(numbers)

    def transform(self, on: bool) -> None:
        """Enter or leave transform mode."""
        self._parts.canvas.transform.set_on(on)

    def layer(self, on: bool) -> None:
        """Show the layer that was shown last; False shows the picture."""
        self._parts.layers.toggle(on)

    def workspace_explore(self, on: bool = True) -> None:
        """Show the workspace for finding pictures."""
        self._parts.workspace.switch_to("explore")

    def workspace_measure(self, on: bool = True) -> None:
        """Show the workspace for kernels."""
        self._parts.workspace.switch_to("measure")

    def panels(self, on: bool) -> None:
        """Show all panels, or hide them."""
        self._parts.workspace.set_panels_shown(on)

    def picture_alone(self, on: bool) -> None:
        """Show only the canvas in full screen, or restore the window."""
        self._parts.set_picture_alone(on)

    def next_panel(self) -> None:
        """Move the keyboard focus to the next panel."""
        self._parts.workspace.pass_focus(1)

    def previous_panel(self) -> None:
        """Move the keyboard focus to the previous panel."""
        self._parts.workspace.pass_focus(-1)

    def theme_system(self) -> None:
        """Follow the system's colour scheme."""
        self._set_theme("system")

    def theme_dark(self) -> None:
        """Use the dark theme."""
        self._set_theme("dark")

    def theme_light(self) -> None:
        """Use the light theme."""
        self._set_theme("light")

    def reset_layout(self) -> None:
        """Reset the workspace to its first layout."""
        self._parts.workspace.reset()

    def copy_steps(self) -> None:
        """Copy the table of steps to the clipboard."""
        text = self._parts.performance.csv()
        if not text:
            self._messages.warning("No steps measured yet: show the performance panel and move the picture.")
            return
        QGuiApplication.clipboard().setText(text)
        self._messages.info(f"{len(text.splitlines()) - 1} steps are on the clipboard, with all their columns.")

    def save_trace(self) -> None:
        """Choose a file for the trace and save it."""
        self._choose_target("trace", "Save trace", TRACE_FILES, "trace.json", self._engine.save_trace)

    def _set_theme(self, mode: theme.Mode) -> None:
        app = QApplication.instance()
        if isinstance(app, QApplication):
            self._settings.change(theme=mode)
            appearance.apply(app, mode)

    # -- model and help ---------------------------------------------------------------------------------------------

    def find_directions(self) -> None:
        """Open the dialog that searches for directions."""
        from explorer_app.window.sliders.find_directions import FindDirections

        directions, facts = self._controller.directions, self._engine.model.facts
        if facts is None:
            return
        dialog = FindDirections(facts, self._editing.history.kept, self._window)
        dialog.find_requested.connect(directions.find)
        dialog.cancel_requested.connect(directions.cancel)
        dialog.take_back_requested.connect(directions.take_back)
        dialog.show_state(directions.state)
        show = partial(_show_directions_state, dialog, directions)
        directions.changed.connect(show)
        dialog.finished.connect(lambda _: directions.changed.disconnect(show))
        self._parts.serve_thumbnails(dialog, "directions")
        dialog.ask_for_thumbnails()
        self._open(dialog)

    def show_recent(self) -> None:
        """Open the menu of recent models."""
        self._parts.top_bar.model_button.showMenu()

    def inspect(self) -> None:
        """Show the model panel with all its details."""
        if self._engine.model.facts is not None:
            from explorer_app.window.model.model_details import ModelDetails

            self._open(ModelDetails(self._engine.model.facts, self._window))

    def show_tour(self) -> None:
        """Show the hints of the first start again, in the workspace that has their panels."""
        self._parts.workspace.set_panels_shown(True)
        self._parts.workspace.switch_to("explore")
        self._parts.hints.show_all()

    def show_shortcuts(self) -> None:
        """List every shortcut."""
        from explorer_app.window.dialogs.shortcuts_dialog import ShortcutsDialog

        docks = [
            (f"{dock.windowTitle()} panel", dock.toggleViewAction().shortcut().toString())
            for dock in self._parts.workspace.docks
        ]
        hidden = [key for key, action in self._parts.actions_by_key.items() if not action.isVisible()]
        self._open(ShortcutsDialog(docks, self._window, hidden=hidden))

    def show_about(self) -> None:
        """Open the About dialog."""
        from explorer_app.window.dialogs.about import AboutDialog

        self._open(AboutDialog(self._window))

    def copy_report(self) -> None:
        """Copy a bug report to the clipboard."""
        from explorer_app.window.dialogs.about import report

        text = report(self._engine.model.facts, self._engine.devices.state.device, self._messages.messages)
        QGuiApplication.clipboard().setText(text)
        self._messages.info("The report is on the clipboard.")

    def show_log_folder(self) -> None:
        """Open the folder of the log file; if the system has no file manager, show its path."""
        path = log_path()
        folder = path.parent
        if not folder.is_dir() or not QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder))):
            self._messages.info(f"The log file is {path}.")

    # -- dialogs ----------------------------------------------------------------------------------------------------

    def _open(self, dialog: QDialog) -> None:
        """Open a dialog; if one of its kind is already open, raise that one instead."""
        for other in self._window.findChildren(type(dialog)):
            if other is not dialog and other.isVisible():
                dialog.deleteLater()
                other.raise_()
                other.activateWindow()
                return
        room = self._window.screen().availableGeometry().size() - QSize(*FRAME)
        dialog.resize(dialog.size().boundedTo(room))
        dialog.open()

    def _choose_file(self, purpose: str, title: str, files: str, then: Callable[[Path], None]) -> None:
        chooser = self._chooser(purpose, title, files, then)
        chooser.setFileMode(QFileDialog.FileMode.ExistingFile)
        self._open(chooser)

    def _choose_target(self, purpose: str, title: str, files: str, name: str, then: Callable[[Path], None]) -> None:
        chooser = self._chooser(purpose, title, files, then)
        chooser.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        chooser.setDefaultSuffix(Path(name).suffix.lstrip("."))
        chooser.filterSelected.connect(lambda chosen: chooser.setDefaultSuffix(_first_suffix(chosen)))
        chooser.selectFile(name)
        self._open(chooser)

    def _chooser(self, purpose: str, title: str, files: str, then: Callable[[Path], None]) -> QFileDialog:
        folder = self._settings.folder(purpose)
        chooser = QFileDialog(self._window, title, str(folder or Path.home()), files)

        def chosen(name: str) -> None:
            self._settings.remember_folder(purpose, Path(name).parent)
            then(Path(name))

        chooser.fileSelected.connect(chosen)
        chooser.finished.connect(chooser.deleteLater)
        return chooser


def _show_directions_state(dialog: FindDirections, directions: DirectionFinding) -> None:
    dialog.show_state(directions.state)


def _first_suffix(name_filter: str) -> str:
    """Return "jpg" of "JPEG (*.jpg *.jpeg)"."""
    return name_filter.rpartition("(*.")[2].split()[0].rstrip(")")


def picture_name(session: Session) -> str:
    """Return a file name without suffix for a session's picture: "seed0012"; a layer appends "-b64.conv1"."""
    x, y = session.position.x, session.position.y
    is_seed = not session.pinned_blend and x == round(x) and y == round(y)
    name = f"seed{round(x) + 100 * round(y):04d}" if is_seed else "picture"
    return name if session.tap is None else f"{name}-{session.tap.layer}"

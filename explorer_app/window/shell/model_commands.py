"""Commands of the model and of its measurements."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from PySide6.QtGui import QGuiApplication

from explorer_app.controller import (
    DeviceSelector,
    DirectionFinding,
    Editing,
    EncoderLearning,
    Engine,
    Files,
    Snapshots,
    Tuning,
)
from explorer_app.messages import MessageLog
from explorer_app.window.canvas.comparing import Comparing
from explorer_app.window.shell.dialogs import Dialogs
from explorer_app.window.shell.file_commands import MODEL_FILES
from explorer_app.window.shell.thumbnail_dispatcher import ThumbnailDispatcher
from explorer_app.window.shell.top_bar import TopBar

if TYPE_CHECKING:
    from explorer_app.window.dialogs.learn_pictures import LearnPictures
    from explorer_app.window.performance.performance_panel import PerformancePanel
    from explorer_app.window.performance.tune_dialog import TuneDialog
    from explorer_app.window.sliders.find_directions import FindDirections

TRACE_FILES = "Chrome traces (*.json)"


class ModelParts(Protocol):
    """The parts of the main window that these commands use; they exist once the window is built."""

    top_bar: TopBar
    comparing: Comparing

    @property
    def performance(self) -> PerformancePanel:
        """The panel of frame and kernel times. Like the other panels it is created on first access."""
        ...


class ModelCommands:
    """Facts of the model, directions, measured steps."""

    def __init__(
        self,
        dialogs: Dialogs,
        parts: ModelParts,
        engine: Engine,
        editing: Editing,
        directions: DirectionFinding,
        tuning: Tuning,
        learning: EncoderLearning,
        messages: MessageLog,
        thumbnails: ThumbnailDispatcher,
        files: Files,
        snapshots: Snapshots,
    ) -> None:
        self._files = files
        self._snapshots = snapshots
        self._dialogs = dialogs
        self._parts = parts
        self._engine = engine
        self._editing = editing
        self._directions = directions
        self._tuning = tuning
        self._learning = learning
        self._messages = messages
        self._thumbnails = thumbnails

    def find_directions(self) -> None:
        """Open the dialog that searches for directions."""
        from explorer_app.window.sliders.find_directions import FindDirections

        directions, facts = self._directions, self._engine.model.facts
        if facts is None:
            return
        dialog = FindDirections(facts, self._editing.history.kept, self._dialogs.window)
        dialog.find_requested.connect(directions.find)
        dialog.cancel_requested.connect(directions.cancel)
        dialog.take_back_requested.connect(directions.take_back)
        dialog.show_state(directions.state)
        show = partial(_show_directions_state, dialog, directions)
        show_model = partial(_show_rows, dialog, self._engine)
        directions.changed.connect(show)
        self._engine.model_changed.connect(show_model)
        dialog.finished.connect(
            lambda _: (directions.changed.disconnect(show), self._engine.model_changed.disconnect(show_model))
        )
        self._thumbnails.serve(dialog, "directions")
        dialog.request_thumbnails()
        self._dialogs.open(dialog)

    def learn_pictures(self) -> None:
        """Open the dialog that trains an encoder of the model."""
        from explorer_app.window.dialogs.learn_pictures import LearnPictures

        learning = self._learning
        dialog = LearnPictures(self._dialogs.window)
        dialog.start_requested.connect(learning.start)
        dialog.stop_requested.connect(learning.stop)
        show = partial(_show_learning_state, dialog, learning)
        show()
        learning.changed.connect(show)
        dialog.finished.connect(lambda _: learning.changed.disconnect(show))
        self._dialogs.open(dialog)

    def tune(self) -> None:
        """Open the dialog that searches for the fastest tiles on this GPU."""
        from explorer_app.window.performance.tune_dialog import TuneDialog

        tuning, devices = self._tuning, self._engine.devices
        device = devices.state.device
        dialog = TuneDialog("the GPU" if device is None else device.name, self._dialogs.window)
        dialog.start_requested.connect(tuning.start)
        dialog.stop_requested.connect(tuning.stop)
        show = partial(_show_tuning_state, dialog, tuning, devices)
        show()
        tuning.changed.connect(show)
        devices.changed.connect(show)
        dialog.finished.connect(lambda _: (tuning.changed.disconnect(show), devices.changed.disconnect(show)))
        self._dialogs.open(dialog)

    def compare_model(self) -> None:
        """Choose another model, open it, and compare the picture now with its picture of the same latent."""

        def take(path: Path) -> None:
            self._parts.comparing.hold_model(path)
            self._files.open_model(path)

        self._dialogs.choose_file("model", "Compare with another model", MODEL_FILES, take)

    def snapshots(self) -> None:
        """Choose a folder of training snapshots."""
        self._dialogs.choose_folder("model", "Training snapshots", self._snapshots.open_folder)

    def show_recent(self) -> None:
        """Open the menu of recent models."""
        self._parts.top_bar.model_button.showMenu()

    def inspect(self) -> None:
        """Show the model panel with all its details."""
        if self._engine.model.facts is not None:
            from explorer_app.window.model.model_details import ModelDetails

            self._dialogs.open(ModelDetails(self._engine.model.facts, self._dialogs.window))

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
        self._dialogs.choose_target("trace", "Save trace", TRACE_FILES, "trace.json", self._engine.save_trace)


def _show_rows(dialog: FindDirections, engine: Engine) -> None:
    facts = engine.model.facts
    if facts is not None:
        dialog.show_model(facts)


def _show_learning_state(dialog: LearnPictures, learning: EncoderLearning) -> None:
    dialog.show_state(learning.state)


def _show_tuning_state(dialog: TuneDialog, tuning: Tuning, devices: DeviceSelector) -> None:
    dialog.show_state(tuning.state, is_on_gpu=devices.state.is_on_gpu)


def _show_directions_state(dialog: FindDirections, directions: DirectionFinding) -> None:
    dialog.show_state(directions.state)

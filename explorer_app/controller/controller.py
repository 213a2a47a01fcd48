"""The objects that the window uses: made, connected, started, closed, and given the render thread's events."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Slot

from explorer_app.controller.autosave import Autosave
from explorer_app.controller.device_selector import DeviceSelector
from explorer_app.controller.direction_finding import DirectionFinding
from explorer_app.controller.draft_colours import DraftKey
from explorer_app.controller.editing import Editing
from explorer_app.controller.encoder_learning import EncoderLearning
from explorer_app.controller.engine import Engine
from explorer_app.controller.export_queue import ExportQueueController
from explorer_app.controller.export_run import ExportRuns
from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.files import Files
from explorer_app.controller.grid_sheets import SheetKey
from explorer_app.controller.kept_arithmetic import KeptArithmetic
from explorer_app.controller.ladder import Ladder
from explorer_app.controller.last_start import LastStart
from explorer_app.controller.live_control import LiveControl
from explorer_app.controller.live_inputs import LiveInputs
from explorer_app.controller.local_editing import LocalEditing
from explorer_app.controller.mixing import Mixing
from explorer_app.controller.model_opener import ModelOpener
from explorer_app.controller.pending_document import PendingDocument
from explorer_app.controller.photo_projection import MakesProjections, PhotoProjection
from explorer_app.controller.picture_saver import PictureJob, PictureSaver
from explorer_app.controller.playback import Playback
from explorer_app.controller.played_values import PlayedValues
from explorer_app.controller.point_drag import PointDrag
from explorer_app.controller.preview import Preview
from explorer_app.controller.project_place import ProjectPlace
from explorer_app.controller.row_fetches import RowFetches
from explorer_app.controller.snapshots import Snapshots
from explorer_app.controller.sounds import Sounds
from explorer_app.controller.thumbnail_service import ThumbnailService
from explorer_app.controller.tuning import Tuning
from explorer_app.controller.unfinished_search import UnfinishedSearchFile
from explorer_app.controller.variation_grid import VariationGrid
from explorer_app.controller.whole_pictures import WholePictureKey, WholePictures
from explorer_app.inputs.gamepad_input import Pads
from explorer_app.inputs.midi_input import MidiPorts
from explorer_app.messages import MessageLog
from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.model_loader import ModelLoader
from explorer_app.rendering.render_events import (
    DeviceFailed,
    DirectionsAdvanced,
    DirectionsFailed,
    DirectionsFound,
    DragAdvanced,
    DragFailed,
    ExportAdvanced,
    ExportEnded,
    GridFailed,
    GridRendered,
    LadderAdvanced,
    LadderEnded,
    LadderFound,
    LearningAdvanced,
    LearningEnded,
    MapsFailed,
    MapsMade,
    ModelOpened,
    ModelRefused,
    ProjectionAdvanced,
    ProjectionEnded,
    ProjectionFailed,
    RenderEvent,
    RowsFailed,
    RowsMade,
    ThumbnailFailed,
    ThumbnailMade,
    TuningAdvanced,
    TuningEnded,
    TuningFound,
)
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.rendering.tasks.drag import MakesDrags
from explorer_app.rendering.thumbnail_file import ThumbnailFile
from explorer_app.session.direction_files import DirectionFiles
from explorer_app.session.model_files import ModelFiles
from explorer_app.session.model_places import ModelPlaces
from explorer_app.session.session import ModelReference, Session
from explorer_app.settings import Settings


class Controller(QObject):
    """Makes the objects below, starts and closes them, and routes the render thread's events. Lives on the GUI thread.

    Parameters
    ----------
    renders
        The render thread, started by `start` and closed by `close`.
    loader
        Reads model files.
    settings, messages
        Preferences, and messages for the user.
    state_folder
        Where the last session is kept; None keeps nothing.
    bundled_model, bundled_seed
        The model to open when there is no other, and the seed that a first session on it begins with.
    choice
        The device that the command line requests; None for that of the preferences.
    clock
        Seconds from any origin, for latencies and merging.
    midi_ports, make_pads
        Make the system's MIDI ports and gamepads; None for those of rtmidi2 and SDL.
    make_drag_maker, make_projection
        Make the maker of drags, and projections of photos; None for those of the backend.

    Attributes
    ----------
    engine
        The model, the device, the preview, ways of rendering.
    editing
        The session, its history, gestures.
    playback
        The playhead over the session's timeline.
    live
        Controllers: OSC, MIDI.
    played
        What sounds and controllers set at the moment.
    mixing
        Adds latents to the mix.
    point_drag
        Points of the picture that are dragged.
    photo_projection
        The search for the latent of a photo.
    learning
        The encoder of the model.
    files
        Models, sessions, pictures and latents from files and into files.
    export
        The list of exports, of which one runs at a time.
    pictures
        The picture in the window, as a file.
    directions
        The search for directions.
    tuning
        The search for the fastest tiles on this GPU.
    ladder
        What each optimisation gains on this device.
    arithmetic
        Sums and differences of kept latents.
    snapshots
        A folder of training snapshots that is gone through.
    local_editing
        What local edits need from the renderer.
    sounds
        The timeline's sounds: read, heard, and what they move.
    grid
        The live grid of variations.
    thumbnails, whole_pictures
        Small pictures, and whole ones to compare with, of any session.
    """

    def __init__(
        self,
        renders: RenderThread,
        loader: ModelLoader,
        settings: Settings,
        messages: MessageLog,
        *,
        state_folder: Path | None = None,
        bundled_model: Path | None = None,
        bundled_seed: int = 0,
        choice: DeviceChoice | None = None,
        clock: Callable[[], float] = time.monotonic,
        midi_ports: Callable[[], MidiPorts] | None = None,
        make_pads: Callable[[], Pads] | None = None,
        make_drag_maker: Callable[[], MakesDrags] | None = None,
        make_projection: MakesProjections | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._renders = renders
        self._settings = settings
        self._is_back = self._is_closed = False
        self._last_model = ModelReference()
        worker = self._worker = FileWorker(messages, parent=self)
        self._autosave = Autosave(state_folder, worker, messages, parent=self)
        places = ModelPlaces(None if state_folder is None else state_folder / "models.json")
        model = ModelOpener(
            renders, loader, settings, messages, bundled_model, places=places, worker=worker, parent=self
        )
        devices = DeviceSelector(renders, settings, messages, choice, parent=self)
        preview = Preview(renders, clock, parent=self)
        engine = self.engine = Engine(renders, model, devices, preview, worker, settings, messages, parent=self)
        editing = self.editing = Editing(
            model, preview, self._autosave, settings, messages, clock, first_seed=bundled_seed, parent=self
        )
        self.playback = Playback(editing, messages, clock, parent=self)
        inputs = LiveInputs(settings, messages, midi_ports=midi_ports, make_pads=make_pads, parent=self)
        self.live = LiveControl(inputs, editing, self.playback, worker, messages, clock, parent=self)
        self.played = PlayedValues(editing, parent=self)
        self.sounds = Sounds(editing, self.playback, messages, parent=self)
        self.point_drag = PointDrag(
            renders, model, preview, editing, self.playback, messages, make_drag_maker, clock, parent=self
        )
        beside = ModelFiles(None if state_folder is None else state_folder / "models", bundled_model)
        self.photo_projection = PhotoProjection(
            renders,
            editing,
            self.playback,
            messages,
            worker,
            beside,
            self._open_model,
            make_projection,
            clock,
            UnfinishedSearchFile(worker, lambda: self._autosave.folder),
            self._read_photo,
            parent=self,
        )
        self.learning = EncoderLearning(renders, worker, messages, beside, clock=clock, parent=self)
        pending = PendingDocument(worker)
        self.pictures = PictureSaver(renders, model, preview, editing, worker, messages)
        runs = ExportRuns(renders, model, settings, preview.statistics, clock)
        self.export = ExportQueueController(runs, model, pending, worker, messages, parent=self)
        file = None if state_folder is None else ThumbnailFile(state_folder / "thumbnails.sqlite")
        self.thumbnails = ThumbnailService(renders, model, messages, lambda: editing.shown, worker, file, parent=self)
        self._rows = RowFetches(renders, model, messages)
        fetch_rows = self._rows.fetch
        self.mixing = Mixing(model, editing, fetch_rows, messages, parent=self)
        self.local_editing = LocalEditing(renders, editing, fetch_rows, messages, parent=self)
        place = ProjectPlace(worker, lambda: self._autosave.folder)
        self.files = Files(
            engine, editing, self.export, pending, worker, messages, settings, fetch_rows, place, parent=self
        )
        own = DirectionFiles(None if state_folder is None else state_folder / "directions", bundled_model)
        self.directions = DirectionFinding(renders, model, editing, self.export, own, worker, messages, parent=self)
        self.arithmetic = KeptArithmetic(model, editing, self.directions, messages, parent=self)
        self.snapshots = Snapshots(model, self.files, worker, messages, parent=self)
        self.whole_pictures = WholePictures(renders, model, messages, lambda: preview.frame, parent=self)
        self.grid = VariationGrid(renders, engine, editing, worker, messages, parent=self)
        self.tuning = Tuning(renders, engine, self.export, messages, parent=self)
        self.ladder = Ladder(renders, engine, messages, parent=self)
        self._last_start = LastStart(bundled_model, worker, lambda: engine.whole_frame, parent=self)
        preview.frame_changed.connect(self._frame_changed)
        preview.frame_changed.connect(self._open_inputs, Qt.ConnectionType.SingleShotConnection)
        renders.events_ready.connect(self._take_events, Qt.ConnectionType.QueuedConnection)

    def start(self, model: Path | None = None, document: Path | None = None) -> None:
        """Restore the last session and open its model: `model` if given, else the last one, else the bundled one.

        `document` is a session or a picture to open on top of it.
        """
        self.restore_last(model, document)
        self.export.open_list(self._autosave.shared_folder, self._autosave.folder)
        self._renders.start()
        self.engine.preview.set_measuring(self._settings.values.performance_visible)
        if document is not None:
            self.files.open(document)
        if self.engine.model.loading is None:
            self.engine.model.open_first(model, self._last_model)

    def restore_last(self, model: Path | None = None, document: Path | None = None) -> None:
        """Restore the last session, the last picture, and the known facts of the model before its file is read.

        `start` does it too; called before the window is shown, it lets the window open with a picture and with controls
        that work. The second call does nothing. Parameters: see `start`.
        """
        if self._is_back:
            return
        self._is_back = True
        last = self._autosave.load()
        self.editing.stay_at(self._autosave.time_s)
        self.editing.begin(last or Session())
        if last is not None:
            self._last_model = last.model
            self.files.restore_project()
        path = self.engine.model.first_path(model, self._last_model) if document is None else None
        folder = self._autosave.folder
        known, self.engine.stored_picture = self._last_start.load(folder, path, has_session=last is not None)
        if known is not None:
            self.engine.expect(known)
            self.editing.fit(known.facts, None)
        else:
            self.editing.announce()

    def close(self) -> None:
        """Save the session, stop everything that runs and wait for it to end. May be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        self.point_drag.close()
        self.photo_projection.close()
        self.learning.close()
        self.local_editing.close()
        self.playback.close()
        self.sounds.close()
        self.live.close()
        self.editing.close()  # the session is written before the wait for the device, which may be long
        self.engine.preview.close()
        self.whole_pictures.close()
        self.grid.close()
        self.engine.model.close()
        self._last_start.flush()
        self._renders.close()
        self.export.close()
        self._autosave.close()
        self.thumbnails.close()
        self._worker.close()
        self._settings.save()

    @Slot()
    def _frame_changed(self) -> None:
        """Tell the parts that follow every frame: calls, because a slot costs several times as much as its body."""
        self.engine.frame_arrived()
        self.thumbnails.take_shown()
        self.whole_pictures.note_shown()
        self.played.frame_arrived()
        self._last_start.frame_arrived()

    @Slot()
    def _open_inputs(self) -> None:
        """Open the inputs of the last start once the first picture is there: their libraries take a while.

        The project's file is read then, too.
        """
        if not self._is_closed:
            self.live.inputs.restore()
            self.files.compare_project()
            self.photo_projection.offer_unfinished()

    def _open_model(self, path: Path) -> None:
        self.files.open_model(path)

    def _read_photo(self, path: Path) -> None:
        self.files.open_photo(path)

    # -- events of the render thread --------------------------------------------------------------------------------

    @Slot()
    def _take_events(self) -> None:
        if self._is_closed:
            return
        events = self._renders.take_events()
        # A GPU exports hundreds of frames between two events of the GUI thread; only the newest count is worth showing.
        newest = {event.job: event for event in events if isinstance(event, ExportAdvanced)}
        for event in events:
            if not isinstance(event, ExportAdvanced) or newest[event.job] is event:
                self._take(event)
        self.thumbnails.announce()

    def _take(self, event: RenderEvent) -> None:
        match event:
            case ModelOpened():
                self._take_opened(event)
            case ModelRefused():
                self.engine.model.take_refused(event)
            case DeviceFailed():
                self.engine.take(event)
                self.editing.save_now()  # where a device fails, more may
            case ExportAdvanced():
                self.export.take_advanced(event)
            case ExportEnded(job=PictureJob() as job, error=error):
                self.pictures.take_ended(job, error)
            case ExportEnded():
                self.export.take_ended(event)
            case TuningAdvanced():
                self.tuning.take_advanced(event)
            case TuningFound():
                self.tuning.take_found(event)
            case TuningEnded():
                self.tuning.take_ended(event)
            case LadderAdvanced() | LadderFound() | LadderEnded():
                self.ladder.take(event)
            case DirectionsAdvanced():
                self.directions.take_advanced(event)
            case DirectionsFound():
                self.directions.take_found(event)
            case DirectionsFailed():
                self.directions.take_failed(event)
            case MapsMade() | MapsFailed():
                self.local_editing.take_maps(event)
            case DragAdvanced():
                self.point_drag.take_advanced(event)
            case DragFailed():
                self.point_drag.take_failed(event)
            case ProjectionAdvanced():
                self.photo_projection.take_advanced(event)
            case ProjectionEnded():
                self.photo_projection.take_ended(event)
            case ProjectionFailed():
                self.photo_projection.take_failed(event)
            case LearningAdvanced():
                self.learning.take_advanced(event)
            case LearningEnded():
                self.learning.take_ended(event)
            case GridRendered():
                self.grid.take_rendered(event)
            case GridFailed():
                self.grid.take_failed(event)
            case RowsMade():
                self._rows.take_made(event)
            case RowsFailed():
                self._rows.take_failed(event)
            case ThumbnailMade(key=SheetKey() as key, frame=frame):
                self.grid.sheets.take_cell(key, frame)
            case ThumbnailFailed(key=SheetKey() as key, error=error):
                self.grid.sheets.take_failed(key, error)
            case ThumbnailMade(key=DraftKey(), frame=draft):
                self.engine.preview.take_draft(draft)
            case ThumbnailMade(key=WholePictureKey() as key):
                self.whole_pictures.take_made(event, key)
            case ThumbnailFailed(key=WholePictureKey()):
                self.whole_pictures.take_failed(event)
            case ThumbnailMade():
                self.thumbnails.take_made(event)
            case ThumbnailFailed():
                self.thumbnails.take_failed(event)
            case _:
                self.engine.take(event)

    def _take_opened(self, event: ModelOpened) -> None:
        """Show another model, or the model that `restore_last` showed before it was read."""
        self._last_start.remember_model(event.facts, event.directions)
        before, is_expected = self.engine.model.facts, self.engine.model.is_expected(event)
        if not is_expected:
            self.thumbnails.clear()
            self._rows.clear()
            self.whole_pictures.clear()
            if before is None or before.model_id != event.facts.model_id:
                self.directions.forget()
                self.learning.forget()
                self.local_editing.forget()
            self.point_drag.forget()
            self.photo_projection.finish()
        self.engine.take_opened(event)
        self.export.model_opened()
        if not self.files.model_opened(event.facts) and not is_expected:
            self.editing.model_opened(event.facts, before)

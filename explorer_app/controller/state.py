"""The parts of the controller, what the window may read of them, and how it is told."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

import gpu_backend
from explorer_app.controller.autosave import Autosave
from explorer_app.controller.device_selector import DeviceSelector
from explorer_app.controller.device_state import DeviceState
from explorer_app.controller.direction_finding import DirectionFinding, DirectionsState
from explorer_app.controller.drift import Drift
from explorer_app.controller.editor import Editor
from explorer_app.controller.export_queue import ExportQueueController
from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.last_start import LastStart
from explorer_app.controller.live_updates import LiveUpdates
from explorer_app.controller.model_opener import ModelOpener
from explorer_app.controller.preview import Preview
from explorer_app.controller.progress import ExportProgress, Loading
from explorer_app.controller.thumbnail_service import ThumbnailService
from explorer_app.controller.whole_pictures import WholePictures
from explorer_app.messages import MessageLog
from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.frame_statistics import FrameStatistics
from explorer_app.rendering.model_loader import ModelLoader
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.rendering.renderer_like import DeviceLike, DirectionsLike
from explorer_app.rendering.thumbnails import ThumbnailStore
from explorer_app.session.direction_files import DirectionFiles
from explorer_app.session.edits import GoToSeed
from explorer_app.session.evaluate import NO_MODULATION, evaluate
from explorer_app.session.history import History
from explorer_app.session.model_places import ModelPlaces
from explorer_app.session.resolve import resolve, unobserved
from explorer_app.session.session import Session
from explorer_app.settings import RecentModel, Settings
from gpu_backend import Frame, ModelFacts, StoredLatent

if TYPE_CHECKING:
    from PySide6.QtGui import QImage

    from gpu_backend import Comparison, RenderOptions


class ControllerState(QObject):
    """The parts and what there is to see of them. `Controller` adds what the window may ask for."""

    session_changed = Signal()
    frame_changed = Signal()
    model_changed = Signal()
    """facts, directions."""
    device_changed = Signal()
    """devices, device."""
    render_options_changed = Signal()
    comparison_changed = Signal()
    """comparison, is_comparing."""
    history_changed = Signal()
    statistics_changed = Signal()
    loading_changed = Signal()
    export_changed = Signal()
    thumbnails_changed = Signal()
    whole_pictures_changed = Signal()
    directions_state_changed = Signal()
    drifting_changed = Signal()
    """drifting, drift_speed."""
    recent_models_changed = Signal()

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
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._renders = renders
        self._settings = settings
        self._messages = messages
        self._clock = clock
        self._bundled_seed = bundled_seed
        self._editor = Editor()
        self._modulation = NO_MODULATION
        self._preview = Preview(renders, clock, parent=self)
        self._worker = FileWorker(messages, parent=self)
        places = ModelPlaces(None if state_folder is None else state_folder / "models.json")
        self._models = ModelOpener(
            renders, loader, settings, messages, bundled_model, places=places, worker=self._worker, parent=self
        )
        self._devices = DeviceSelector(renders, settings, messages, choice, parent=self)
        self._options: RenderOptions | None = None
        self._comparison: Comparison | None = None
        self._is_comparing = False
        self._exports = ExportQueueController(renders, self._worker, messages, clock, parent=self)
        self._autosave = Autosave(state_folder, self._worker, messages, parent=self)
        self._drift = Drift(clock, parent=self)
        self._stored_picture: QImage | None = None
        self._last_start = LastStart(bundled_model, self._worker, self._full_picture, parent=self)
        files = DirectionFiles(None if state_folder is None else state_folder / "directions", bundled_model)
        self._finding = DirectionFinding(renders, files, self._worker, messages, self._models.open, parent=self)
        self._finding.changed.connect(self.directions_state_changed)
        self._thumbnails = ThumbnailService(renders, messages, self._shown, parent=self)
        self._told_history = self._editor.history
        self._live = LiveUpdates(self._ask_live, self._tell_session, parent=self)
        self._preview.frame_changed.connect(self._thumbnails.take_shown)
        self._thumbnails.changed.connect(self.thumbnails_changed)
        self._whole_pictures = WholePictures(renders, messages, lambda: self.frame, parent=self)
        self._whole_pictures.changed.connect(self.whole_pictures_changed)
        self._preview.frame_changed.connect(self._whole_pictures.note_shown)
        self._preview.statistics_changed.connect(self.statistics_changed)
        self._devices.changed.connect(self.device_changed)
        self._models.loading_changed.connect(self.loading_changed)
        self._models.recent_models_changed.connect(self.recent_models_changed)
        self._exports.changed.connect(self.export_changed)
        self._connect()

    def _full_picture(self) -> Frame | None:
        """Return the picture on the screen, if it is one to show first the next time."""
        frame = self.frame
        is_whole = frame is not None and not frame.is_draft and frame.tap is None and not frame.has_alpha
        return frame if is_whole else None

    def _connect(self) -> None:
        """Make and connect what decides."""

    # -- what there is ----------------------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        """Everything that the person has set, as it is now."""
        return self._editor.session

    @property
    def directions_state(self) -> DirectionsState:
        """How far a search for directions is, and what the last one found."""
        return self._finding.state

    @property
    def session_before(self) -> tuple[str, Session] | None:
        """What was before the gesture under way, or else before the last step, with words for it; None at the start."""
        history = self.history
        if self._editor.is_gesturing() and history.current is not None:
            return "Before this gesture", history.current.session
        if not history.can_undo:
            return None
        return f"Before “{history.undo_label}”", history.entries[history.position - 1].session

    def whole_picture(self, session: Session) -> Frame | None:
        """Return the whole picture of a session with the open model, None without a model.

        None too while it is being made; `whole_pictures_changed` tells when it is there.
        """
        return None if self.facts is None else self._whole_pictures.get(session, self.facts)

    @property
    def effective(self) -> Session:
        """The session that is rendered: what modulation makes of the person's now."""
        return evaluate(self.session, self._modulation, self._clock())

    @property
    def frame(self) -> Frame | None:
        """The newest frame; it stays until the next one, another model's too. None before the first."""
        return self._preview.frame

    @property
    def stored_picture(self) -> QImage | None:
        """The picture of the last start, or of a first session, to show until the first frame; None afterwards."""
        return self._stored_picture

    @property
    def shown_latent(self) -> StoredLatent | None:
        """The w rows of the session as it is now; None before its picture is there."""
        frame = self.frame
        if frame is None or frame.ws is None or frame.request.blend != resolve(self.effective).blend:
            return None
        return gpu_backend.stored_latent(frame.ws)

    @property
    def facts(self) -> ModelFacts | None:
        """The model that is open, or that was open the last time and is on its way in."""
        return self._models.facts

    @property
    def directions(self) -> DirectionsLike | None:
        """Its directions."""
        return self._models.directions

    @property
    def device(self) -> DeviceLike | None:
        """On what pictures are rendered, and why; None before a model is open."""
        return self._devices.state.device

    @property
    def devices(self) -> DeviceState:
        """Which devices there are, which one is wished for, and how far that is."""
        return self._devices.state

    @property
    def render_options(self) -> RenderOptions:
        """In which way pictures are rendered."""
        return self._options or gpu_backend.RenderOptions()

    @property
    def comparison(self) -> Comparison | None:
        """What comparing brought, of this device and model; None before."""
        return self._comparison

    @property
    def is_comparing(self) -> bool:
        """Whether a comparison is under way."""
        return self._is_comparing

    @property
    def is_bundled(self) -> bool:
        """Whether the model that is open is the one that came with the program."""
        return self._models.is_bundled

    @property
    def loading(self) -> Loading | None:
        """The model on its way in."""
        return self._models.loading

    @property
    def history(self) -> History:
        """Steps for undo and the strip, and what was kept."""
        return self._editor.history

    @property
    def statistics(self) -> FrameStatistics:
        """What frames cost; the same object for good, its figures change."""
        return self._preview.statistics

    @property
    def export(self) -> ExportProgress | None:
        """The sequence on its way out."""
        return self._exports.progress

    @property
    def export_succeeded(self) -> bool:
        """Whether the last export that ended wrote all of its frames."""
        return self._exports.has_succeeded

    @property
    def recent_models(self) -> tuple[RecentModel, ...]:
        """Models that were opened, newest first."""
        return self._settings.values.recent_models

    @property
    def thumbnails(self) -> ThumbnailStore:
        """Small frames by the keys they were requested with."""
        return self._thumbnails.store

    @property
    def drifting(self) -> bool:
        """Whether the picture walks the plane by itself."""
        return self._drift.is_on

    @property
    def drift_speed(self) -> float:
        """Seeds a second along the plane while drifting, -4..4."""
        return self._settings.values.drift_speed

    @property
    def _begun(self) -> Session:
        """The session as it is; where nothing was ever set, on the bundled model, the one to begin with."""
        is_first = self.is_bundled and self.session == Session()
        return GoToSeed(self._bundled_seed).apply(self.session) if is_first else self.session

    def _shown(self) -> tuple[Session, Frame] | None:
        """Return the session and its full picture, if that is what is on the screen."""
        frame = self.frame
        if (
            frame is None
            or frame.is_draft
            or self._editor.is_gesturing()
            or self.session.tap is not None
            or unobserved(frame.request) != resolve(self.session)
        ):
            return None
        return self.session, frame

    # -- how the window is told ----------------------------------------------------------------------------------

    def _tell(self) -> None:
        """Tell the window at once what a person did."""
        self._live.stop()
        self._tell_session()
        self._tell_history()

    def _ask_live(self) -> None:
        """Ask for the picture of a session that goes on changing."""
        self._preview.ask(self.effective, live=True)

    def _tell_session(self) -> None:
        self.session_changed.emit()

    def _tell_history(self) -> None:
        if self._editor.history is not self._told_history:
            self._told_history = self._editor.history
            self.history_changed.emit()

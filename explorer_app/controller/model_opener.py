"""Opens models: reads the file and has a renderer prepared; the former model answers until then."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal, Slot

from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.known_model import KnownModel
from explorer_app.controller.progress import Loading
from explorer_app.messages import MessageLog
from explorer_app.rendering.model_loader import ModelLoader, ReadingEnded, ReadingProgress
from explorer_app.rendering.render_events import ModelOpened, ModelRefused
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.rendering.renderer_like import DirectionsLike
from explorer_app.session.model_places import ModelPlaces
from explorer_app.session.session import ModelReference
from explorer_app.settings import RecentModel, Settings
from gpu_backend import ModelFacts, is_regular_file

_PREPARING = "Preparing"


class ModelOpener(QObject):
    """Knows the open model and the model that is being opened.

    ::

        open() ──► Reading ──► Preparing ──► opened
                      └──────────┴─ refused ──► the bundled one, if nothing is open yet
    """

    loading_changed = Signal()
    failed = Signal()
    """A model was refused; the open one stays."""
    replaced = Signal()
    """The file in which `follow` looked for a model holds another one; the open one stays."""
    withdrawn = Signal()
    """The model of the last start cannot be opened, or was cancelled."""

    def __init__(
        self,
        renders: RenderThread,
        loader: ModelLoader,
        settings: Settings,
        messages: MessageLog,
        bundled_model: Path | None,
        *,
        places: ModelPlaces,
        worker: FileWorker,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._places = places
        self._worker = worker
        self._renders = renders
        self._loader = loader
        self._settings = settings
        self._messages = messages
        self._bundled = bundled_model
        self._loading: Loading | None = None
        self._opened: ModelOpened | None = None
        self._expected: KnownModel | None = None
        """The known facts of the last start's model, used until it is open."""
        self.browsed: frozenset[str] = frozenset()
        """Paths of the snapshots that a user goes through: they are no recent models, and one step together."""
        self._followed = ("", "")
        """Path and id of the model that a step of the history began to open last; empty once a user opens another."""
        self._replaced: set[tuple[str, str]] = set()
        """Path and id of models that were looked for in a file which holds another model now."""
        loader.ready.connect(self._take_reading, Qt.ConnectionType.QueuedConnection)

    @property
    def loading(self) -> Loading | None:
        """The model that is being opened."""
        return self._loading

    @property
    def facts(self) -> ModelFacts | None:
        """Facts of the open model, or of the last start's model while it is being opened."""
        opened = self._opened or self._expected
        return opened.facts if opened else None

    @property
    def directions(self) -> DirectionsLike | None:
        """Its directions."""
        opened = self._opened or self._expected
        return opened.directions if opened else None

    @property
    def is_expecting(self) -> bool:
        """Whether the model is only known, and not open yet."""
        return self._opened is None and self._expected is not None

    @property
    def is_bundled(self) -> bool:
        """Whether the open model is the bundled one."""
        return self.facts is not None and self._is_bundled_path(self.facts.path)

    @property
    def has_bundled(self) -> bool:
        """Whether the installation has the bundled model."""
        return self._bundled is not None

    def open(self, path: Path | None) -> None:
        """Begin to open a file, None for the bundled model; opening another one is cancelled."""
        path = path or self._bundled
        if path is None:
            self._messages.warning(
                "The bundled model is missing from this installation; choose a model file with File > Open model."
            )
            return
        self._renders.cancel_opening()
        self._followed = ("", "")
        self._show(Loading(str(path), 0, 0, "Reading"))
        self._loader.start(path)

    def first_path(self, path: Path | None, last: ModelReference) -> Path | None:
        """Return which file `open_first` opens."""
        return path or self._last_path(last) or self._bundled

    def expect(self, known: KnownModel) -> None:
        """Use the known facts of the model that is opened first as if it were open."""
        self._expected = known

    def is_expected(self, event: ModelOpened) -> bool:
        """Return whether an opened model is the expected one, unchanged."""
        known = self._expected
        if self._opened is not None or known is None or known.facts != event.facts:
            return False
        ours, its = known.directions, event.directions
        return (ours.names, ours.reach, ours.rows, ours.centre) == (its.names, its.reach, its.rows, its.centre)

    def open_first(self, path: Path | None, last: ModelReference) -> None:
        """Open the model to start with: `path`, that of the last session, the last one, or the bundled one.

        A message reports a model that was moved or deleted.
        """
        place = self._settings.values.last_model
        name = last.name if last.model_id else Path(place).stem
        is_lost = path is None and (last.model_id or place) and self._last_path(last) is None
        if is_lost and (self._bundled is None or name != self._bundled.stem):
            self._messages.warning(
                f"The model {name or 'of the last session'} was moved or deleted, so another model is shown; "
                "open it from its new place."
            )
        self.open(self.first_path(path, last))

    def known_path(self, model: ModelReference, beside: Path | None = None) -> Path | None:
        """Return where a model's file probably is; its SHA-256 is certain only once it is read.

        Parameters
        ----------
        beside
            Folder of the picture or session that was made with it, where a file of its name is looked for last.
        """
        recent = [item for item in self._settings.values.recent_models if item.model_id == model.model_id]
        # Of equal files, that of its name: beside another one there may be other directions.
        recent.sort(key=lambda item: item.name != model.name)
        for place in (*(item.path for item in recent), model.path):
            if place and (place, model.model_id) not in self._replaced and is_regular_file(Path(place)):
                return Path(place)
        known = self._places.find(model)
        if known is not None and (str(known), model.model_id) not in self._replaced:
            return known
        if self._bundled is not None and model.name == self._bundled.stem and not self.is_bundled:
            return self._bundled
        known = self._places.find(model, beside)
        return None if (str(known), model.model_id) in self._replaced else known

    def was_replaced(self, model: ModelReference) -> bool:
        """Return whether a file in which `follow` looked for a model held another one."""
        return any(model_id == model.model_id for _, model_id in self._replaced)

    def follow(self, model: ModelReference, *, can_open: bool = True) -> bool:
        """Open the model that a step of the history was made with; cancel one that an earlier step began to open.

        Returns
        -------
        Whether it is open or being opened; False if its file is not found or `can_open` is False.
        """
        is_open = self.facts is None or model.model_id in ("", self.facts.model_id)
        path = None if is_open or not can_open else self.known_path(model)
        if path is not None:
            if self._loading is None or Path(self._loading.path) != path:
                self.open(path)
            self._followed = (str(path), model.model_id)
        elif self._loading is not None and self._loading.path == self._followed[0]:
            self.cancel()
        return is_open or path is not None

    def cancel(self) -> None:
        """Cancel opening."""
        self._loader.cancel()
        self._renders.cancel_opening()
        self._stop_expecting()
        self._show(None)

    def close(self) -> None:
        """Cancel opening and wait for the reader to end. May be called twice."""
        self._renders.cancel_opening()
        self._loader.close()
        self._loading = None

    def take_opened(self, event: ModelOpened) -> None:
        """Make the model of a new renderer the open one; another one that was requested since is still being opened."""
        self._opened, self._expected = event, None
        self._replaced.discard((event.facts.path, event.facts.model_id))
        self._messages.note_success(Path(event.facts.path))
        facts = event.facts
        bundled = self._is_bundled_path(facts.path)
        self._settings.change(last_model="" if bundled else facts.path)
        if not bundled:
            if facts.path not in self.browsed:
                self._settings.remember_model(RecentModel(facts.path, facts.name, facts.model_id))
            self._worker.submit(
                lambda: self._places.remember(facts.model_id, facts.path), failed="Where the model is was not noted"
            )
        if self._loading is None or Path(self._loading.path) == Path(facts.path):
            self._show(None)

    def take_refused(self, event: ModelRefused) -> None:
        """Show why no renderer could be made; keep the open model. Ignored if another model was requested since."""
        loading = self._loading
        if loading is not None and loading.stage == _PREPARING and Path(loading.path) == Path(event.path):
            self._refuse(Path(event.path), event.error)

    @Slot()
    def _take_reading(self) -> None:
        event = self._loader.take()
        if self._loading is None:
            return
        if isinstance(event, ReadingProgress):
            self._show(Loading(self._loading.path, event.done, event.total, "Reading"))
        elif isinstance(event, ReadingEnded) and event.model is not None and self._is_other(event.model.facts):
            self._replaced.add(self._followed)
            self._show(None)
            self.replaced.emit()
        elif isinstance(event, ReadingEnded) and event.model is not None:
            total = event.model.facts.nbytes
            self._show(Loading(self._loading.path, total, total, _PREPARING))
            self._renders.open(event.model)
        elif isinstance(event, ReadingEnded) and event.error is not None:
            self._refuse(event.path, event.error)

    def _is_other(self, facts: ModelFacts) -> bool:
        """Return whether a step of the history opened this file, which holds another model than that of the step."""
        path, model_id = self._followed
        return self._opened is not None and path == facts.path and model_id != facts.model_id

    def _refuse(self, path: Path, error: BaseException) -> None:
        self._messages.exception(error, about=path)
        self._stop_expecting()
        if not path.exists():
            self._settings.forget_model(str(path))
        if self._opened is None and self._bundled is not None and not self._is_bundled_path(str(path)):
            self.open(self._bundled)
        else:
            self._show(None)
            self.failed.emit()

    def _last_path(self, last: ModelReference) -> Path | None:
        """Return the path of the last session's model, else of the last one; None if the file is gone."""
        place = self._settings.values.last_model
        if last.model_id:
            named = [
                item.path
                for item in self._settings.values.recent_models
                if (item.model_id, item.name) == (last.model_id, last.name)
            ]
            was_bundled = not place and self._bundled is not None and self._bundled.stem == last.name
            if was_bundled and not named:
                return self._bundled
            return Path(place) if place in named and is_regular_file(Path(place)) else self.known_path(last)
        return Path(place) if place and is_regular_file(Path(place)) else None

    def _stop_expecting(self) -> None:
        if self.is_expecting:
            self._expected = None
            self.withdrawn.emit()

    def _show(self, loading: Loading | None) -> None:
        if loading != self._loading:
            self._loading = loading
            self.loading_changed.emit()

    def _is_bundled_path(self, path: str) -> bool:
        return self._bundled is not None and bool(path) and Path(path).resolve() == self._bundled.resolve()

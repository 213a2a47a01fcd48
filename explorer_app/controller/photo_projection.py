"""From a picture: finds the latent whose picture is nearest to a photo, and shows it while it gets better."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from PySide6.QtCore import QObject, Signal, Slot

import gpu_backend
from explorer_app.controller.editing import Editing
from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.playback import Playback
from explorer_app.controller.unfinished_search import UnfinishedSearch, UnfinishedSearchFile
from explorer_app.exporting.progress import time_text
from explorer_app.messages import Action, Level, MessageLog
from explorer_app.rendering.render_events import ProjectionAdvanced, ProjectionEnded, ProjectionFailed
from explorer_app.rendering.tasks.projection import ProjectionLike
from explorer_app.session.edited_latent import TakeEditedRows, recipe_shown
from explorer_app.session.model_files import ModelFiles
from explorer_app.session.resolve import resolve
from gpu_backend import Crop, LocalEdits, Noise, StoredLatent, Transform

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gpu_backend import Model, ModelFacts, ProjectionReport

Phase = Literal["rest", "preparing", "searching", "ending"]

SOURCE = "PhotoProjection"
"""Source of the edits."""

_STAGES = {
    "drafts": "matching drafts to pictures",
    "random": "random latents",
    "scales": "measuring what rows change",
    "w": "one row for all layers",
    "rows": "each layer's row",
    "weights": "weights of the model",
}
_RANDOM_SHARE = 0.1
_TUNING_SHARE = 0.5
"""Share of the progress for random latents, and for a tuning where there is one."""
_LEAST_STEPS = 3
"""Steps along gradients before the time left is estimated."""
_PACED_REPORTS = 12
"""Reports whose steps give the pace: those at the full resolution take several times as long as the first ones."""


class ProjectionRenders(Protocol):
    """The part of `RenderThread` that projects."""

    @property
    def model(self) -> Model | None:
        """The model that is rendered."""
        ...

    def begin_projection(self, number: int, make: Callable[[], ProjectionLike]) -> None:
        """Begin."""
        ...

    def stop_projection(self) -> None:
        """End with the best latent so far."""
        ...

    def cancel_projection(self) -> None:
        """End without a latent."""
        ...


class MakesProjections(Protocol):
    """Makes a projection of a part of a picture file, on any thread."""

    def __call__(
        self,
        model: Model,
        noise: Noise,
        edits: LocalEdits,
        path: Path,
        crop: Crop,
        *,
        tune: Callable[[], bool] | None,
    ) -> ProjectionLike:
        """Make it; `edits` are those of the pictures that are compared with the photo. Raises LoomError.

        With `tune` a tuning follows the search, and ends it once `tune` returns True.
        """
        ...


class PhotoProjection(QObject):
    """One search at a time. The best latent so far is shown as a gesture; its end is one step, which is kept by name.

    Signals
    -------
    changed()
        Phase or report changed.
    ended(has_taken)
        The search is over; whether its latent is in the session.

    Parameters
    ----------
    worker
        Writes tuned models.
    files
        Where tuned models are kept, and encoders found.
    open_model
        Opens a tuned model, or says why that has to wait.
    unfinished
        Remembers the search that runs, for a start after the program was killed; None remembers nothing.
    open_photo
        Reads a photo and opens the dialog of the search.
    make
        None for the backend's projection.
    clock
        Seconds from any origin.
    """

    changed = Signal()
    ended = Signal(bool)

    def __init__(
        self,
        renders: ProjectionRenders,
        editing: Editing,
        playback: Playback,
        messages: MessageLog,
        worker: FileWorker,
        files: ModelFiles,
        open_model: Callable[[Path], None],
        make: MakesProjections | None = None,
        clock: Callable[[], float] = time.monotonic,
        unfinished: UnfinishedSearchFile | None = None,
        open_photo: Callable[[Path], None] = lambda path: None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._renders = renders
        self._unfinished = unfinished
        self._open_photo = open_photo
        self.continued: UnfinishedSearch | None = None
        """A search of the last run that the user wants again; the dialog of its photo begins with its choices."""
        self._editing = editing
        self._playback = playback
        self._messages = messages
        self._worker = worker
        self._open_model = open_model
        self._files = files
        self._make = make or partial(_project, files)
        self._clock = clock
        self._number = 0
        self._phase: Phase = "rest"
        self._name = ""
        self._photo = Path()
        self._tunes = False
        self._tunes_now = threading.Event()
        self._model: Model | None = None
        """The one that is searched."""
        self._report: ProjectionReport | None = None
        self._paces: deque[tuple[float, int]] = deque(maxlen=_PACED_REPORTS)
        """When the newest steps along gradients were reported, and their numbers."""
        self._edit: TakeEditedRows | None = None
        editing.before_edit.append(self._edit_coming)
        editing.stepped.connect(self._abandon)

    # -- state ------------------------------------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """Where the search is in its life."""
        return self._phase

    @property
    def report(self) -> ProjectionReport | None:
        """The state of the search; None before the first step."""
        return self._report

    @property
    def share(self) -> float:
        """Progress, 0..1."""
        report = self._report
        if report is None or report.stage == "drafts":
            return 0.0
        share, last = report.step / report.steps, _TUNING_SHARE if self._tunes else 0.0
        if report.stage == "weights":
            return 1.0 - last + last * share
        if report.stage == "scales":
            return (1.0 - last) * _RANDOM_SHARE
        share = _RANDOM_SHARE * share if report.stage == "random" else _RANDOM_SHARE + (1.0 - _RANDOM_SHARE) * share
        return (1.0 - last) * share

    @property
    def tuning_is_ahead(self) -> bool:
        """Whether a tuning was asked for and has not begun, so that a search that is stopped now goes without it."""
        return self._phase != "rest" and self._tunes and (self._report is None or self._report.stage != "weights")

    @property
    def can_tune_now(self) -> bool:
        """Whether `tune_now` would end the search: a latent was found, and the tuning is still ahead."""
        return (
            self.tuning_is_ahead
            and self._phase == "searching"
            and self._edit is not None
            and not self._tunes_now.is_set()
        )

    @property
    def text(self) -> str:
        """Step, loss and time left, as a user reads them; empty at rest."""
        report = self._report
        if self._phase == "rest":
            return ""
        if report is None:
            return "Preparing: opening the network for gradients."
        text = f"{_STAGES[report.stage].capitalize()}: {report.step} of {report.steps}"
        if math.isfinite(report.loss):
            text += f", loss {report.loss:.3f}"
        left = self.seconds_left
        return text if left is None else f"{text}, at least {time_text(left)} left"

    @property
    def seconds_left(self) -> float | None:
        """Seconds at the present pace; a lower bound, since the last steps are the slowest. None while unknown."""
        report = self._report
        if report is None or not self._paces or report.step - self._paces[0][1] < _LEAST_STEPS:
            return None
        elapsed_s = self._clock() - self._paces[0][0]
        return elapsed_s / (report.step - self._paces[0][1]) * (report.steps - report.step)

    @property
    def obstacle(self) -> str:
        """Why no search can begin, in a sentence; empty if one can."""
        session = self._editing.session
        if session.tap is not None:
            return "A layer is shown; go back to the picture (L) to search for a photo."
        if session.transform != Transform():
            return "A photo cannot be searched in a transformed picture; reset its transform first."
        if moved_by := self._editing.moved_by:
            return f"{moved_by} to search for a photo."
        if self._renders.model is None or self._editing.shown_latent is None:
            return "The search can start once the picture is rendered; wait a moment."
        return ""

    # -- what the window requests -----------------------------------------------------------------------------------

    def begin(self, path: Path, crop: Crop, *, tune: bool = False) -> bool:
        """Search for a square part of a picture file; return whether it began. A message gives the reason if not.

        With `tune` the weights are tuned to it afterwards, and the tuned model is kept beside the model and opened.
        """
        self.finish()
        self._editing.announce_edit(SOURCE)
        model, rows, obstacle = self._renders.model, self._editing.shown_latent, self.obstacle
        if model is None or rows is None or obstacle:
            self._messages.warning(obstacle)
            return False
        self._playback.set_playing(False)
        self._editing.set_drifting(False)
        session = self._editing.session
        self._before = recipe_shown(session, rows)
        self._number += 1
        self._name, self._report, self._edit = path.stem, None, None
        self._paces.clear()
        self._photo, self._tunes, self._model = path, tune, model
        self._tunes_now = threading.Event()
        self._phase = "preparing"
        self.continued = None
        if self._unfinished is not None:
            self._unfinished.remember(UnfinishedSearch(path, crop, tune))
        make = partial(
            self._make,
            model,
            session.noise,
            resolve(session).edits,
            path,
            crop,
            tune=self._tunes_now.is_set if tune else None,
        )
        self._renders.begin_projection(self._number, make)
        self.changed.emit()
        return True

    def tune_now(self) -> None:
        """End the search, and tune to the photo with the best latent so far as soon as the step under way is over."""
        if self.can_tune_now:
            self._tunes_now.set()
            self.changed.emit()

    def stop(self) -> None:
        """End the search; the best latent so far is taken as soon as the step under way is over."""
        if self._phase in ("preparing", "searching"):
            self._phase = "ending"
            self.changed.emit()
            self._renders.stop_projection()

    def finish(self) -> None:
        """End the search at once with the best latent that was shown."""
        if self._phase != "rest":
            self._renders.cancel_projection()
            self._take()

    def cancel(self) -> None:
        """End the search and restore the former picture."""
        if self._phase != "rest":
            self._renders.cancel_projection()
            self._editing.cancel_gesture(SOURCE)
            self._rest()

    # -- what the controller calls ----------------------------------------------------------------------------------

    def offer_unfinished(self) -> None:
        """Offer the search that the last run did not end, because it was killed. The session has what it showed."""
        if self._unfinished is not None:
            self._unfinished.take(self._offer)

    def take_advanced(self, event: ProjectionAdvanced) -> None:
        """Show the report, and the latent if it is a better one."""
        if event.number != self._number or self._phase == "rest":
            return
        before, report = self._report, event.report
        self._report = report
        if self._phase == "preparing":
            self._phase = "searching"
        if before is not None and before.stage != report.stage == "weights":
            self._paces.clear()
        if report.stage not in ("drafts", "random", "scales"):
            self._paces.append((self._clock(), report.step))
        if event.latent is not None:
            self._show(event.latent)
        self.changed.emit()

    def take_ended(self, event: ProjectionEnded) -> None:
        """Take the latent."""
        if event.number == self._number and self._phase != "rest":
            if event.latent is not None:
                self._show(event.latent)
            if self._edit is not None:
                self._playback.set_playing(False)  # else the next frame of the timeline would replace what was found
            self._take(is_tuned=bool(event.changes))
            if event.changes and self._model is not None:
                self._worker.fetch(
                    partial(_write_tuned, event.changes, self._files, self._model.facts, self._photo),
                    partial(self._take_tuned, self._name),
                    failed=f"The model that is tuned to {self._name} could not be written",
                )

    def take_failed(self, event: ProjectionFailed) -> None:
        """Restore the former picture and show the error."""
        if event.number == self._number and self._phase != "rest":
            self.cancel()
            self._messages.exception(event.error)

    def close(self) -> None:
        """End the search with the best latent that was shown. May be called twice."""
        self.finish()

    # -- inside -----------------------------------------------------------------------------------------------------

    def _show(self, latent: StoredLatent) -> None:
        self._edit = TakeEditedRows(self._before, latent, f"From {self._name}")
        # A step takes longer than a full picture, and drafts of latents that the model seldom shows look like others.
        self._editing.edit(self._edit, False, SOURCE, by_search=True)

    def _take(self, *, is_tuned: bool = False) -> None:
        """Make the latent that is shown a step, and keep it by the photo's name."""
        edit, name = self._edit, self._name
        if edit is None:
            self._editing.cancel_gesture(SOURCE)
            self._rest()
            return
        self._editing.edit(edit, True, SOURCE)
        current = self._editing.history.current
        if current is not None:
            self._editing.kept.star(current.number, True)
            self._editing.kept.rename(current.number, name)
        how = " without a tuned model, since the search was ended early" if self._tunes and not is_tuned else ""
        self._messages.info(f"The latent of {name} is kept{how}; Reconstruct in the point tool (D) fades between both.")
        self._rest(has_taken=True)

    def _take_tuned(self, name: str, path: Path) -> None:
        self._messages.info(f"The model was tuned to {name}; {path.name} holds the changes.", str(path))
        self._open_model(path)

    def _offer(self, search: UnfinishedSearch | None) -> None:
        if search is None:
            return

        def go_on() -> None:
            self.continued = search
            self._open_photo(search.photo)

        self._messages.post(
            Level.INFO,
            f"The search for the latent of {search.photo.stem} was cut short; the best that it showed is still there.",
            action=Action("Search again…", go_on),
        )

    def _rest(self, *, has_taken: bool = False) -> None:
        if self._unfinished is not None:
            self._unfinished.forget()
        self._number += 1
        self._phase, self._report, self._edit = "rest", None, None
        self.changed.emit()
        self.ended.emit(has_taken)

    def _edit_coming(self, source: str) -> None:
        """End the search before another source edits the session."""
        if source != SOURCE and self._phase != "rest":
            self.finish()

    @Slot()
    def _abandon(self) -> None:
        """End the search without an edit: undo made it a step, and went to another one."""
        if self._phase != "rest":
            self._renders.cancel_projection()
            self._rest()


def _project(
    files: ModelFiles,
    model: Model,
    noise: Noise,
    edits: LocalEdits,
    path: Path,
    crop: Crop,
    *,
    tune: Callable[[], bool] | None,
) -> ProjectionLike:
    network = gpu_backend.open_gradients(model, noise).edited(edits)
    spec = network.spec
    picture = gpu_backend.read_photo(path, spec.resolution, spec.img_channels, crop)
    encoder = gpu_backend.open_encoder(model, network, files.own_encoder)
    features = gpu_backend.open_features(model, network, encoder)
    settings = gpu_backend.ProjectionSettings(start_s=gpu_backend.PROJECTION_START_S)
    projection = gpu_backend.Projection(network, picture[None], settings, encoder, features)
    return gpu_backend.TunedProjection(network, picture, projection, features, tune) if tune else projection


def _write_tuned(changes: Mapping[str, NDArray[np.float32]], files: ModelFiles, facts: ModelFacts, photo: Path) -> Path:
    """Keep a tuned model, under a name that is free; return its path."""
    base = gpu_backend.Base(Path(facts.path).absolute(), facts.model_id, photo.name)
    return files.write_tuned(facts, photo, lambda path: gpu_backend.write_tuned(changes, base, path))

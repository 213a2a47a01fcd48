"""The picture in the window, saved as a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from explorer_app.controller.editing import Editing
from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.model_opener import ModelOpener
from explorer_app.controller.preview import Preview
from explorer_app.exporting.formats.picture_format import PICTURE_ENDINGS, PictureFormat, Size, format_of_path
from explorer_app.exporting.picture import write_picture
from explorer_app.messages import MessageLog
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.session.resolve import resolve, unobserved
from gpu_backend import Frame, RenderRequest


class PictureSaver:
    """Writes the picture in full with its recipe, beside the sequences that are being exported."""

    def __init__(
        self,
        renders: RenderThread,
        model: ModelOpener,
        preview: Preview,
        editing: Editing,
        worker: FileWorker,
        messages: MessageLog,
    ) -> None:
        self._renders = renders
        self._model = model
        self._preview = preview
        self._editing = editing
        self._worker = worker
        self._messages = messages

    def save(self, path: Path | str, form: PictureFormat | None = None, size: Size | None = None) -> None:
        """Write the picture, or the layer on show; a message reports the end.

        `form` None means what the path's ending says, `size` None the network's own.
        """
        if self._model.facts is None:
            self._messages.warning("There is no picture to save: open a model first.")
            return
        path, session = Path(path), self._editing.effective
        request, shown = resolve(session), self._preview.frame
        if form is None and path.suffix.lower() in PICTURE_ENDINGS:
            form = format_of_path(path)
        needs_values = form is not None and form.facts.needs_values

        def write(frame: Frame) -> None:
            self._worker.submit(
                lambda: write_picture(
                    path, frame, model_name=session.model.name, session=session, form=form, size=size
                ),
                done=f"Saved {path.name}.",
                failed=f"{path.name} could not be saved",
                file=path,
            )

        if shown is not None and unobserved(shown.request) == request and not needs_values:
            write(shown)
        else:
            job = PictureJob(replace(request, wants_image=needs_values), write, path.name)
            self._renders.export(job, urgent=True)

    def take_ended(self, job: PictureJob, error: BaseException | None) -> None:
        """Report why a picture could not be rendered; `write` reports the rest."""
        facts = self._model.facts
        if error is None:
            return
        if facts is not None and facts.model_id != job.model_id:
            self._messages.warning(
                f"{job.name} was not saved, since another model was opened meanwhile; go back to its picture (Ctrl+Z), "
                "and save it again."
            )
        else:
            self._messages.exception(error)


class PictureJob:
    """Implements `ExportJob`: one frame, passed to a function.

    Attributes
    ----------
    name, model_id
        Of the file that is written, and of the model that makes the picture.
    """

    total = 1
    is_joining = False
    error: BaseException | None = None

    def __init__(self, request: RenderRequest, deliver: Callable[[Frame], None], name: str) -> None:
        self.name, self.model_id = name, request.model_id
        self._request: RenderRequest | None = request
        self._deliver = deliver
        self._is_delivered = False

    @property
    def shown(self) -> int:
        """1 once the frame was delivered."""
        return int(self._is_delivered)

    @property
    def is_ready(self) -> bool:
        """Whether the frame is still to be requested."""
        return self._request is not None

    @property
    def has_ended(self) -> bool:
        """Whether the frame was delivered."""
        return self._is_delivered

    def start(self, changed: Callable[[], None]) -> None:
        """Do nothing: there is nothing to prepare."""

    def next_request(self) -> RenderRequest | None:
        """Return the request the first time."""
        request, self._request = self._request, None
        return request

    def deliver(self, frame: Frame) -> None:
        """Pass the frame to the function."""
        self._deliver(frame)
        self._is_delivered = True

    def stop(self, *, cancelled: bool) -> None:
        """Do nothing: nothing is left open."""

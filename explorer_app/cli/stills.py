"""Renders single pictures into a folder."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from explorer_app.cli.console import Console
from explorer_app.cli.path_text import folder_text
from explorer_app.cli.source import Source
from explorer_app.exporting.encoders import Encoders, usual_patience
from explorer_app.exporting.formats.picture_format import PictureFormat, Size
from explorer_app.exporting.picture_document import PictureDocument, document_to_text
from explorer_app.rendering.pipeline import Pipeline
from explorer_app.rendering.renderer_like import AnswersRequests
from gpu_backend import LoomError, dataclass

_PATIENCE_S = 0.2


@dataclass(frozen=True, slots=True)
class _StillText:
    """Implements `encoder_crew.Text`: the recipe of each picture."""

    documents: tuple[PictureDocument, ...]

    def __call__(self, index: int) -> str:
        return document_to_text(self.documents[index])


def render_stills(
    sources: Sequence[Source],
    targets: Sequence[Path],
    form: PictureFormat,
    size: Size | None,
    threads: int,
    renderer: AnswersRequests,
    console: Console,
) -> None:
    """Render pictures, which are encoded and written meanwhile.

    Parameters
    ----------
    targets
        A file a source, all of one folder.
    threads
        Pictures that are encoded at a time.

    Raises
    ------
    LoomError
        If a picture cannot be rendered or written; the pictures before it are written.
    """
    requests = [replace(source.request, wants_image=form.facts.needs_values) for source in sources]
    waiting = iter(requests)
    pipeline = Pipeline(lambda: next(waiting, None))
    changed = threading.Event()

    text = _StillText(
        tuple(
            PictureDocument(request, source.model.name, source.session)
            for request, source in zip(requests, sources, strict=True)
        )
    )
    patience_s = usual_patience(threads, len(targets))
    encoders = Encoders(threads, form, size, text, targets[0].parent, changed.set, patience_s)
    discards = True
    try:
        for number, target in enumerate(targets, 1):
            frame = pipeline.next_frame(renderer)
            assert frame is not None
            for warning in frame.warnings:
                console.warn(warning)
            while encoders.error is None and not encoders.has_room:
                changed.wait(_PATIENCE_S)
                changed.clear()
            if encoders.error is not None:
                break
            encoders.accept(number - 1, target.name, frame)
            console.progress(f"{target.name} ({number} of {len(targets)})", is_last=number == len(targets))
        discards = False
    except LoomError:
        discards = False  # the pictures before it are written
        raise
    finally:
        encoders.close(discard=discards)
    if encoders.error is not None:
        raise encoders.error
    console.conclude(
        f"{len(targets)} picture{'s are' if len(targets) > 1 else ' is'} in {folder_text(targets[0].parent)}."
    )

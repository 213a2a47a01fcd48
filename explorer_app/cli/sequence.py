"""Rendering a sequence in the foreground, with a progress line and a clean end on Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable

from explorer_app.cli.arguments import UsageError
from explorer_app.cli.console import Console
from explorer_app.exporting.errors import TakenError
from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.progress import ProgressMeter
from explorer_app.exporting.sequence import SequenceSettings
from gpu_backend import Frame, RenderRequest


def render_sequence(settings: SequenceSettings, render: Callable[[RenderRequest], Frame], console: Console) -> None:
    """Render what is missing of a sequence.

    Raises
    ------
    LoomError
        If the folder holds something else, a frame cannot be rendered or written.
    KeyboardInterrupt
        After Ctrl-C; the frames so far are whole, and the same command goes on.
    """
    job = SequenceJob(settings)
    meter = ProgressMeter(job.total)
    try:
        while (request := job.next_request()) is not None:
            if not meter.has_started:
                if job.found:
                    console.note(f"{job.found} of {job.total} frames are there already.")
                meter.update(job.done, job.found, time.monotonic())
            frame = render(request)
            for warning in frame.warnings:
                console.warn(warning)
            job.deliver(frame)
            console.progress(meter.update(job.done, job.found, time.monotonic()).sentence)
        job.close(cancelled=False)
        if meter.has_started:
            console.progress(meter.update(job.done, job.found, time.monotonic()).sentence)
    except BaseException as error:
        job.close(cancelled=isinstance(error, KeyboardInterrupt))
        if isinstance(error, KeyboardInterrupt):
            console.note(
                f"{job.done} of {job.total} frames are in {settings.folder}; the same command goes on from there."
            )
        if isinstance(error, TakenError):
            raise UsageError(
                f"{error.what}; choose another --name or --outdir, or replace it with --overwrite."
            ) from error
        raise
    console.note(f"{job.total} frames are in {settings.folder}, described by {settings.name}.manifest.json.")

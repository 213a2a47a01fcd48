"""Rendering a sequence in the foreground, with a progress line and a clean end on Ctrl-C."""

from __future__ import annotations

import time

from explorer_app.cli.arguments import UsageError
from explorer_app.cli.console import Console
from explorer_app.cli.path_text import folder_text
from explorer_app.exporting.errors import TakenError
from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.progress import ProgressMeter
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.rendering.pipeline import Pipeline
from explorer_app.rendering.renderer_like import AnswersRequests
from gpu_backend import DeviceLostError, DeviceMemoryError


def render_sequence(
    settings: SequenceSettings, renderer: AnswersRequests, console: Console, *, threads: int | None = None
) -> None:
    """Render the missing frames of a sequence, on a GPU two at a time.

    Parameters
    ----------
    threads
        Pictures that are encoded at a time; None for all cores but one.

    Raises
    ------
    LoomError
        If the folder holds something else, a frame cannot be rendered or written.
    KeyboardInterrupt
        After Ctrl-C; the same command continues after the frames so far, of a video after its last whole segment.
    """
    job = SequenceJob(settings, threads=threads)
    meter = ProgressMeter(job.total)
    pipeline = Pipeline(job.next_request)
    job.start()
    try:
        while pipeline.has_in_flight or job.wait():
            if not meter.has_started:
                if job.found:
                    console.note(f"{job.found} of {job.total} frames exist already.")
                meter.update(job.shown, job.found, time.monotonic())
            frame = pipeline.next_frame(renderer)
            if frame is not None:
                for warning in frame.warnings:
                    console.warn(warning)
                job.deliver(frame)
                console.progress(meter.update(job.shown, job.found, time.monotonic()).sentence)
        if meter.has_started:
            console.progress(meter.update(job.shown, job.found, time.monotonic()).sentence, is_last=True)
    except BaseException as error:
        job.stop(cancelled=isinstance(error, KeyboardInterrupt))
        job.join()
        if isinstance(error, KeyboardInterrupt | DeviceLostError | DeviceMemoryError):
            command = "run the same command" if isinstance(error, KeyboardInterrupt) else "add --device cpu"
            lost = 0 if settings.video is None else job.delivered - job.done
            console.note(
                f"{job.done} of {job.total} frames are in {folder_text(settings.folder)}; {command} to continue."
                + (f" It renders {lost} more again, since a video is stored in segments." if lost else "")
            )
        if isinstance(error, TakenError):
            raise taken(error, settings) from error
        raise
    console.conclude(written_text(settings, job.total))


def taken(error: TakenError, settings: SequenceSettings) -> UsageError:
    """Return the error of a place that another sequence has, with the options that choose another one."""
    options = "--name or --outdir" if settings.video is None else "file for --video"
    return UsageError(f"{error.what}; choose another {options}, or replace it with --overwrite.")


def written_text(settings: SequenceSettings, total: int) -> str:
    """Return where the frames of a sequence or video are, in a sentence."""
    frames, verb = ("frame", "is") if total == 1 else ("frames", "are")
    if settings.single_path is not None:
        what = f"{settings.single_path} has {total} {frames}"
    else:
        what = f"{total} {frames} {verb} in {folder_text(settings.folder)}"
    return f"{what}, described by {settings.name}.manifest.json."

"""``latentloom render --project``: a stretch of a project's timeline, as the window exports it."""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path

from explorer_app.audio.sound_files import SoundFiles, envelopes_of, found_sounds
from explorer_app.cli.arguments import UsageError
from explorer_app.cli.console import Console
from explorer_app.cli.network import find_network, read_network, reference_to
from explorer_app.exporting.formats.picture_format import PictureFormat
from explorer_app.exporting.sequence import Piece, SequenceSettings
from explorer_app.exporting.video.video_format import VideoFormat
from explorer_app.session.adapting import adapt
from explorer_app.session.session import Session
from explorer_app.session.storage import load_session
from explorer_app.session.timeline.evaluation import is_piece
from gpu_backend import Model


def read_project(path: Path) -> Session:
    """Return the session of a project that has tracks that act, or sounds.

    Raises
    ------
    LoomError
        If the file is no project, or nothing moves in it.
    """
    session = load_session(path)
    if not is_piece(session):
        raise UsageError(f"Nothing moves on the timeline of {path.name}; render its picture with --from.")
    return session


def network_of_project(session: Session, options: argparse.Namespace, console: Console) -> Model:
    """Return the network to render a project with: its own unless another one is given."""
    if options.network is None:
        return find_network([(session.model, options.project)], console)
    model = read_network(options.network, console)
    if session.model.model_id not in ("", model.facts.model_id):
        console.warn(
            f"{options.project.name} was made with {session.model.name or 'another network'} "
            f"(SHA-256 {session.model.model_id[:12]}…), not with {model.facts.name}: the pictures will be different."
        )
    return model


def project_settings(
    session: Session,
    options: argparse.Namespace,
    model: Model,
    form: PictureFormat,
    video: VideoFormat | None,
    console: Console,
) -> SequenceSettings:
    """Return the part of a project that the command line selects.

    Raises
    ------
    UsageError
        If the stretch ends before it starts, or is outside the range of timelines.
    SoundError
        If a sound is missing or damaged.
    """
    fitted = adapt(session, model.facts)
    for change in fitted.changes:
        console.warn(f"{options.project.name} was fitted to {model.facts.name}: {change}.")
    timeline = fitted.session.timeline
    start: Fraction = options.start or Fraction(0)
    end: Fraction = timeline.end if options.end is None else options.end
    if end <= start and options.end is None:
        raise UsageError(
            f"--start should be before {float(end):g} s, where the timeline ends, but is {float(start):g} s."
        )
    if end <= start:
        raise UsageError(f"--end should be after --start, {float(start):g} s, but is {float(end):g} s.")
    if end > timeline.end:
        console.warn(f"The timeline of {options.project.name} ends at {float(timeline.end):g} s, before --end.")
    sounds = SoundFiles.of_this_user()
    if video is not None:
        found_sounds(fitted.session, sounds, options.project)
    envelopes = envelopes_of(fitted.session, sounds, options.project)
    return SequenceSettings(
        keys=(),
        folder=options.outdir if options.video is None else options.video.parent,
        name=project_name(options),
        model=reference_to(model.facts),
        z_dim=model.facts.z_dim,
        form=form,
        size=options.size,
        video=video,
        overwrite=bool(options.overwrite),
        piece=Piece.of(fitted.session, project_fps(session, options), start, end, envelopes),
    )


def project_fps(session: Session, options: argparse.Namespace) -> Fraction:
    """Return the requested frame rate, by default that of the timeline. Raises UsageError if it is 0."""
    if options.fps is None:
        return session.timeline.fps
    fps: Fraction = options.fps
    if fps <= 0:
        raise UsageError("--fps should be above 0.")
    return fps


def project_name(options: argparse.Namespace) -> str:
    """Return what the files are called: by the name that is given, else as the project."""
    if options.video is not None:
        return str(options.video.stem)
    return str(options.name if options.name is not None else options.project.stem)

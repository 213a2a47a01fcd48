"""``latentloom demo``: a piece of ten seconds that its own sound moves, for machines without a display."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

from explorer_app.audio.decoding import write_wav
from explorer_app.audio.mixing import MIX_HZ, Mixer
from explorer_app.audio.sound_files import SoundFiles, envelopes_of, found_sounds, with_files, with_relative_paths
from explorer_app.audio.synthesis import BPM, RATE_HZ, stems
from explorer_app.cli.arguments import Parser, UsageError, add_device
from explorer_app.cli.console import Console
from explorer_app.cli.network import read_network, reference_to
from explorer_app.cli.renderer import chosen, start_renderer
from explorer_app.cli.sequence import render_sequence
from explorer_app.exporting.output_file import as_export_error, check_output_path
from explorer_app.exporting.picture import has_recipe
from explorer_app.exporting.sequence import Piece, SequenceSettings
from explorer_app.exporting.sheet import write_contact_sheet
from explorer_app.exporting.sinks.picture_folder import PictureFolder
from explorer_app.exporting.video.video_format import VideoFormat, has_video_extra
from explorer_app.session.patches import Patch
from explorer_app.session.session import Session
from explorer_app.session.storage import SessionFile, load_session_file, save_session
from explorer_app.session.timeline.evaluation import keyed_at
from explorer_app.session.tracks import BeatGrid, Key, Timeline, Track
from gpu_backend import Latent, LoomError, ModelFacts, Point, Recipe, Truncation, write_whole

SEEDS = (38, 42, 41, 4)
SECONDS = 10
FPS = 24
SHEET_COLUMNS = 4
_SHEET_PICTURES = 12
_FLASH, _SWELL = "world/exposure", "world/sun height"
"""Directions of the bundled model."""


def parser() -> Parser:
    """Return the parser of this command."""
    made = Parser(
        "latentloom demo",
        "Render ten seconds of the bundled model, driven by sound: a project, its sounds, a video, a contact sheet.",
    )
    made.add_argument(
        "--outdir",
        type=Path,
        default=Path("latentloom-demo"),
        metavar="DIR",
        help="where to save the output files (default: latentloom-demo)",
    )
    add_device(made)
    return made


def run(words: Sequence[str], console: Console) -> int:
    """Render the demo; files of an earlier call are not rendered again."""
    options = parser().parse_args(words)
    folder: Path = options.outdir
    sheet = folder / "contact-sheet.png"
    check_output_path(sheet)
    if sheet.exists() and not has_recipe(sheet):
        raise UsageError(f"{sheet} exists, and Latent Loom did not save it; choose another --outdir.")
    model = read_network(None, console)
    files = SoundFiles.of_this_user()
    project = folder / "demo.loom"
    with as_export_error(project):
        sounds = write_stems(folder / "sounds")
        session = demo_session(model.facts, sounds, files, project)
        _check_unedited(project, session)
        save_session(project, session)
        if not has_video_extra():
            _write_mix(session, files, project)
    envelopes = envelopes_of(session, files, project)

    def settings(name: str, fps: Fraction, video: VideoFormat | None) -> SequenceSettings:
        return SequenceSettings(
            keys=(),
            folder=folder,
            name=name,
            model=reference_to(model.facts),
            z_dim=model.facts.z_dim,
            video=video,
            overwrite=True,
            piece=Piece.of(session, fps, Fraction(0), Fraction(SECONDS), envelopes),
        )

    film = VideoFormat("h264" if has_video_extra() else "webp", fps=Fraction(FPS))
    stills = settings("demo", Fraction(_SHEET_PICTURES, SECONDS), None)
    video = settings("demo-video", Fraction(FPS), film)
    choice = chosen(options.device, options.precision)
    with contextlib.closing(start_renderer(model, choice, console)) as renderer:
        render_sequence(stills, renderer, console)
        render_sequence(video, renderer, console)
    frames = PictureFolder(stills.folder, stills.name)
    write_contact_sheet(sheet, [frames.unit_path(n) for n in range(stills.frame_count)], columns=SHEET_COLUMNS)
    heard = "" if has_video_extra() else " beside demo.wav; with the extra “video” the sound is part of it"
    console.conclude(
        f"Play {video.single_path}{heard}. {sheet.name} shows some pictures, {project.name} opens in the window."
    )
    return 0


def demo_session(facts: ModelFacts, sounds: Sequence[Path], files: SoundFiles, project: Path) -> Session:
    """Return the piece: a closed way through `SEEDS`, on which bass, drums and pad move the picture."""
    truncation = Truncation(psi=0.7, cutoff=facts.usual_cutoff)
    step = Fraction(SECONDS, len(SEEDS))
    keys = tuple(
        Key(n * step, ((Recipe(Latent(Point(((seed, 1.0),))), truncation), 1.0),))
        for n, seed in enumerate((*SEEDS, SEEDS[0]))
    )
    flash, swell = (
        name if name in facts.named_directions else other for name, other in ((_FLASH, "sefa/0"), (_SWELL, "sefa/1"))
    )
    timeline = Timeline(
        (Track("pinned_blend", keys),), fps=Fraction(FPS), end=Fraction(SECONDS), grid=BeatGrid(Fraction(BPM))
    )
    timeline = with_relative_paths(with_files(timeline, sounds, files), files, project)
    patches = (
        Patch("audio/pad/rms", "truncation.psi", 0.5, 0.85, attack_s=0.2, release_s=0.5),
        Patch("audio/bass/rms", f"slider/{swell}", -1.0, 2.0, "add", attack_s=0.03, release_s=0.25),
        Patch("audio/drums/onset", f"slider/{flash}", 0.0, 1.5, "add", release_s=0.08),
        Patch("audio/drums/beat", "noise.gain", 0.7, 1.6, release_s=0.1),
    )
    session = Session(model=reference_to(facts), timeline=replace(timeline, z_dim=facts.z_dim), patches=patches)
    return keyed_at(session, 0.0)


def write_stems(folder: Path) -> list[Path]:
    """Write the sounds of the piece into a folder; return their files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, samples in stems(SECONDS).items():
        path = folder / f"{name}.wav"
        write_whole(path, partial(write_wav, samples=samples[:, None], rate_hz=RATE_HZ))
        written.append(path)
    return written


def _check_unedited(project: Path, session: Session) -> None:
    """Raise UsageError if the file exists and differs from the unedited demo."""
    if not os.path.lexists(project):
        return
    try:
        is_demo = load_session_file(project) == SessionFile(session)
    except LoomError:
        is_demo = False
    if not is_demo:
        raise UsageError(f"{project} was changed since; choose another folder with --outdir, or rename it.")


def _write_mix(session: Session, files: SoundFiles, project: Path) -> None:
    mixer = Mixer(session.timeline.sounds, found_sounds(session, files, project))
    mix = mixer.read(0, SECONDS * MIX_HZ)
    write_whole(project.with_name("demo.wav"), partial(write_wav, samples=mix, rate_hz=MIX_HZ))

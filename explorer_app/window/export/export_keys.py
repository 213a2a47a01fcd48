"""Keyframes of an export as listed in the dialog: pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from explorer_app.exporting.formats.picture_format import PictureFormat, Size
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.sequence import Piece, SequenceSettings, check_sheet, plan_sequence
from explorer_app.exporting.sheet import SheetLayout
from explorer_app.exporting.video.video_format import VideoFormat
from explorer_app.session.edits import GoToSeed
from explorer_app.session.resolve import resolve
from explorer_app.session.session import ModelReference, Session
from gpu_backend import SEED_COUNT, LoomError, PathKind

MAX_SEEDS = 1000
"""Maximum number of seeds in one line of text."""

KINDS: tuple[tuple[PathKind, str, str], ...] = (
    ("w-cubic", "Smooth in w", "A cubic curve through the rows of w: no corner at a keyframe."),
    ("w-linear", "Straight in w", "From keyframe to keyframe in a straight line through w."),
    ("w-slerp", "On the sphere in w", "Along an arc around the average of w; straight where a keyframe is a blend."),
    ("z-slerp", "On the sphere in z", "Along the great circle between the seeds' z, mapped frame by frame."),
    ("z-linear", "Straight in z", "In a straight line between the seeds' z, mapped frame by frame."),
)
"""Kind of path, its label in the dialog, its description."""

_MOST_NAMES = 1000


@dataclass(frozen=True)
class ExportKey:
    """One keyframe: its label in the list and its session."""

    label: str
    session: Session

    @cached_property
    def keyframe(self) -> Keyframe:
        """The keyframe for the exporter; cached, since each change of a path with thousands of keyframes reads it."""
        return Keyframe.of(resolve(self.session))


def seed_key(session: Session, seed: int) -> ExportKey:
    """Return the keyframe of a seed with all other settings of the session."""
    return ExportKey(f"seed {seed}", GoToSeed(seed).apply(session))


def parse_seeds(text: str) -> tuple[int, ...]:
    """Return the seeds of a line such as ``0,1,4-6``.

    Raises
    ------
    ValueError
        With a sentence for the user, if the text is invalid.
    """
    seeds: list[int] = []
    for part in re.split(r"[,;\s]+", text.strip()):
        match = re.fullmatch(r"(\d{1,10})(?:-(\d{1,10}))?", part)
        if match is None:
            raise ValueError(f"Seeds are whole numbers and ranges such as 0,1,4-6, not “{part or text}”.")
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        if max(first, last) >= SEED_COUNT:
            raise ValueError(f"Seeds go up to {SEED_COUNT - 1}, so {max(first, last)} is too large.")
        step = 1 if last >= first else -1
        if len(seeds) + abs(last - first) + 1 > MAX_SEEDS:
            raise ValueError(f"One line may have up to {MAX_SEEDS} seeds, but this one has more.")
        seeds.extend(range(first, last + step, step))
    return tuple(seeds)


def export_settings(
    keys: Sequence[ExportKey],
    session: Session,
    *,
    kind: PathKind,
    frames_per_step: int,
    loop: bool,
    folder: Path,
    name: str,
    z_dim: int,
    overwrite: bool,
    form: PictureFormat | None = None,
    size: Size | None = None,
    video: VideoFormat | None = None,
    piece: Piece | None = None,
    sheet: SheetLayout | None = None,
    file_names: tuple[str, ...] = (),
) -> SequenceSettings:
    """Return the exporter's settings, with the model of the session; a piece has no keyframes."""
    return SequenceSettings(
        keys=() if piece is not None else tuple(key.keyframe for key in keys),
        folder=folder,
        name=name,
        model=ModelReference(session.model.path, session.model.name, session.model.model_id),
        kind=kind,
        frames_per_step=frames_per_step,
        loop=loop,
        z_dim=z_dim,
        overwrite=overwrite,
        form=form or PictureFormat(),
        size=size,
        video=video,
        piece=piece,
        sheet=sheet,
        file_names=file_names,
    )


def objection(settings: SequenceSettings) -> str:
    """Return a sentence that explains why the settings are invalid; empty if they are valid.

    Checks only the keyframes and computes no curve, so that long paths stay fast.
    """
    if settings.piece is not None:
        return _planning_error(settings)
    if not settings.keys:
        return "Add at least two latents to the path."
    if len(settings.keys) < 2:
        return "Add a second latent: a seed, or + Random for three; or choose Still for a single picture."
    if settings.sheet is not None:
        try:
            check_sheet(settings, settings.sheet)
        except LoomError as error:
            return error.sentence
    return _planning_error(
        SequenceSettings(
            keys=settings.keys,
            folder=settings.folder,
            name=settings.name,
            model=settings.model,
            kind=settings.kind if settings.kind.startswith("z") else "w-linear",
            frames_per_step=1,
            z_dim=settings.z_dim,
        )
    )


def _planning_error(settings: SequenceSettings) -> str:
    """Return why a sequence cannot be planned; empty if it can."""
    try:
        plan_sequence(settings)
    except LoomError as error:
        return error.sentence
    return ""


def kind_objection(keys: Sequence[ExportKey], kind: PathKind, z_dim: int) -> str:
    """Return a sentence that explains why a kind of path does not support the keyframes; empty if it does."""
    if len(keys) == 1:
        keys = (keys[0], keys[0])
    if not keys:
        return ""
    settings = export_settings(
        keys,
        keys[0].session,
        kind=kind,
        frames_per_step=1,
        loop=False,
        folder=Path(),
        name="x",
        z_dim=z_dim,
        overwrite=False,
    )
    return objection(settings)


def length_text(frames: int, frames_per_second: float | Fraction) -> str:
    """Return the length of the export: "96 frames · 4.0 s at 24 fps"."""
    noun = "frame" if frames == 1 else "frames"
    return f"{frames:,} {noun} · {frames / float(frames_per_second):.1f} s at {float(frames_per_second):g} fps"


def sheet_text(count: int, sheet: SheetLayout) -> str:
    """Return what a sheet holds: "12 pictures · 4 × 3"."""
    return f"{count:,} picture{'' if count == 1 else 's'} · {sheet.columns} × {sheet.rows(count)}"


def free_name(name: str, is_taken: Callable[[str], bool]) -> str:
    """Return a name like this one that is not taken: "walk", "walk-2"."""
    stem = re.sub(r"-[0-9]{1,5}$", "", name)
    for number in range(2, _MOST_NAMES):
        if not is_taken(name):
            break
        name = f"{stem}-{number}"
    return name

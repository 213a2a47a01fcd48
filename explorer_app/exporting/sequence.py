"""A sequence: its settings, and the request of each frame, computed on demand."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path
from types import MappingProxyType

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.file_names import text_of_name
from explorer_app.exporting.formats.picture_format import MAX_SIDE_PX, PictureFormat, Size, check_sides, written_as
from explorer_app.exporting.keyframes import Keyframe, KeyframePath
from explorer_app.exporting.picture_document import PictureDocument
from explorer_app.exporting.sheet import MAX_CELLS, SHEET_FORMATS, SheetLayout
from explorer_app.exporting.video.video_format import VideoFormat
from explorer_app.session.envelopes import (
    Envelope,
    EnvelopeKey,
    Envelopes,
    cut_envelopes,
    needed_envelopes,
    sound_modulation,
    sound_patches,
)
from explorer_app.session.resolve import Modulation, resolve
from explorer_app.session.session import ModelReference, Session
from explorer_app.session.timeline.evaluation import is_blended, keyed_at, session_at
from gpu_backend import PathKind, RecipeBudget, RenderRequest, RequestError, dataclass, spend_blend, spend_latent

MAX_FRAMES = 100_000
"""The largest number of five digits."""

MAX_KEYS = 4096
"""As many recipes as a frame's request may blend."""

MANIFEST_SUFFIX = ".manifest.json"
"""What the name of a manifest ends in."""

_MAX_NAME = 100
_MAX_NAME_NBYTES = 200
"""Most file systems take 255 bytes, of which numbers, endings and names of unfinished files need some."""

_NO_ENVELOPES: Mapping[EnvelopeKey, Envelope] = MappingProxyType({})

_KEPT_REQUESTS = 256
"""More than the frames in flight between request and file."""

_CUBIC_KEYS = 32
"""Keyframes that a frame on a cubic path may hold: their weights fade by 3.7 a step, down to 1e-9 on either side."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a project's timeline.

    Attributes
    ----------
    session
        What the timeline does not move, and the timeline. `of` makes it independent of the playhead.
    fps
        Frames a second.
    start, end
        In seconds; the frame at `end` is not part of it, so that a loop repeats without a double frame.
    envelopes
        Envelopes of the sounds that move parameters.
    """

    session: Session
    fps: Fraction
    start: Fraction
    end: Fraction
    envelopes: tuple[Envelope, ...] = ()

    @classmethod
    def of(
        cls, session: Session, fps: Fraction, start: Fraction, end: Fraction, envelopes: Envelopes = _NO_ENVELOPES
    ) -> Piece:
        """Return a stretch of a session's timeline; of its patches, only patches of sounds count.

        Raises
        ------
        ExportError
            If an envelope is missing that a patch needs.
        """
        names = {sound.digest: sound.name for sound in session.timeline.sounds}
        needed = needed_envelopes(session)
        for key in needed:
            if key not in envelopes:
                raise ExportError(
                    f"The sound “{names[key[0]]}” moves the picture, but its file is missing or still being read; "
                    "locate it, or switch its patches off."
                )
        used = tuple(patch for patch, _, _ in sound_patches(session))
        session = replace(keyed_at(session, float(start)), patches=used)
        return cls(session, fps, start, end, cut_envelopes([envelopes[key] for key in needed], session, float(end)))

    @property
    def sound(self) -> Modulation:
        """What its sounds move."""
        return sound_modulation(self.session, {item.key: item for item in self.envelopes})

    @property
    def frame_count(self) -> int:
        """Number of frames; at least one."""
        return max(1, math.ceil((self.end - self.start) * self.fps))

    def time(self, index: int) -> Fraction:
        """Return the time of a frame in seconds."""
        return self.start + index / self.fps


class PiecePath:
    """The keyframe of each frame of a piece, in any order, as `KeyframePath` has it for keyframes."""

    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        self._sound = piece.sound

    def __len__(self) -> int:
        return self._piece.frame_count

    def frame(self, index: int) -> Keyframe:
        """Return what a frame shows."""
        return Keyframe.of(resolve(session_at(self._piece.session, float(self._piece.time(index)), self._sound)))


@dataclass(frozen=True, slots=True)
class SequenceSettings:
    """Settings of an export.

    Attributes
    ----------
    keys
        Keyframes, in the order in which they are passed; none for a piece.
    kind, frames_per_step, loop
        As for `gpu_backend.LatentPath`.
    folder, name
        The frames are ``<folder>/<name>_00000.png`` and so on, beside ``<folder>/<name>.manifest.json``.
    model
        Which model renders; `model_id` is what counts.
    z_dim
        Length of the model's z; the paths in z depend on it.
    resolution
        None means full.
    form
        How the files are written.
    size
        Width and height of the files in pixels; None for the network's own.
    video
        Write one video ``<folder>/<name>.mp4`` instead of pictures; `form` does not matter then.
    sheet
        Write one sheet ``<folder>/<name>.png`` of all frames instead; `size` is the whole sheet's then. None for none.
    overwrite
        Take the place of a different sequence of that name.
    file_names
        What the pictures are called, without ending, one for each frame; empty numbers them. Such pictures replace
        others of their names.
    piece
        What to render in place of a path through keyframes; `kind`, `frames_per_step` and `loop` do not matter then.
    """

    keys: tuple[Keyframe, ...]
    folder: Path
    name: str
    model: ModelReference
    kind: PathKind = "w-cubic"
    frames_per_step: int = 24
    loop: bool = False
    z_dim: int = 512
    resolution: int | None = None
    form: PictureFormat = PictureFormat()
    size: Size | None = None
    video: VideoFormat | None = None
    overwrite: bool = False
    piece: Piece | None = None
    sheet: SheetLayout | None = None
    file_names: tuple[str, ...] = ()

    @property
    def frame_count(self) -> int:
        """Number of frames that these settings give."""
        if self.piece is not None:
            return self.piece.frame_count
        return frame_count(len(self.keys), self.frames_per_step, self.loop)

    @property
    def single_path(self) -> Path | None:
        """Where the video or the sheet goes; None for numbered pictures."""
        if self.video is None and self.sheet is None:
            return None
        return self.folder / f"{self.name}{self.form.ending if self.video is None else self.video.file_ending}"

    def frame_path(self, index: int) -> Path:
        """Return where a picture goes, by its number from 0, if there is no `single_path`."""
        names = self.file_names
        name = f"{names[index]}{self.form.ending}" if names else frame_name(self.name, self.form, index)
        return self.folder / name

    @property
    def manifest_path(self) -> Path:
        """Where the manifest goes."""
        return self.folder / f"{self.name}{MANIFEST_SUFFIX}"

    def makes_the_same_as(self, other: SequenceSettings) -> bool:
        """Return whether both make the same frames under the same names, in whatever folder.

        How well PNG files are compressed does not count: a sequence may hold both kinds.
        """
        neutral = [
            replace(
                item,
                folder=Path(),
                model=ModelReference(),
                piece=None if item.piece is None else replace(item.piece, session=_neutral(item.piece.session)),
                form=item.form.without_compression,
                video=None if item.video is None else item.video.normal,
                overwrite=False,
            )
            for item in (self, other)
        ]
        return self.model.model_id == other.model.model_id and neutral[0] == neutral[1]


def _neutral(session: Session) -> Session:
    """Return a session without what makes no picture: names, and how the timeline plays and snaps."""
    timeline = replace(
        session.timeline, loop=None, is_looping=True, is_ping_pong=False, snap="off", end=Fraction(1), fps=Fraction(1)
    )
    return replace(session, model=ModelReference(), timeline=timeline)


def frame_name(name: str, form: PictureFormat, index: int) -> str:
    """Return what a frame's file is called, by its number from 0, in a sequence whose pictures have no own names."""
    return f"{name}_{index:05d}{form.ending}"


def frame_count(keys: int, frames_per_step: int, loop: bool) -> int:
    """Return the number of frames of a path: a loop has one step more, and its last key is the first."""
    return keys * frames_per_step if loop else max(keys - 1, 0) * frames_per_step + 1


class SequencePlan:
    """Implements `FramePlan`: what each frame is, by its index. Made by `plan_sequence`."""

    def __init__(self, settings: SequenceSettings, path: KeyframePath | PiecePath) -> None:
        self.settings = settings
        self._path = path
        self._written_as = written_as(settings.form, settings.size)
        self.request = functools.lru_cache(_KEPT_REQUESTS)(self._request)
        """Return a frame's request; it is computed again when the frame is written."""

    def __len__(self) -> int:
        return len(self._path)

    def __reduce__(self) -> tuple[Callable[[SequenceSettings], SequencePlan], tuple[SequenceSettings]]:
        return plan_sequence, (self.settings,)

    def _request(self, index: int) -> RenderRequest:
        frame = self._path.frame(index)
        return RenderRequest(
            model_id=self.settings.model.model_id,
            blend=frame.blend,
            noise=frame.noise,
            transform=frame.transform,
            edits=frame.edits,
            resolution=self.settings.resolution,
            wants_image=self.settings.video is None and self.settings.form.facts.needs_values,
        )

    def document(self, index: int) -> PictureDocument:
        """Return what a frame's file says about itself."""
        settings = self.settings
        return PictureDocument(self.request(index), settings.model.name, written_as=self._written_as)


def plan_sequence(settings: SequenceSettings) -> SequencePlan:
    """Return the plan of a sequence. Nothing is written or rendered.

    Raises
    ------
    ExportError
        If the name cannot be a file name, the sequence would be too long, or a frame would take too much work.
    RequestError
        If the keyframes do not suit the path.
    """
    check_name(settings.name)
    if settings.size is not None and not all(1 <= side <= MAX_SIDE_PX for side in settings.size):
        raise ExportError(f"A picture's sides must be 1 to {MAX_SIDE_PX:,} pixels, not {settings.size}.")
    if settings.size is not None:
        facts = settings.form.facts if settings.video is None else settings.video.facts
        check_sides(facts.label, facts.max_side_px, settings.size)
    if len(settings.keys) > MAX_KEYS:
        raise ExportError(f"A path can go through {MAX_KEYS:,} keyframes, but this one has {len(settings.keys):,}.")
    if settings.frame_count > MAX_FRAMES:
        raise ExportError(
            f"A sequence can have {MAX_FRAMES:,} frames, but this one would have {settings.frame_count:,}; "
            "take fewer frames per step."
        )
    if settings.sheet is not None:
        check_sheet(settings, settings.sheet)
    if settings.file_names:
        _check_file_names(settings)
    if settings.piece is not None:
        _check_piece(settings.piece)
        return SequencePlan(settings, PiecePath(settings.piece))
    _check_budget(settings)
    path = KeyframePath(settings.keys, settings.kind, settings.frames_per_step, settings.loop, z_dim=settings.z_dim)
    return SequencePlan(settings, path)


def _check_file_names(settings: SequenceSettings) -> None:
    """Raise ExportError unless the pictures' names are distinct and valid as file names."""
    names = settings.file_names
    for name in names:
        check_name(name)
    if settings.single_path is not None or len(set(names)) != settings.frame_count or len(names) != len(set(names)):
        raise ExportError("Each picture needs a name of its own; render them as numbered frames instead.")


def check_sheet(settings: SequenceSettings, sheet: SheetLayout) -> None:
    """Raise ExportError if a sheet cannot hold its pictures, or has no such format."""
    if settings.video is not None or settings.form.name not in SHEET_FORMATS:
        raise ExportError(f"A sheet is one of {', '.join(SHEET_FORMATS)}; choose another format.")
    count = settings.frame_count
    if count > MAX_CELLS:
        raise ExportError(f"A sheet takes {MAX_CELLS:,} pictures, but this one would have {count:,}; take fewer.")
    if settings.size is not None and sheet.cell_side(count, settings.size) < 1:
        raise ExportError(f"{count:,} pictures do not fit on this sheet; choose a larger size or fewer pictures.")


def _check_piece(piece: Piece) -> None:
    """Raise ExportError if a piece has no length or nothing moves in it, or if a frame would take too much work.

    Between two keys of latents a frame holds the recipes of both and of their neighbours, so the middle counts.
    """
    if piece.end <= piece.start or piece.fps <= 0:
        raise ExportError("A piece should end after it starts, but does not; choose another start or end.")
    timeline = piece.session.timeline
    times = sorted({timeline.seconds(key) for track in timeline.tracks if is_blended(track) for key in track.keys})
    for first, second in pairwise(times):
        at = session_at(piece.session, float((first + second) / 2))
        try:
            spend_blend(resolve(at).blend, RecipeBudget())
        except RequestError as error:
            raise ExportError(
                f"The picture at {float((first + second) / 2):.2f} s holds too much: {error.sentence}"
            ) from error


def _check_budget(settings: SequenceSettings) -> None:
    """Raise ExportError if a frame would hold more seeds, sources or directions than a picture may.

    A frame holds the recipes of all keyframes whose weight is not negligible. RequestError if a keyframe alone is over.
    """
    most = RecipeBudget()
    spent: list[tuple[int, int, int]] = []
    for key in settings.keys:
        budget = RecipeBudget()
        for recipe, _ in key.blend:
            spend_latent(recipe.latent, budget)
        spent.append((most.seeds - budget.seeds, most.sources - budget.sources, most.directions - budget.directions))
    together = min(len(spent), _CUBIC_KEYS if settings.kind == "w-cubic" else 2)
    if settings.kind == "w-slerp":
        spent = [(2 * seeds, sources, directions) for seeds, sources, directions in spent]  # each end has both points
    row = spent + spent[: together - 1] if settings.loop else spent
    for column, (name, limit) in enumerate(
        (("seeds", most.seeds), ("mix sources", most.sources), ("directions", most.directions))
    ):
        sums = list(accumulate((item[column] for item in row), initial=0))
        for first in range(len(row) - together + 1):
            if sums[first + together] - sums[first] > limit:
                raise ExportError(
                    f"A frame may hold {limit:,} {name}, but those near keyframe {first + 1} would hold more; "
                    "mix less into the keyframes, or go straight in w from one to the next."
                )


def check_name(name: str) -> None:
    """Raise ExportError if files of a sequence cannot have this name."""
    try:
        text = text_of_name(name)
    except UnicodeEncodeError as error:
        raise ExportError(
            f"The name {name!r} holds {name[error.start]!r}, which no file name has in this locale; set LC_ALL to "
            "C.UTF-8, or choose another.",
            str(error),
        ) from error
    forbidden = sorted({character for character in text if character in '/\\:*?"<>|' or not character.isprintable()})
    if forbidden:
        raise ExportError(
            f"The name {text!r} does not fit file names, since it holds {forbidden[0]!r}; choose another."
        )
    if not text.strip() or text.startswith("."):
        raise ExportError("A name must not be empty, nor start with a dot; choose another.")
    if len(text) > _MAX_NAME or len(text.encode()) > _MAX_NAME_NBYTES:
        raise ExportError(
            f"A name may have {_MAX_NAME} characters and {_MAX_NAME_NBYTES} bytes, but this has {len(text):,} and "
            f"{len(text.encode()):,}; choose another."
        )
    if re.fullmatch(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", name, re.IGNORECASE):
        raise ExportError(f"The name {name!r} is reserved on Windows; choose another.")

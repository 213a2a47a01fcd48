"""The manifest beside a sequence: everything that resuming needs, and how much was written.

It holds no times, no paths and no random names, so that an export that was interrupted and resumed ends with the same
bytes as one that was not, on another machine too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, cast, get_args

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.file_names import name_of_text, text_of_name
from explorer_app.exporting.formats.picture_format import (
    FORMATS,
    MAX_DPI,
    MAX_SIDE_PX,
    Compression,
    PictureFormat,
    Size,
    is_background,
)
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.piece_json import piece_from_json, piece_stored, piece_to_json
from explorer_app.exporting.sequence import MANIFEST_SUFFIX, MAX_FRAMES, MAX_KEYS, SequenceSettings, plan_sequence
from explorer_app.exporting.sheet import MAX_COLUMNS, MAX_GAP_PX, Paper, SheetLayout
from explorer_app.exporting.video.video_format import CODECS, HardwareName, VideoFormat
from explorer_app.session.session import ModelReference
from explorer_app.version import __version__
from gpu_backend import (
    MANIFEST_LIMITS,
    NO_EDITS,
    LimitError,
    LoomError,
    PathKind,
    StoredPart,
    check_json_size,
    dataclass,
    edits_to_json,
    noise_to_json,
    parse_json,
    read_regular_file,
    recipe_to_json,
    request_from_json,
    stored_from_json,
    stored_in,
    stored_in_edits,
    stored_to_json,
)

FORMAT = "latent-loom-sequence"
VERSION = 5
"""4: no sheets and no names of files; still written for pieces. 3: no pieces; still written for sequences of keyframes.
2: formats and sizes were not known; 1: see `_settings_1`."""

State = Literal["unfinished", "cancelled", "complete"]

_WHAT = "a manifest of a sequence"


@dataclass(frozen=True, slots=True)
class FramesByDevice:
    """Which frames a device of a farm made: its name, driver, precision and version; ascending numbers."""

    device: str
    frames: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a manifest says.

    Attributes
    ----------
    settings
        What makes the sequence; `folder` is that of the manifest, `model.path` is empty.
    state
        "unfinished" from before the first frame until the last, also when the program was killed meanwhile;
        "cancelled" after a user stopped it for good.
    frames_written
        Frames at the end of the run that wrote the manifest; None while it is unfinished.
    made_on
        Devices of a farm that made frames; empty for an export in one process.
    data
        The manifest's bytes.
    """

    settings: SequenceSettings
    state: State
    frames_written: int | None
    made_on: tuple[FramesByDevice, ...] = ()
    data: bytes = field(default=b"", repr=False, compare=False)


def manifest_bytes(
    settings: SequenceSettings, state: State, frames_written: int | None, made_on: Sequence[FramesByDevice] = ()
) -> bytes:
    """Return the content of a manifest; the same arguments always give the same bytes.

    Raises
    ------
    ExportError
        If it would be larger than `read_manifest` allows.
    """
    head = {
        "format": FORMAT,
        "version": _version(settings),
        "made_by": f"Latent Loom {__version__}",
        "state": state,
        "frames_written": frames_written,
        "frames_total": settings.frame_count,
        "model": {"name": settings.model.name, "sha256": settings.model.model_id},
        "name": text_of_name(settings.name),
        "path": settings.kind,
        "frames_per_step": settings.frames_per_step,
        "loop": settings.loop,
        "z_dim": settings.z_dim,
        "resolution": settings.resolution,
        "files": _files_to_json(settings),
    }
    if settings.file_names:
        head["file_names"] = [text_of_name(name) for name in settings.file_names]
    if made_on:
        head["made_on"] = {made.device: _ranges(made.frames) for made in made_on}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    keys = ",\n".join(json.dumps(_key_to_json(key)) for key in settings.keys)
    lines.append(f'"keys": [\n{keys}\n]')
    stored = stored_in(recipe.latent for key in settings.keys for recipe, _ in key.blend)
    for key in settings.keys:
        stored.update(stored_in_edits(key.edits))
    if settings.piece is not None:
        lines.append(f'"piece": {json.dumps(piece_to_json(settings.piece))}')
        stored = piece_stored(settings.piece)
    if stored:
        lines.append(f'"latents": {json.dumps(stored_to_json(stored))}')
    data = ("{\n" + ",\n".join(lines) + "\n}\n").encode("ascii")
    try:
        check_json_size(data, MANIFEST_LIMITS, _WHAT)
    except LimitError as error:
        raise ExportError(f"{error.sentence.rstrip('.')}; take fewer keyframes.") from error
    return data


def _version(settings: SequenceSettings) -> int:
    """Return the oldest version that reads these settings."""
    if settings.sheet is not None or settings.file_names:
        return VERSION
    return 3 if settings.piece is None else 4


def identity_of(settings: SequenceSettings) -> str:
    """Return 16 hexadecimal digits that identify a sequence; the version of the program does not count."""
    lines = manifest_bytes(settings, "unfinished", None).splitlines()
    told = b"\n".join(line for line in lines if not line.startswith(b'"made_by"'))
    return hashlib.sha256(told).hexdigest()[:16]


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of a sequence, of this version or an earlier one.

    Raises
    ------
    ExportError
        If the file is missing, no manifest, damaged, larger than is allowed, or of a newer version.
    """
    try:
        data = read_regular_file(path, MANIFEST_LIMITS.nbytes, _WHAT)
    except OSError as error:
        raise ExportError(f"The manifest {path} cannot be opened ({error.strerror or error}).", str(error)) from error
    except LimitError as error:
        raise ExportError(error.sentence) from error
    return manifest_of(data, path)


def manifest_of(data: bytes, path: Path) -> Manifest:
    """Return what the bytes of a manifest at `path` say. Raises ExportError as `read_manifest` does."""
    try:
        fields = parse_json(data, MANIFEST_LIMITS, _WHAT)
    except LimitError as error:
        raise ExportError(error.sentence) from error
    except ValueError as error:
        raise ExportError(f"{path.name} should be {_WHAT}, but is not JSON.", str(error)) from error
    if not isinstance(fields, Mapping) or fields.get("format") != FORMAT:
        raise ExportError(f"{path.name} should be {_WHAT}, but says that it is something else.")
    version = fields.get("version")
    if version not in (1, 2, 3, 4, VERSION):
        raise ExportError(
            f"{path.name} was written by another version of Latent Loom; this one reads manifests up to {VERSION}."
        )
    try:
        settings = _settings_1(fields, path) if version == 1 else _settings(fields, path)
        plan_sequence(settings)
    except LoomError as error:
        raise ExportError(f"The manifest {path.name} is damaged: {error.sentence}", error.details) from error
    except (OverflowError, RecursionError) as error:
        raise ExportError(f"The manifest {path.name} is damaged: it holds a number that is too large.") from error
    state, written = fields.get("state"), fields.get("frames_written")
    return Manifest(
        settings,
        cast("State", state) if state in get_args(State) else "unfinished",
        written if isinstance(written, int) and not isinstance(written, bool) else None,
        _made_on(fields.get("made_on"), settings.frame_count),
        data,
    )


def frames_total(data: bytes) -> int:
    """Return the number of frames of a manifest's sequence; 0 if it cannot be determined."""
    try:
        fields = parse_json(data, MANIFEST_LIMITS, _WHAT)
    except (LimitError, ValueError):
        return 0
    total = fields.get("frames_total") if isinstance(fields, Mapping) and fields.get("format") == FORMAT else None
    return total if isinstance(total, int) and 0 <= total <= MAX_FRAMES else 0


def _ranges(frames: Sequence[int]) -> list[list[int]]:
    """Return ascending numbers as ranges [first, last]."""
    ranges: list[list[int]] = []
    for frame in frames:
        if ranges and frame == ranges[-1][1] + 1:
            ranges[-1][1] = frame
        else:
            ranges.append([frame, frame])
    return ranges


def _made_on(data: object, total: int) -> tuple[FramesByDevice, ...]:
    """Read which device made which frames; a note for users, so that what is not understood is left out."""
    made = []
    left = MAX_FRAMES  # each frame was made once; ranges that overlap would be read for minutes
    for device, ranges in data.items() if isinstance(data, Mapping) else ():
        frames: set[int] = set()
        for pair in ranges if isinstance(ranges, list) else ():
            if isinstance(pair, list) and len(pair) == 2 and all(type(end) is int for end in pair):
                found = range(max(0, pair[0]), min(pair[1] + 1, total))[:left]
                left -= len(found)
                frames.update(found)
        if frames:
            made.append(FramesByDevice(str(device), tuple(sorted(frames))))
    return tuple(made)


def _key_to_json(key: Keyframe) -> dict[str, Any]:
    data: dict[str, Any] = {
        "blend": [[recipe_to_json(recipe), weight] for recipe, weight in key.blend],
        "noise": noise_to_json(key.noise),
    }
    if key.transform is not None:
        data["transform"] = list(key.transform)
    if key.edits != NO_EDITS:
        data["edits"] = edits_to_json(key.edits)
    return data


def _files_to_json(settings: SequenceSettings) -> dict[str, Any]:
    form = settings.form
    if settings.video is not None:
        data = _video_to_json(settings.video)
        if settings.size is not None:
            data["size"] = list(settings.size)
        return data
    data = {"format": form.name}
    if form.chosen_quality:
        data["quality"] = form.chosen_quality
    if form.name.startswith("png"):
        data["compression"] = form.compression
    if settings.size is not None:
        data["size"] = list(settings.size)
    if form.dpi is not None:
        data["dpi"] = form.dpi
    if form.background is not None:
        data["background"] = form.background
    if settings.sheet is not None:
        sheet = settings.sheet
        data["sheet"] = {"columns": sheet.columns, "gap": sheet.gap_px, "paper": sheet.paper}
    return data


def _video_to_json(video: VideoFormat) -> dict[str, Any]:
    data: dict[str, Any] = {"video": video.codec, "ending": video.file_ending}
    data["fps"] = [video.fps.numerator, video.fps.denominator]
    if video.chosen_quality:
        data["quality"] = video.chosen_quality
    if video.hardware is not None:
        data["hardware"] = video.hardware
    return data


def _video(files: Mapping[str, Any]) -> VideoFormat | None:
    codec, ending, fps = files.get("video"), files.get("ending"), files.get("fps")
    if codec is None:
        return None
    if not isinstance(codec, str) or codec not in CODECS or not isinstance(ending, str):
        raise ExportError("its video should be of a codec that this version knows.")
    if not isinstance(fps, list) or len(fps) != 2:
        raise ExportError("its fps should be a fraction.")
    terms = dict(zip(("numerator", "denominator"), fps, strict=True))
    rate = Fraction(_whole(terms, "numerator", 1_000_000), _whole(terms, "denominator", 1_000_000))
    quality = None if files.get("quality") is None else _whole(files, "quality", 100)
    hardware = files.get("hardware")
    if hardware is not None and hardware not in get_args(HardwareName):
        raise ExportError("its video should be of an encoder that this version knows.")
    return VideoFormat(codec, ending, rate, quality, hardware)


def _sheet(files: Mapping[str, Any]) -> SheetLayout | None:
    sheet = files.get("sheet")
    if sheet is None:
        return None
    if not isinstance(sheet, Mapping) or sheet.get("paper") not in get_args(Paper):
        raise ExportError("its sheet should have columns, a gap and a paper.")
    gap_px = sheet.get("gap")
    gap = 0 if type(gap_px) is int and gap_px == 0 else _whole(sheet, "gap", MAX_GAP_PX)
    return SheetLayout(_whole(sheet, "columns", MAX_COLUMNS), gap, sheet["paper"])


def _form(files: Mapping[str, Any]) -> PictureFormat:
    name, compression = files.get("format", "png"), files.get("compression", "fast")
    if not isinstance(name, str) or name not in FORMATS or compression not in get_args(Compression):
        raise ExportError("its files should be of a format that this version knows.")
    quality = None if files.get("quality") is None else _whole(files, "quality", 100)
    dpi = None if files.get("dpi") is None else _whole(files, "dpi", MAX_DPI)
    background = files.get("background")
    if background is not None and not (isinstance(background, str) and is_background(background)):
        raise ExportError("the background of its files should be a colour that this version knows.")
    return PictureFormat(name, quality, compression, dpi, background)


def _size(files: Mapping[str, Any]) -> Size | None:
    size = files.get("size")
    if size is None:
        return None
    if not isinstance(size, list) or len(size) != 2:
        raise ExportError("the size of its files should be a width and a height.")
    sides = dict(zip(("width", "height"), size, strict=True))
    return _whole(sides, "width", MAX_SIDE_PX), _whole(sides, "height", MAX_SIDE_PX)


def _settings(fields: Mapping[str, Any], path: Path) -> SequenceSettings:
    model = fields.get("model")
    model = model if isinstance(model, Mapping) else {}
    stored = stored_from_json(fields.get("latents", {}))
    if fields.get("piece") is not None:
        made = _made(fields, (), model.get("name"), model.get("sha256"), path)
        piece = piece_from_json(fields["piece"], stored)
        session = replace(piece.session, model=made.model)
        return replace(made, piece=replace(piece, session=session))
    keys = [_key(item, stored) for item in _keys(fields)]
    return _made(fields, keys, model.get("name"), model.get("sha256"), path)


def _settings_1(fields: Mapping[str, Any], path: Path) -> SequenceSettings:
    """Read version 1, which had one noise and one transform for all keyframes, and listed the frames."""
    plan, model = fields.get("plan"), fields.get("model")
    if not isinstance(plan, Mapping):
        raise ExportError("its plan should be a set of named fields.")
    common = {name: plan[name] for name in ("noise", "transform") if name in plan}
    keys = [_key({"blend": blend, **common}, {}) for blend in _keys(plan)]
    name = model.get("name") if isinstance(model, Mapping) else ""
    return _made(plan, keys, name, plan.get("sha256"), path)


def _made(
    fields: Mapping[str, Any], keys: Sequence[Keyframe], model_name: object, model_id: object, path: Path
) -> SequenceSettings:
    name, kind, loop = fields.get("name"), fields.get("path"), fields.get("loop")
    if not isinstance(name, str) or not isinstance(model_id, str) or kind not in get_args(PathKind):
        raise ExportError("it should say the name, the way and the model of the sequence.")
    if path.name != f"{name_of_text(name)}{MANIFEST_SUFFIX}":
        raise ExportError(f"it belongs to {name[:40]}, so its name should be {name[:40]}{MANIFEST_SUFFIX}.")
    resolution = fields.get("resolution")
    files = fields.get("files", {})
    if not isinstance(files, Mapping):
        raise ExportError("its files should be a set of named fields.")
    return SequenceSettings(
        keys=tuple(keys),
        folder=path.parent,
        name=name_of_text(name),
        model=ModelReference("", model_name if isinstance(model_name, str) else "", model_id),
        kind=cast("PathKind", kind),
        frames_per_step=_whole(fields, "frames_per_step", MAX_FRAMES),
        loop=loop is True,
        z_dim=_whole(fields, "z_dim", 1 << 16),
        resolution=None if resolution is None else _whole(fields, "resolution", 1 << 16),
        form=_form(files) if files.get("video") is None else PictureFormat(),
        size=_size(files),
        video=_video(files),
        sheet=_sheet(files),
        file_names=_file_names(fields),
    )


def _file_names(fields: Mapping[str, Any]) -> tuple[str, ...]:
    names = fields.get("file_names", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ExportError("its file names should be a list of texts.")
    return tuple(map(name_of_text, names))


def _keys(fields: Mapping[str, Any]) -> list[Any]:
    keys = fields.get("keys")
    if not isinstance(keys, list) or not 1 <= len(keys) <= MAX_KEYS:
        raise ExportError(f"it should have a list of 1 to {MAX_KEYS:,} keyframes.")
    return keys


def _key(item: object, stored: Mapping[str, StoredPart]) -> Keyframe:
    """Read a keyframe, which has fields of a request."""
    if not isinstance(item, Mapping):
        raise ExportError("a keyframe should be a set of named fields.")
    fields = {name: item[name] for name in ("blend", "noise", "transform", "edits") if name in item}
    return Keyframe.of(request_from_json({**fields, "model": ""}, stored))


def _whole(fields: Mapping[str, Any], name: str, most: int) -> int:
    number = fields.get(name)
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
        raise ExportError(f"its {name} should be a whole number of 1 to {most:,}.")
    return number

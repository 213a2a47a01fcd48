"""Options of ``latentloom render``: the parser, which options go together, and the formats that they choose."""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path

from explorer_app.cli.arguments import (
    Parser,
    UsageError,
    add_device,
    background,
    count,
    finite_number,
    frame_rate,
    grid,
    positive_count,
    print_size,
    scale,
    seconds,
    seed,
    seed_list,
    two_numbers,
)
from explorer_app.cli.blend_options import BLEND_OPTIONS, add_blend_options
from explorer_app.cli.farm_sequence import add_farm_options, check_farm_options
from explorer_app.cli.project import project_name
from explorer_app.cli.sheet import check_sheet_options
from explorer_app.cli.source import is_latent_file, named_path
from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.formats.picture_format import FORMATS, FormatName, PictureFormat, pixels_of_print
from explorer_app.exporting.output_file import check_output_path
from explorer_app.exporting.sequence import MANIFEST_SUFFIX, check_name
from explorer_app.exporting.video.hardware import require_encoder
from explorer_app.exporting.video.video_format import (
    CODECS,
    HARDWARE_LABELS,
    VideoFormat,
    video_format_of_path,
)
from explorer_app.exporting.writers import MAX_THREADS
from gpu_backend import PathKind

PATHS: dict[str, PathKind] = {
    "linear": "w-linear",
    "cubic": "w-cubic",
    "w-slerp": "w-slerp",
    "z-linear": "z-linear",
    "slerp": "z-slerp",
}

_EXAMPLES = """examples:
  latentloom render --network ffhq.pkl --seeds 0,1,4-6 --trunc 0.7 --outdir out
  latentloom render --network cats.pkl --seeds 3-6 --path cubic --frames 60 --loop --outdir out
  latentloom render --seeds 3-6 --path cubic --frames 60 --loop --video loop.webm --fps 30
  latentloom render --project piece.loom --fps 30 --start 0 --end 12 --outdir out
  latentloom render --seeds 3-6 --path cubic --frames 600 --outdir out --gpus all
  latentloom render --from picture.png --outdir again
  latentloom render --from photo.npz --blend 31 sky.png --outdir out
  latentloom render --resume out/path.manifest.json"""

TRANSFORM = ("translate", "rotate", "scale")
_SEED_ONLY = ("trunc", "trunc_cutoff", "class_text", "noise_mode", "noise_seed", *TRANSFORM, *BLEND_OPTIONS)
_OF_SEEDS = ("trunc", "trunc_cutoff", "class_text")
"""What w rows of a file do not have: they are beyond the mapping and truncation."""
_VIDEO = ("fps", "codec", "encoder")
_FILES = ("form", "quality", "compression", "size", "dpi", "background", "video", *_VIDEO)
_PROJECT_ONLY = ("start", "end")
_PATH_ONLY = ("frames", "loop", "name")
_ALL_BUT_RESUME = (
    *("seeds", "sources", "project", "outdir", "sheet", "grid", "path"),
    *(*_FILES, *_SEED_ONLY, *_PATH_ONLY, *_PROJECT_ONLY, "overwrite"),
)
_PRINT_DPI = 300
"""Usual for photographs in print."""


def parser() -> Parser:
    """Return the parser of this command."""
    made = Parser("latentloom render", "Render pictures or an image sequence; no display is needed.", _EXAMPLES)
    made.add_argument(
        "--network", type=Path, metavar="FILE", help="network pickle, torch file or safetensors (default: bundled)"
    )
    made.add_argument("--seeds", type=seed_list, metavar="LIST", help="list of random seeds, e.g. 0,1,4-6")
    made.add_argument(
        "--from",
        dest="sources",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="render saved pictures, pictures of a sheet (sheet.png#5), sessions (.loom) or copied recipes again, "
        "latents (.npz, as of latentloom project; all of a file, or latents.npz#2), or a path through them with --path",
    )
    made.add_argument(
        "--project",
        type=Path,
        metavar="FILE",
        help="render the timeline of a project (.loom) as the window exports it: a sequence, or a video with --video",
    )
    made.add_argument(
        "--resume",
        type=Path,
        metavar="MANIFEST",
        help="continue a stopped sequence; give the .manifest.json beside its frames",
    )
    made.add_argument("--outdir", type=Path, metavar="DIR", help="where to save the output images")
    made.add_argument(
        "--sheet", type=Path, metavar="FILE", help="also make a contact sheet of the pictures: a .png or .jpg file"
    )
    made.add_argument(
        "--grid",
        type=grid,
        metavar="CxR",
        help="columns and rows of --sheet, with pictures at full size; further pictures fill further sheets",
    )
    made.add_argument(
        "--overwrite",
        action="store_true",
        default=None,
        help="replace a different sequence of that name, or files that Latent Loom did not save",
    )
    files = made.add_argument_group("files")
    files.add_argument(
        "--format",
        dest="form",
        choices=tuple(FORMATS),
        help="format of the files (default: png); png16 and exr keep more than 8 bits",
    )
    files.add_argument(
        "--quality",
        type=positive_count,
        metavar="Q",
        help="1 to 100, of jpeg (default: 95), webp (90; 100 is exact), avif and videos (80)",
    )
    files.add_argument(
        "--compression", choices=("fast", "small"), help="of png: fast, or 15 %% smaller and slow (default: fast)"
    )
    files.add_argument(
        "--video",
        type=Path,
        metavar="FILE",
        help="one video (.webm, .mp4, .mov; needs the extra `video`) or animation (.gif, .apng, .webp)",
    )
    files.add_argument(
        "--fps",
        type=frame_rate,
        metavar="N",
        help="frames per second of --video (default: 30) or --project (default: its own)",
    )
    files.add_argument(
        "--codec", choices=tuple(CODECS), help="of --video, if its ending allows several: .mp4, .webm, .mov"
    )
    files.add_argument(
        "--encoder", choices=tuple(HARDWARE_LABELS), help="encode --video in hardware (default: on the CPU)"
    )
    files.add_argument(
        "--size",
        type=print_size,
        metavar="WxH",
        help="scale to this size, such as 512, 1920x1080 or 210x297mm, cropped to its shape",
    )
    files.add_argument(
        "--dpi", type=positive_count, metavar="N", help="pixels per inch of pictures (with a --size in mm: 300)"
    )
    files.add_argument(
        "--background",
        type=background,
        metavar="COLOUR",
        help="put transparent parts on white, black, checkerboard or #rrggbb (default: keep them; jpeg: white)",
    )
    files.add_argument(
        "--jobs", type=positive_count, metavar="N", help="pictures to encode at a time (default: all cores but one)"
    )
    add_device(made)
    add_farm_options(made)
    look = made.add_argument_group("with --seeds; of latents all but truncation and class, which are for their blends")
    look.add_argument("--trunc", type=finite_number, metavar="PSI", help="truncation psi (default: 1)")
    look.add_argument(
        "--trunc-cutoff",
        type=count,
        metavar="N",
        help="truncate the first N w rows (default: all; 8 of a StyleGAN1, as is usual for it)",
    )
    look.add_argument(
        "--class",
        dest="class_text",
        metavar="CLASS",
        help="class label, for networks with classes: a number, or a name if a file beside the network has names",
    )
    look.add_argument("--noise-mode", choices=("const", "random", "none"), help="noise mode (default: const)")
    look.add_argument("--noise-seed", type=seed, metavar="N", help="seed of --noise-mode random (default: 0)")
    look.add_argument(
        "--translate",
        type=two_numbers,
        metavar="X,Y",
        help="move a StyleGAN3's picture X widths to the right, Y down; --translate=-0.1,0 moves it left",
    )
    look.add_argument("--rotate", type=finite_number, metavar="DEG", help="rotate it counterclockwise, in degrees")
    look.add_argument("--scale", type=scale, metavar="S", help="scale it; 2 makes everything twice as large")
    add_blend_options(look)
    project = made.add_argument_group("with --project")
    project.add_argument("--start", type=seconds, metavar="S", help="second of the first frame (default: 0)")
    project.add_argument("--end", type=seconds, metavar="S", help="second after the last frame (default: the end)")
    path = made.add_argument_group("sequences; the same command continues one that was stopped")
    path.add_argument(
        "--path",
        choices=tuple(PATHS),
        help="interpolate from one to the next: in w (w-slerp along an arc), or in z with z-linear and slerp",
    )
    path.add_argument("--frames", type=positive_count, metavar="N", help="frames per step (default: 24)")
    path.add_argument("--loop", action="store_true", default=None, help="return from the last to the first")
    path.add_argument(
        "--name", metavar="NAME", help="files are NAME_00000.png and so on (default: path, or the project)"
    )
    return made


def check_options(options: argparse.Namespace) -> None:
    """Refuse what does not go together before anything is opened."""
    given_sources = [flag(name) for name in ("seeds", "sources", "project") if getattr(options, name) is not None]
    if not given_sources:
        raise UsageError("One of --seeds, --from and --project must be given; see latentloom render --help.")
    if len(given_sources) > 1:
        raise UsageError(f"{' and '.join(given_sources)} cannot be given together; leave out all but one of them.")
    _check_project(options)
    _check_video(options)
    _check_jobs(options)
    check_farm_options(options)
    if options.outdir is None and options.video is None:
        raise UsageError("--outdir must be given: the folder for the output images.")
    if options.sources is not None and all(is_latent_file(path) for path in options.sources):
        _check_latents(options)
    elif options.sources is not None or options.project is not None:
        given = "--from" if options.project is None else "--project"
        for name in _SEED_ONLY:
            if getattr(options, name) is not None:
                raise UsageError(
                    f"{given} brings the picture's own settings back, so {flag(name)} cannot be given with it."
                )
    if options.path is None:
        for name in _PATH_ONLY:
            if options.project is not None and name == "name":
                continue
            if getattr(options, name) is not None:
                raise UsageError(f"{flag(name)} belongs to a sequence; give --path too.")
    check_sheet_options(options)
    if options.noise_seed is not None and options.noise_mode != "random":
        raise UsageError("--noise-seed needs --noise-mode random.")
    _check_places(options)


def check_resume_options(options: argparse.Namespace) -> None:
    """Refuse with --resume what the manifest determines. Raises UsageError."""
    _check_jobs(options)
    check_farm_options(options)
    for name in _ALL_BUT_RESUME:
        if getattr(options, name) is not None:
            raise UsageError(
                f"--resume continues a sequence with its own settings, so {flag(name)} cannot be given with it."
            )


def resolve_print_size(options: argparse.Namespace) -> None:
    """Replace a --size in millimetres or inches by its pixels. Raises UsageError."""
    if options.video is not None and (options.dpi is not None or options.background is not None):
        raise UsageError("--dpi and --background belong to pictures, so they cannot be given with --video.")
    if not isinstance(options.size, str):
        return
    if options.video is not None:
        raise UsageError("A video's --size is in pixels, such as 1920x1080.")
    options.dpi = options.dpi or _PRINT_DPI
    try:
        options.size = pixels_of_print(options.size, options.dpi)
    except ExportError as error:
        raise UsageError(error.sentence) from error
    if options.size is None:
        raise UsageError("A --size in print is like 210x297mm, 20x30cm or 8x10in; see latentloom render --help.")


def picture_format(options: argparse.Namespace) -> PictureFormat:
    """Return the requested format. Raises UsageError if the options do not go together."""
    if options.video is not None:
        return PictureFormat()
    name: FormatName = options.form or "png"
    if options.compression is not None and not name.startswith("png"):
        raise UsageError(f"--compression belongs to png and png16, but --format is {name}.")
    try:
        return PictureFormat(name, options.quality, options.compression or "fast", options.dpi, options.background)
    except ExportError as error:
        raise UsageError(error.sentence) from error


def video_format(options: argparse.Namespace, usual_fps: Fraction = Fraction(30)) -> VideoFormat | None:
    """Return the requested video format; None for pictures. Raises UsageError as `_form` does."""
    if options.video is None:
        return None
    try:
        form = video_format_of_path(
            options.video,
            codec=options.codec,
            fps=usual_fps if options.fps is None else options.fps,
            quality=options.quality,
            hardware=options.encoder,
        )
        require_encoder(form)
    except ExportError as error:
        raise UsageError(error.sentence) from error
    return form


def sequence_name(options: argparse.Namespace) -> str:
    """Return what the files of a sequence are called."""
    if options.project is not None:
        return project_name(options)
    if options.video is not None:
        return str(options.video.stem)
    return "path" if options.name is None else str(options.name)


def flag(name: str) -> str:
    """Return the option of a field of the parsed command line: ``"noise_seed"`` -> ``"--noise-seed"``."""
    given = {"class_text": "--class", "sources": "--from", "form": "--format"}
    return given[name] if name in given else "--" + name.replace("_", "-")


def _check_latents(options: argparse.Namespace) -> None:
    """Refuse what w rows do not have, unless seeds are blended in."""
    for name in _OF_SEEDS:
        if getattr(options, name) is not None and options.blend is None:
            raise UsageError(f"W rows of a file are taken as they are, so {flag(name)} cannot be given with them.")


def _check_project(options: argparse.Namespace) -> None:
    """Refuse what does not go together with a project, and what belongs to one."""
    if options.project is None:
        for name in _PROJECT_ONLY:
            if getattr(options, name) is not None:
                raise UsageError(f"{flag(name)} belongs to a project; give --project too.")
    elif options.path is not None:
        raise UsageError("A project has its own timeline, so --path cannot be given with --project.")


def _check_video(options: argparse.Namespace) -> None:
    """Refuse what does not go together with a video."""
    if options.video is None:
        for name in _VIDEO:
            if name == "fps" and options.project is not None:
                continue
            if getattr(options, name) is not None:
                raise UsageError(f"{flag(name)} belongs to a video; give --video too.")
        return
    if options.path is None and options.project is None:
        raise UsageError("--video needs a sequence; give --path or --project too.")
    for name in ("form", "compression", "outdir", "name"):
        if getattr(options, name) is not None:
            raise UsageError(f"--video sets the file and its format, so {flag(name)} cannot be given with it.")
    video_format(options)


def _check_jobs(options: argparse.Namespace) -> None:
    if options.jobs is not None and options.jobs > MAX_THREADS:
        raise UsageError(f"--jobs must be at most {MAX_THREADS}, not {options.jobs}.")


def _check_places(options: argparse.Namespace) -> None:
    """Refuse names and folders that cannot be written."""
    name = sequence_name(options)
    check_name(name)
    folder = options.outdir if options.video is None else options.video.parent
    is_sequence = options.path or options.project
    check_output_path(folder / (f"{name}{MANIFEST_SUFFIX}" if is_sequence else _first_name(options)))
    for file in (options.sheet, options.video):
        if file is not None:
            check_output_path(file)


def _first_name(options: argparse.Namespace) -> str:
    """Return the name of the first picture."""
    stem = named_path(options.sources[0]).stem if options.sources else f"seed{options.seeds[0]:04d}"
    return f"{stem}{FORMATS[options.form or 'png'].endings[0]}"

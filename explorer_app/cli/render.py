"""``latentloom render``: pictures and sequences without a display."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
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
    positive_count,
    print_size,
    scale,
    seconds,
    seed,
    seed_list,
    size,
    two_numbers,
)
from explorer_app.cli.class_option import class_of
from explorer_app.cli.console import Console
from explorer_app.cli.farm_sequence import add_farm_options, check_farm_options, is_for_farm, render_on_farm
from explorer_app.cli.network import find_network, read_network, reference_to
from explorer_app.cli.project import network_of_project, project_fps, project_name, project_settings, read_project
from explorer_app.cli.renderer import chosen, start_renderer
from explorer_app.cli.sequence import render_sequence
from explorer_app.cli.sheet import check_sheet_options, check_sheets, write_sheets
from explorer_app.cli.source import Source, named_path, read_source
from explorer_app.cli.stills import render_stills
from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.formats.picture_format import FORMATS, FormatName, PictureFormat, pixels_of_print
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.manifest import read_manifest
from explorer_app.exporting.output_file import check_output_path
from explorer_app.exporting.sequence import MANIFEST_SUFFIX, MAX_KEYS, SequenceSettings, check_name
from explorer_app.exporting.video.hardware import require_encoder
from explorer_app.exporting.video.video_format import (
    CODECS,
    HARDWARE_LABELS,
    VideoFormat,
    video_format_of_path,
)
from explorer_app.exporting.writers import MAX_THREADS, usual_threads
from explorer_app.session.adapting import adapt
from explorer_app.session.class_names import class_text
from explorer_app.session.edits import GoToSeed
from explorer_app.session.local_edits import fit_edits
from explorer_app.session.resolve import resolve
from explorer_app.session.session import ModelReference, Session
from gpu_backend import ModelFacts, Noise, PathKind, Transform, Truncation, seed_class

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
  latentloom render --resume out/path.manifest.json"""

_TRANSFORM = ("translate", "rotate", "scale")
_SEED_ONLY = ("trunc", "trunc_cutoff", "class_text", "noise_mode", "noise_seed", *_TRANSFORM)
_VIDEO = ("fps", "codec", "encoder")
_FILES = ("form", "quality", "compression", "size", "dpi", "background", "video", *_VIDEO)
_PROJECT_ONLY = ("start", "end")
_PATH_ONLY = ("frames", "loop", "name", "overwrite")
_SEQUENCE = ("name", "overwrite")
"""Options of a path and of a project."""
_ALL_BUT_RESUME = (
    *("seeds", "sources", "project", "outdir", "sheet", "grid", "path"),
    *(*_FILES, *_SEED_ONLY, *_PATH_ONLY, *_PROJECT_ONLY),
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
        help="make saved pictures, pictures of a sheet (sheet.png#5), sessions (.loom) or copied recipes again, or go "
        "through them with --path",
    )
    made.add_argument(
        "--project",
        type=Path,
        metavar="FILE",
        help="render the timeline of a project (.loom), as the window exports it: a sequence, or with --video a video",
    )
    made.add_argument(
        "--resume",
        type=Path,
        metavar="MANIFEST",
        help="continue a sequence that was stopped; give the .manifest.json beside its frames",
    )
    made.add_argument("--outdir", type=Path, metavar="DIR", help="where to save the output images")
    made.add_argument(
        "--sheet", type=Path, metavar="FILE", help="also lay the pictures out, small, on one: a .png or .jpg file"
    )
    made.add_argument(
        "--grid",
        type=size,
        metavar="CxR",
        help="columns and rows of --sheet, at the full size of the pictures; the rest fills further sheets",
    )
    files = made.add_argument_group("files")
    files.add_argument(
        "--format",
        dest="form",
        choices=tuple(FORMATS),
        help="format of the files (default: png); png16 and exr keep what 8 bits round away",
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
        "--fps", type=frame_rate, metavar="N", help="frames a second of --video (default: 30) or --project (its own)"
    )
    files.add_argument(
        "--codec", choices=tuple(CODECS), help="of --video, where the ending leaves a choice: .mp4, .webm"
    )
    files.add_argument(
        "--encoder", choices=tuple(HARDWARE_LABELS), help="encode --video in hardware (default: on the CPU)"
    )
    files.add_argument(
        "--size",
        type=print_size,
        metavar="WxH",
        help="scale to this size, such as 512, 1920x1080 or 210x297mm; what does not fit the shape is cropped",
    )
    files.add_argument(
        "--dpi", type=positive_count, metavar="N", help="pixels an inch of pictures (of a --size in mm: 300)"
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
    look = made.add_argument_group("with --seeds")
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
        help="class label, for networks with classes: a number, or a name where a file beside the network has names",
    )
    look.add_argument("--noise-mode", choices=("const", "random", "none"), help="noise mode (default: const)")
    look.add_argument("--noise-seed", type=seed, metavar="N", help="seed of --noise-mode random (default: 0)")
    look.add_argument(
        "--translate",
        type=two_numbers,
        metavar="X,Y",
        help="move a StyleGAN3's picture X widths to the right, Y down; --translate=-0.1,0 moves it left",
    )
    look.add_argument("--rotate", type=finite_number, metavar="DEG", help="turn it counterclockwise by degrees")
    look.add_argument("--scale", type=scale, metavar="S", help="scale it; 2 makes everything twice as large")
    project = made.add_argument_group("with --project")
    project.add_argument("--start", type=seconds, metavar="S", help="second of the first frame (default: 0)")
    project.add_argument("--end", type=seconds, metavar="S", help="second after the last frame (default: the end)")
    path = made.add_argument_group("sequences; the same command continues one that was stopped")
    path.add_argument(
        "--path",
        choices=tuple(PATHS),
        help="go from one to the next: in w (w-slerp on an arc), or in z for z-linear and slerp",
    )
    path.add_argument("--frames", type=positive_count, metavar="N", help="frames per step (default: 24)")
    path.add_argument("--loop", action="store_true", default=None, help="go back from the last to the first")
    path.add_argument(
        "--name", metavar="NAME", help="files are NAME_00000.png and so on (default: path, or the project)"
    )
    path.add_argument(
        "--overwrite", action="store_true", default=None, help="replace a different sequence of that name"
    )
    return made


def run(words: Sequence[str], console: Console) -> int:
    """Render what the command line selects."""
    options = parser().parse_args(words)
    if options.resume is not None:
        return _resume(options, console)
    _check(options)
    _resolve_print_size(options)
    form = _form(options)
    if options.project is not None:
        return _render_project(options, form, console)
    sources = [read_source(path) for path in options.sources or ()]
    if options.network is not None or not sources:
        model = read_network(options.network, console)
    else:
        model = find_network(((source.model, source.path) for source in sources), console)
    if sources:
        sources = [_of_this_network(source, model.facts, console) for source in sources]
    else:
        sources = [_seed_source(number, options, model.facts, console) for number in options.seeds]
    targets = [] if options.path else _targets(sources, options.outdir, form.ending)
    if options.sheet is not None:
        check_sheets(options, sources, targets)
    if is_for_farm(options):
        if options.path:
            render_on_farm(_settings(sources, options, form, model.facts), model, options, console)
            return 0
        for settings in _stills(sources, targets, options, form, model.facts):
            render_on_farm(settings, model, options, console)
        if options.sheet is not None:
            write_sheets(options, targets, console)
        return 0
    choice = chosen(options.device, options.precision)
    with contextlib.closing(start_renderer(model, choice, console)) as renderer:
        if options.path:
            render_sequence(_settings(sources, options, form, model.facts), renderer, console, threads=options.jobs)
        else:
            threads = options.jobs or usual_threads()
            render_stills(sources, targets, form, options.size, threads, renderer, console)
    if options.sheet is not None:
        write_sheets(options, targets, console)
    return 0


def _render_project(options: argparse.Namespace, form: PictureFormat, console: Console) -> int:
    """Render a stretch of a project's timeline."""
    session = read_project(options.project)
    model = network_of_project(session, options, console)
    video = _video(options, project_fps(session, options))
    settings = project_settings(session, options, model, form, video, console)
    if is_for_farm(options):
        render_on_farm(settings, model, options, console)
        return 0
    choice = chosen(options.device, options.precision)
    with contextlib.closing(start_renderer(model, choice, console)) as renderer:
        render_sequence(settings, renderer, console, threads=options.jobs)
    return 0


def _resume(options: argparse.Namespace, console: Console) -> int:
    """Continue the sequence of a manifest with its network."""
    _check_jobs(options)
    check_farm_options(options)
    for name in _ALL_BUT_RESUME:
        if getattr(options, name) is not None:
            raise UsageError(
                f"--resume continues a sequence with its own settings, so {_flag(name)} cannot be given with it."
            )
    settings = read_manifest(options.resume).settings
    if options.network is not None:
        model = read_network(options.network, console)
        if model.facts.model_id != settings.model.model_id:
            raise UsageError(
                f"The sequence was begun with {settings.model.name or 'another network'} "
                f"(SHA-256 {settings.model.model_id[:12]}…), but --network is {model.facts.name} "
                f"({model.facts.model_id[:12]}…)."
            )
    else:
        model = find_network([(settings.model, options.resume)], console)
    if is_for_farm(options):
        render_on_farm(settings, model, options, console)
        return 0
    choice = chosen(options.device, options.precision)
    with contextlib.closing(start_renderer(model, choice, console)) as renderer:
        render_sequence(settings, renderer, console, threads=options.jobs)
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse what does not go together before anything is opened."""
    if [options.seeds, options.sources, options.project].count(None) != 2:
        raise UsageError("One of --seeds, --from and --project must say what to render; see latentloom render --help.")
    _check_project(options)
    _check_video(options)
    _check_jobs(options)
    check_farm_options(options)
    if options.outdir is None and options.video is None:
        raise UsageError("--outdir must say where to save the output images.")
    if options.sources is not None or options.project is not None:
        given = "--from" if options.project is None else "--project"
        for name in _SEED_ONLY:
            if getattr(options, name) is not None:
                raise UsageError(
                    f"{given} brings the picture's own settings back, so {_flag(name)} cannot be given with it."
                )
    if options.path is None:
        for name in _PATH_ONLY:
            if options.project is not None and name in _SEQUENCE:
                continue
            if getattr(options, name) is not None:
                raise UsageError(
                    f"{_flag(name)} belongs to a sequence; say with --path how to go from one to the next."
                )
    check_sheet_options(options)
    if options.noise_seed is not None and options.noise_mode != "random":
        raise UsageError("--noise-seed needs --noise-mode random.")
    _check_places(options)


def _name(options: argparse.Namespace) -> str:
    """Return what the files of a sequence are called."""
    if options.project is not None:
        return project_name(options)
    if options.video is not None:
        return str(options.video.stem)
    return "path" if options.name is None else str(options.name)


def _check_project(options: argparse.Namespace) -> None:
    """Refuse what does not go together with a project, and what belongs to one."""
    if options.project is None:
        for name in _PROJECT_ONLY:
            if getattr(options, name) is not None:
                raise UsageError(f"{_flag(name)} belongs to a project; say with --project which one.")
    elif options.path is not None:
        raise UsageError("A project has its own timeline, so --path cannot be given with --project.")


def _check_video(options: argparse.Namespace) -> None:
    """Refuse what does not go together with a video."""
    if options.video is None:
        for name in _VIDEO:
            if name == "fps" and options.project is not None:
                continue
            if getattr(options, name) is not None:
                raise UsageError(f"{_flag(name)} belongs to a video; say with --video where it goes.")
        return
    if options.path is None and options.project is None:
        raise UsageError("--video needs --path, which says how to go from one picture to the next, or --project.")
    for name in ("form", "compression", "outdir", "name"):
        if getattr(options, name) is not None:
            raise UsageError(f"--video says where the frames go and how, so {_flag(name)} cannot be given with it.")
    _video(options)


def _check_jobs(options: argparse.Namespace) -> None:
    if options.jobs is not None and options.jobs > MAX_THREADS:
        raise UsageError(f"--jobs must be at most {MAX_THREADS}, not {options.jobs}.")


def _check_places(options: argparse.Namespace) -> None:
    """Refuse names and folders that cannot be written."""
    check_name(_name(options))
    folder = options.outdir if options.video is None else options.video.parent
    check_output_path(
        folder / (f"{_name(options)}{MANIFEST_SUFFIX}" if options.path or options.project else _first_name(options))
    )
    for file in (options.sheet, options.video):
        if file is not None:
            check_output_path(file)


def _first_name(options: argparse.Namespace) -> str:
    """Return the name of the first picture."""
    stem = named_path(options.sources[0]).stem if options.sources else f"seed{options.seeds[0]:04d}"
    return f"{stem}{FORMATS[options.form or 'png'].endings[0]}"


def _flag(name: str) -> str:
    given = {"class_text": "--class", "sources": "--from", "form": "--format"}
    return given[name] if name in given else "--" + name.replace("_", "-")


def _seed_source(number: int, options: argparse.Namespace, facts: ModelFacts, console: Console) -> Source:
    """Return the picture of a seed, as the window would describe it."""
    classes: tuple[tuple[int, float], ...] = ()
    if options.class_text is not None:
        if facts.c_dim == 0:
            console.warn(f"{facts.name} has no classes, so --class is left out.")
        else:
            classes = ((class_of(options.class_text, facts), 1.0),)
    elif facts.looks_classes_up:
        classes = ((seed_class(number, facts.c_dim), 1.0),)
        console.note(f"Seed {number}: {class_text(classes[0][0], facts.class_names)}; --class chooses another.")
    elif facts.c_dim:
        console.warn(f"{facts.name} has {facts.c_dim} classes; without --class the label is all zeros.")
    if options.trunc_cutoff is not None and options.trunc_cutoff > facts.num_ws:
        raise UsageError(
            f"{facts.name} has {facts.num_ws} w rows, but --trunc-cutoff {options.trunc_cutoff} was given."
        )
    cutoff = facts.usual_cutoff if options.trunc_cutoff is None else options.trunc_cutoff
    model = reference_to(facts)
    session = GoToSeed(number).apply(
        Session(
            model=model,
            classes=classes,
            truncation=Truncation(1.0 if options.trunc is None else options.trunc, cutoff),
            noise=Noise(mode=options.noise_mode or "const", seed=options.noise_seed or 0),
            transform=_transform(options, facts),
        )
    )
    return Source(Path(f"seed{number:04d}"), resolve(session), model, session)


def _transform(options: argparse.Namespace, facts: ModelFacts) -> Transform:
    """Return the requested transform; a network without one is none to ask."""
    asked = [_flag(name) for name in _TRANSFORM if getattr(options, name) is not None]
    if asked and not facts.has_transform:
        raise UsageError(f"{asked[0]} is for StyleGAN3, but {facts.name} is a {facts.family}; leave it out.")
    x, y = options.translate or (0.0, 0.0)
    return Transform(x, y, options.rotate or 0.0, options.scale or 1.0)


def _of_this_network(source: Source, facts: ModelFacts, console: Console) -> Source:
    """Return a source fitted to this network; warn if it was made with another one."""
    if source.model.model_id not in ("", facts.model_id):
        console.warn(
            f"{source.path.name} was made with {source.model.name or 'another network'} "
            f"(SHA-256 {source.model.model_id[:12]}…), not with {facts.name} ({facts.model_id[:12]}…): "
            "the picture will be different."
        )
    if source.request.transform is not None and not facts.has_transform:
        console.warn(f"{facts.name} takes no transform, so that of {source.path.name} is left out.")
        session = None if source.session is None else replace(source.session, transform=Transform())
        source = replace(source, request=replace(source.request, transform=None), session=session)
    edits = fit_edits(source.request.edits, facts)
    if edits != source.request.edits:
        console.warn(f"{facts.name} does not have all layers and channels that {source.path.name} edits.")
        session = None if source.session is None else adapt(source.session, facts).session
        source = replace(source, request=replace(source.request, edits=edits), session=session)
    return source.rendered_with(reference_to(facts))


def _targets(sources: Sequence[Source], folder: Path, ending: str) -> list[Path]:
    """Return where each picture goes.

    Raises
    ------
    UsageError
        If two pictures have the same output file, or an output file is also an input.
    """
    targets: list[Path] = []
    taken: set[Path] = set()  # besides the list, which thousands of pictures would make slow to search
    for source in sources:
        target = folder / f"{source.path.stem}{ending}"
        if source.path.exists() and target.exists() and target.samefile(source.path):
            raise UsageError(f"{source.path} would be replaced by its own copy; choose another --outdir.")
        if target in taken and source.path.suffix:
            raise UsageError(f"Two pictures would both be written to {target}; render them one by one.")
        targets.append(target)
        taken.add(target)
    return targets


def _resolve_print_size(options: argparse.Namespace) -> None:
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


def _form(options: argparse.Namespace) -> PictureFormat:
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


def _video(options: argparse.Namespace, usual_fps: Fraction = Fraction(30)) -> VideoFormat | None:
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


def _stills(
    sources: Sequence[Source],
    targets: Sequence[Path],
    options: argparse.Namespace,
    form: PictureFormat,
    facts: ModelFacts,
) -> Iterator[SequenceSettings]:
    """Return single pictures as jobs of a farm: paths whose every frame is a picture, with the names of the files."""
    for first in range(0, len(sources), MAX_KEYS):
        part = slice(first, first + MAX_KEYS)
        yield SequenceSettings(
            keys=tuple(Keyframe.of(source.request) for source in sources[part]),
            folder=options.outdir,
            name=f"pictures_{first // MAX_KEYS + 1}" if len(sources) > MAX_KEYS else "pictures",
            model=reference_to(facts),
            kind="w-linear",
            frames_per_step=1,
            z_dim=facts.z_dim,
            form=form,
            size=options.size,
            overwrite=True,
            file_names=tuple(target.name.removesuffix(form.ending) for target in targets[part]),
        )


def _settings(
    sources: Sequence[Source], options: argparse.Namespace, form: PictureFormat, facts: ModelFacts
) -> SequenceSettings:
    model: ModelReference = reference_to(facts)
    return SequenceSettings(
        keys=tuple(Keyframe.of(source.request) for source in sources),
        folder=options.outdir if options.video is None else options.video.parent,
        name=_name(options),
        model=model,
        kind=PATHS[options.path],
        frames_per_step=options.frames or 24,
        loop=bool(options.loop),
        z_dim=facts.z_dim,
        form=form,
        size=options.size,
        video=_video(options),
        overwrite=bool(options.overwrite),
    )

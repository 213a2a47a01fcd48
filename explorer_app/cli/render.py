"""``latentloom render``: pictures and sequences without a display."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from explorer_app.cli.arguments import UsageError
from explorer_app.cli.blend_options import blends_of
from explorer_app.cli.class_option import class_of
from explorer_app.cli.console import Console
from explorer_app.cli.farm_sequence import is_for_farm, render_on_farm
from explorer_app.cli.network import find_network, read_network, reference_to
from explorer_app.cli.project import network_of_project, project_fps, project_settings, read_project
from explorer_app.cli.render_options import (
    PATHS,
    TRANSFORM,
    check_options,
    check_resume_options,
    flag,
    parser,
    picture_format,
    resolve_print_size,
    sequence_name,
    video_format,
)
from explorer_app.cli.renderer import chosen, start_renderer
from explorer_app.cli.sequence import render_sequence
from explorer_app.cli.sheet import check_sheets, sheet_paths, write_sheets
from explorer_app.cli.source import Source, read_sources
from explorer_app.cli.stills import render_stills
from explorer_app.exporting.formats.picture_format import PictureFormat
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.manifest import read_manifest
from explorer_app.exporting.picture import has_recipe
from explorer_app.exporting.sequence import MAX_KEYS, SequenceSettings
from explorer_app.exporting.writers import usual_threads
from explorer_app.session.adapting import adapt, fit_request
from explorer_app.session.class_names import class_text
from explorer_app.session.edited_latent import with_rows
from explorer_app.session.edits import GoToSeed
from explorer_app.session.resolve import resolve
from explorer_app.session.session import ModelReference, Session
from gpu_backend import Model, ModelFacts, Noise, StoredLatent, Transform, Truncation, seed_class


def run(words: Sequence[str], console: Console) -> int:
    """Render what the command line selects."""
    options = parser().parse_args(words)
    if options.resume is not None:
        return _resume(options, console)
    check_options(options)
    resolve_print_size(options)
    form = picture_format(options)
    if options.project is not None:
        return _render_project(options, form, console)
    sources = [source for path in options.sources or () for source in read_sources(path)]
    if options.network is not None or not sources:
        model = read_network(options.network, console)
    else:
        model = find_network(((source.model, source.path) for source in sources), console)
    if sources:
        sources = [
            _of_this_network(source, model.facts, console)
            if source.rows is None
            else _latent_source(source.path, source.rows, options, model.facts, console)
            for source in sources
        ]
    else:
        sources = [_seed_source(number, options, model.facts, console) for number in options.seeds]
    if options.path:
        return _render_all(_settings(sources, options, form, model.facts), model, options, console)
    targets = _targets(sources, options.outdir, form.ending)
    _check_replaced(targets, "--outdir", options)
    if options.sheet is not None:
        check_sheets(options, sources, targets, model.facts.resolution)
        _check_replaced(sheet_paths(options, len(targets)), "--sheet", options)
    files = dict(zip(targets, sources, strict=True))  # a seed that is named twice is one
    if is_for_farm(options):
        for settings in _stills(list(files.values()), list(files), options, form, model.facts):
            render_on_farm(settings, model, options, console)
        if options.sheet is not None:
            write_sheets(options, targets, console)
        return 0
    choice = chosen(options.device, options.precision)
    with contextlib.closing(start_renderer(model, choice, console)) as renderer:
        threads = options.jobs or usual_threads()
        render_stills(list(files.values()), list(files), form, options.size, threads, renderer, console)
    if options.sheet is not None:
        write_sheets(options, targets, console)
    return 0


def _render_project(options: argparse.Namespace, form: PictureFormat, console: Console) -> int:
    """Render a stretch of a project's timeline."""
    session = read_project(options.project)
    model = network_of_project(session, options, console)
    video = video_format(options, project_fps(session, options))
    settings = project_settings(session, options, model, form, video, console)
    return _render_all(settings, model, options, console)


def _resume(options: argparse.Namespace, console: Console) -> int:
    """Continue the sequence of a manifest with its network."""
    check_resume_options(options)
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
    return _render_all(settings, model, options, console)


def _render_all(settings: SequenceSettings, model: Model, options: argparse.Namespace, console: Console) -> int:
    """Render a sequence on a farm or on this machine's device, as the options say."""
    if is_for_farm(options):
        render_on_farm(settings, model, options, console)
        return 0
    choice = chosen(options.device, options.precision)
    with contextlib.closing(start_renderer(model, choice, console)) as renderer:
        render_sequence(settings, renderer, console, threads=options.jobs)
    return 0


def _seed_source(number: int, options: argparse.Namespace, facts: ModelFacts, console: Console) -> Source:
    """Return the picture of a seed, as the window would describe it."""
    classes = _classes(options, facts, console)
    if options.class_text is None:
        if facts.looks_classes_up:
            classes = ((seed_class(number, facts.c_dim), 1.0),)
            console.note(f"Seed {number}: {class_text(classes[0][0], facts.class_names)}; --class chooses another.")
        elif facts.c_dim:
            console.warn(f"{facts.name} has {facts.c_dim} classes; without --class the label is all zeros.")
    session = GoToSeed(number).apply(_session(options, facts, classes))
    return Source(Path(f"seed{number:04d}"), resolve(session), session.model, session)


def _latent_source(
    path: Path, rows: StoredLatent, options: argparse.Namespace, facts: ModelFacts, console: Console
) -> Source:
    """Return the picture of w rows of a file. Raises UsageError if they are of another network."""
    if rows.w_dim != facts.w_dim or rows.num_ws not in (1, facts.num_ws):
        raise UsageError(
            f"{path.name} has {rows.num_ws} rows of {rows.w_dim} numbers, but {facts.name} takes {facts.num_ws} of "
            f"{facts.w_dim}; give the network that they belong to with --network."
        )
    session = with_rows(_session(options, facts, _classes(options, facts, console)), rows)
    return Source(path, resolve(session), session.model, session, rows)


def _classes(options: argparse.Namespace, facts: ModelFacts, console: Console) -> tuple[tuple[int, float], ...]:
    """Return the class that is asked for; none without --class, and of a network without classes."""
    if options.class_text is None:
        return ()
    if facts.c_dim == 0:
        console.warn(f"{facts.name} has no classes, so --class is left out.")
        return ()
    return ((class_of(options.class_text, facts), 1.0),)


def _session(options: argparse.Namespace, facts: ModelFacts, classes: tuple[tuple[int, float], ...]) -> Session:
    """Return the settings of the command line for a picture. Raises UsageError for those that the network lacks."""
    if options.trunc_cutoff is not None and options.trunc_cutoff > facts.num_ws:
        raise UsageError(
            f"{facts.name} has {facts.num_ws} w rows, but --trunc-cutoff {options.trunc_cutoff} was given."
        )
    cutoff = facts.usual_cutoff if options.trunc_cutoff is None else options.trunc_cutoff
    return Session(
        model=reference_to(facts),
        classes=classes,
        truncation=Truncation(1.0 if options.trunc is None else options.trunc, cutoff),
        noise=Noise(mode=options.noise_mode or "const", seed=options.noise_seed or 0),
        transform=_transform(options, facts),
        blends=blends_of(options, facts, classes),
    )


def _transform(options: argparse.Namespace, facts: ModelFacts) -> Transform:
    """Return the requested transform. Raises UsageError if the network has no transform input."""
    given_flags = [flag(name) for name in TRANSFORM if getattr(options, name) is not None]
    if given_flags and not facts.has_transform:
        raise UsageError(f"{given_flags[0]} is for StyleGAN3, but {facts.name} is a {facts.family}; leave it out.")
    x, y = options.translate or (0.0, 0.0)
    return Transform(x, y, options.rotate or 0.0, options.scale or 1.0)


def _of_this_network(source: Source, facts: ModelFacts, console: Console) -> Source:
    """Return a source fitted to this network; warn if it was made with another one, and of what is left out."""
    name, request = source.path.name, source.request
    is_other = source.model.model_id not in ("", facts.model_id)
    if is_other:
        console.warn(
            f"{name} was made with {source.model.name or 'another network'} "
            f"(SHA-256 {source.model.model_id[:12]}…), not with {facts.name} ({facts.model_id[:12]}…): "
            "the picture will be different."
        )
    fitted = fit_request(request, facts)
    if not is_other:  # directions may have been renamed or removed since, which the renderer says
        fitted = replace(request, transform=fitted.transform, edits=fitted.edits)
    if fitted.transform != request.transform:
        console.warn(f"{facts.name} has no transform input, so the transform of {name} is left out.")
    if fitted.edits != request.edits:
        console.warn(f"{facts.name} does not have all layers and channels that {name} edits.")
    if (fitted.blend, fitted.noise, fitted.tap) != (request.blend, request.noise, request.tap):
        console.warn(f"{facts.name} does not have all classes, rows, directions and layers that {name} uses.")
    if fitted != request:
        session = None if source.session is None else adapt(source.session, facts).session
        source = replace(source, request=fitted, session=session)
    return source.rendered_with(reference_to(facts))


def _targets(sources: Sequence[Source], folder: Path, ending: str) -> list[Path]:
    """Return the output path of each picture.

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
            raise UsageError(f"{source.path} would be overwritten; choose another --outdir.")
        if target in taken and source.path.suffix:
            raise UsageError(f"Two pictures would both be written to {target}; render them one by one.")
        targets.append(target)
        taken.add(target)
    return targets


def _check_replaced(targets: Sequence[Path], place: str, options: argparse.Namespace) -> None:
    """Raise UsageError if an output file exists that Latent Loom did not save, unless --overwrite is given.

    `place` is the option that chooses another file.
    """
    if options.overwrite:
        return
    for target in targets:
        if target.exists() and not has_recipe(target):
            raise UsageError(
                f"{target} exists, and Latent Loom did not save it; choose another {place}, "
                "or replace it with --overwrite."
            )


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
        name=sequence_name(options),
        model=model,
        kind=PATHS[options.path],
        frames_per_step=options.frames or 24,
        loop=bool(options.loop),
        z_dim=facts.z_dim,
        form=form,
        size=options.size,
        video=video_format(options),
        overwrite=bool(options.overwrite),
    )

"""``latentloom project``: pictures become w rows, which open in the window and render like any other latent."""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from explorer_app.assets import bundled_model
from explorer_app.cli.arguments import Parser, UsageError
from explorer_app.cli.console import Console
from explorer_app.cli.network import read_network
from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.output_file import check_output_path, output_error
from explorer_app.session.model_files import ModelFiles
from gpu_backend import (
    FULL_DISK,
    LATENT_SUFFIXES,
    PHOTO_SUFFIXES,
    PROJECTION_START_S,
    TORCH_DEVICES,
    Base,
    LoomError,
    ProjectionSettings,
    open_encoder,
    open_features,
    open_gradients,
    read_photo,
    whole_number,
    write_latent,
    write_tuned,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gpu_backend import DifferentiableNetwork, ModelFacts, PictureEncoder, PictureFeatures, Projection

_EXAMPLES = """examples:
  latentloom project photo.png --out photo.npz
  latentloom project photos --network m.pkl --out latents --steps 1000
  latentloom project photos --out latents --resume
  latentloom project photo.png --out photo.npz --tune

With --tune, photo.safetensors beside photo.npz is a model whose picture of these rows is nearer still. It holds changes
of weights, so the model that was tuned has to stay where it is, or move along."""

_STAGES = {
    "drafts": "matching drafts to pictures",
    "random": "random latents",
    "scales": "measuring what rows change",
    "w": "one row",
    "rows": "all rows",
}
_STOPPED = ".stopped"
"""What a file that Ctrl-C cut short has beside it, after its own name, until a search ends."""
_CANDIDATES = 500
_STEPS = whole_number(1, 100_000)


def parser() -> Parser:
    """Return the parser of this command."""
    made = Parser("latentloom project", "Find the w rows whose picture is nearest to a given picture.", _EXAMPLES)
    made.add_argument("source", type=Path, metavar="PICTURE", help="a picture, or a folder of pictures")
    made.add_argument("--network", type=Path, metavar="FILE", help="network file (default: the bundled model)")
    made.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help=f"file of w rows ({', '.join(LATENT_SUFFIXES)}); a folder where PICTURE is one",
    )
    made.add_argument("--steps", type=_STEPS, default=300, metavar="N", help="steps of gradient descent (default: 300)")
    made.add_argument(
        "--candidates",
        type=_STEPS,
        metavar="N",
        help="random latents to compare first; an eighth of them if there is an encoder "
        f"(default: {_CANDIDATES}, or as many as fit into {PROJECTION_START_S:g} s)",
    )
    made.add_argument(
        "--tune",
        type=_STEPS,
        nargs="?",
        const=150,
        metavar="N",
        help="also tune the weights to each picture in N steps (150), and save the tuned model beside the rows",
    )
    made.add_argument(
        "--seed", type=whole_number(0), default=0, metavar="S", help="seed of the random latents (default: 0)"
    )
    made.add_argument(
        "--device",
        choices=TORCH_DEVICES,
        default="auto",
        help="where PyTorch computes: cpu, cuda, or auto: cuda if PyTorch has a GPU",
    )
    existing = made.add_mutually_exclusive_group()
    existing.add_argument("--overwrite", action="store_true", help="replace existing files")
    existing.add_argument(
        "--resume", action="store_true", help="leave out the pictures whose files exist, unless Ctrl-C cut them short"
    )
    return made


def run(words: Sequence[str], console: Console) -> int:
    """Project one picture, or those of a folder. After Ctrl-C the best rows so far are written."""
    options = parser().parse_args(words)
    jobs = _jobs(options)
    for _, target in jobs:
        check_output_path(target)
    if options.resume:
        whole = len(jobs)
        jobs = [job for job in jobs if not all(_is_whole(path) for path in _outputs(job[1], options))]
        console.note(f"{whole - len(jobs)} of {whole} pictures have their files already.")
        if not jobs:
            return 0
    elif not options.overwrite:
        for path in (path for _, target in jobs for path in _outputs(target, options)):
            if path.exists():
                raise UsageError(
                    f"{path} already exists; choose another name, replace it with --overwrite, "
                    "or leave out what exists with --resume."
                )
    candidates, start_s = options.candidates, math.inf
    if candidates is None:
        candidates, start_s = _CANDIDATES, PROJECTION_START_S
    settings = ProjectionSettings(options.steps, candidates, options.seed, start_s)
    model = read_network(options.network, console)
    _spare_model(Path(model.facts.path), jobs, options)
    network = open_gradients(model, device=options.device)
    own = ModelFiles(ModelFiles.default_folder(), bundled_model())
    encoder = open_encoder(model, network, own.own_encoder)
    features = open_features(model, network, encoder)
    from gpu_backend import pictures_together  # it imports torch

    failures = 0
    together = pictures_together(network)
    for first in range(0, len(jobs), together):
        read: list[_Job] = []
        for photo, target in jobs[first : first + together]:
            try:
                picture = read_photo(photo, network.spec.resolution, network.spec.img_channels)
            except LoomError as error:
                if len(jobs) == 1:
                    raise
                failures += 1
                console.note(error.sentence)
                continue
            read.append(_Job(photo, target, picture))
        if read:
            rows = _project(network, encoder, features, read, settings, console, keeps=options.resume)
            if options.tune:
                for job, found in zip(read, rows, strict=True):
                    _tune(network, features, model.facts, job, found, options.tune, console, keeps=options.resume)
    if failures:
        raise LoomError(f"{failures} of {len(jobs)} files could not be read as pictures; the others were projected.")
    return 0


class _Job(NamedTuple):
    photo: Path
    target: Path
    picture: NDArray[np.float32]


def _project(
    network: DifferentiableNetwork,
    encoder: PictureEncoder | None,
    features: PictureFeatures | None,
    jobs: Sequence[_Job],
    settings: ProjectionSettings,
    console: Console,
    *,
    keeps: bool,
) -> NDArray[np.float32]:
    """Project pictures together, and write their rows, also after Ctrl-C. Returns the rows.

    With `keeps`, rows of an earlier search that was stopped are replaced only by those of a search that has ended.
    """
    import numpy as np

    from gpu_backend import Projection

    projection = Projection(network, np.stack([job.picture for job in jobs]), settings, encoder, features)
    name = jobs[0].photo.name if len(jobs) == 1 else f"{jobs[0].photo.name} to {jobs[-1].photo.name}"
    began_s = time.monotonic()
    try:
        while not projection.report.is_done:
            projection.step()
            console.status(_progress_text(name, projection, time.monotonic() - began_s))
    except KeyboardInterrupt:
        if projection.has_found:
            _write(jobs, projection, console, is_stopped=True, keeps=keeps)
        raise
    _write(jobs, projection, console)
    return projection.rows


def _write(
    jobs: Sequence[_Job], projection: Projection, console: Console, *, is_stopped: bool = False, keeps: bool = False
) -> None:
    for job, latent, psnr in zip(jobs, projection.latents, projection.psnr(), strict=True):
        if keeps and job.target.exists():
            console.conclude(f"{job.target} holds the w rows of {job.photo.name} of an earlier search.")
            continue
        with _as_search_error(job.target):
            job.target.parent.mkdir(parents=True, exist_ok=True)
            if is_stopped:
                _mark_stopped(job.target)
            write_latent(job.target, latent)
            if not is_stopped:
                _stop_mark(job.target).unlink(missing_ok=True)
        how = ", stopped early" if is_stopped else ""
        console.conclude(f"{job.target} holds the w rows of {job.photo.name}{how}: PSNR {psnr:.1f} dB.")


def _tune(
    network: DifferentiableNetwork,
    features: PictureFeatures | None,
    facts: ModelFacts,
    job: _Job,
    rows: NDArray[np.float32],
    steps: int,
    console: Console,
    *,
    keeps: bool,
) -> None:
    """Tune the weights to a picture, and write the tuned model, also after Ctrl-C; `keeps` as for `_project`."""
    from gpu_backend import PhotoTuning

    tuning = PhotoTuning(network, rows, job.picture, steps, features)

    def write(how: str) -> None:
        write_tuned(tuning.changes(), Base(Path(facts.path).absolute(), facts.model_id, job.photo.name), target)
        console.conclude(f"{target} is {facts.name} tuned to {job.photo.name}{how}: PSNR {tuning.psnr:.1f} dB.")

    target = _tuned(job.target)
    try:
        while not tuning.report.is_done:
            report = tuning.step()
            console.status(f"{job.photo.name}: tuning {report.step} of {report.steps}, {tuning.psnr:.1f} dB")
    except KeyboardInterrupt:
        if keeps and target.exists():
            console.conclude(f"{target} is {facts.name} tuned to {job.photo.name} by an earlier search.")
        elif tuning.report.step:
            with _as_search_error(target):
                _mark_stopped(target)
            write(", stopped early")
        raise
    write("")
    with _as_search_error(target):
        _stop_mark(target).unlink(missing_ok=True)


def _outputs(target: Path, options: argparse.Namespace) -> tuple[Path, ...]:
    """Return the files that a picture gets."""
    return (target, _tuned(target)) if options.tune else (target,)


def _spare_model(model: Path, jobs: Sequence[tuple[Path, Path]], options: argparse.Namespace) -> None:
    """Raise UsageError if a tuned model would replace the model that is tuned."""
    for path in (path for _, target in jobs for path in _outputs(target, options)):
        if path.exists() and path.samefile(model):
            raise UsageError(f"{path} is the model that is tuned; choose another name for --out.")


def _stop_mark(path: Path) -> Path:
    """Return the file that says that another one is what a search had found when Ctrl-C stopped it."""
    return path.with_name(path.name + _STOPPED)


def _mark_stopped(path: Path) -> None:
    text = f"{path.name} is what was found until Ctrl-C; `latentloom project --resume` searches again.\n"
    _stop_mark(path).write_text(text, encoding="utf-8")


def _is_whole(path: Path) -> bool:
    """Return whether a file exists, of a search that was not stopped."""
    return path.exists() and not _stop_mark(path).exists()


@contextlib.contextmanager
def _as_search_error(path: Path) -> Iterator[None]:
    """Raise an OSError of writing what a search has found as an ExportError whose sentence names a remedy."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise output_error(error, path) from error
        raise ExportError(
            f"The disk is full, so {path.name} in {path.parent} could not be written; make room, and search again "
            "with --resume: it leaves out the pictures that have their files.",
            str(error),
        ) from error


def _tuned(target: Path) -> Path:
    """Return where the tuned model of a file of w rows is kept."""
    return target.with_suffix(".safetensors")


def _progress_text(name: str, projection: Projection, elapsed_s: float) -> str:
    report = projection.report
    text = f"{name}: {_STAGES[report.stage]} {report.step} of {report.steps}"
    if math.isfinite(report.loss):
        text += f", loss {report.loss:.3f}"
    if report.stage in ("w", "rows") and report.step < report.steps:
        # Steps at the full resolution come last and take longest, so this is a lower bound until then.
        text += f", at least {elapsed_s / report.step * (report.steps - report.step):.0f} s left"
    return text


def _jobs(options: argparse.Namespace) -> list[tuple[Path, Path]]:
    """Return (picture, file of w rows) pairs."""
    source, out = options.source, options.out
    if not source.is_dir():
        if not source.exists():
            raise UsageError(f"{source} does not exist; name a picture or a folder of pictures.")
        if out.suffix.lower() not in LATENT_SUFFIXES:
            raise UsageError(f"--out should end in {', '.join(LATENT_SUFFIXES)}, but is {out.name}.")
        return [(source, out)]
    photos = sorted(path for path in source.iterdir() if path.suffix.lower() in PHOTO_SUFFIXES and path.is_file())
    if not photos:
        raise UsageError(f"{source} holds no pictures ({', '.join(PHOTO_SUFFIXES)}).")
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out should be a folder, since {source} is one, but {out} is a file.")
    if not out.exists() and out.suffix.lower() in LATENT_SUFFIXES:
        raise UsageError(f"--out should be a folder, since {source} is one, but {out.name} is the name of a file.")
    ignores_case = sys.platform in ("win32", "darwin")
    if len({photo.stem.casefold() if ignores_case else photo.stem for photo in photos}) < len(photos):
        raise UsageError(f"Some pictures of {source} differ only in their suffix; rename them, or project one by one.")
    return [(photo, out / f"{photo.stem}.npz") for photo in photos]

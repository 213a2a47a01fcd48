"""``latentloom project``: pictures become w rows, which open in the window and render like any other latent."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from explorer_app.cli.arguments import Parser, UsageError
from explorer_app.cli.console import Console
from explorer_app.cli.network import read_network
from explorer_app.exporting.output_file import as_export_error, check_output_path
from gpu_backend import (
    LATENT_SUFFIXES,
    PHOTO_SUFFIXES,
    TORCH_DEVICES,
    LoomError,
    ProjectionSettings,
    open_encoder,
    open_gradients,
    read_photo,
    write_latent,
)

if TYPE_CHECKING:
    from gpu_backend import DifferentiableNetwork, PictureEncoder, Projection

_EXAMPLES = """examples:
  latentloom project photo.png --out photo.npz
  latentloom project photos --network m.pkl --out latents --steps 1000"""

_STAGES = {"random": "random latents", "w": "one row", "rows": "all rows"}
_MOST_STEPS = 100_000


def parser() -> Parser:
    """Return the parser of this command."""
    made = Parser("latentloom project", "Find the w rows whose picture is nearest to a given one.", _EXAMPLES)
    made.add_argument("source", type=Path, metavar="PICTURE", help="a picture, or a folder of pictures")
    made.add_argument("--network", type=Path, metavar="FILE", help="network file (default: the bundled model)")
    made.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help=f"file of w rows ({', '.join(LATENT_SUFFIXES)}); a folder where PICTURE is one",
    )
    made.add_argument("--steps", type=_count, default=300, metavar="N", help="steps along gradients (default: 300)")
    made.add_argument(
        "--candidates", type=_count, default=500, metavar="N", help="random latents to begin with (default: 500)"
    )
    made.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the random latents (default: 0)")
    made.add_argument(
        "--device",
        choices=TORCH_DEVICES,
        default="auto",
        help="where PyTorch computes: cpu, cuda, or auto for cuda if PyTorch has a GPU",
    )
    made.add_argument("--overwrite", action="store_true", help="replace files that are there already")
    return made


def run(words: Sequence[str], console: Console) -> int:
    """Project one picture, or those of a folder. After Ctrl-C the best rows so far are written."""
    options = parser().parse_args(words)
    jobs = _jobs(options)
    for _, target in jobs:
        check_output_path(target)
        if target.exists() and not options.overwrite:
            raise UsageError(f"{target} is there already; choose another name, or replace it with --overwrite.")
    settings = ProjectionSettings(options.steps, options.candidates, options.seed)
    model = read_network(options.network, console)
    network = open_gradients(model, device=options.device)
    encoder = open_encoder(model, network)
    failures = 0
    for photo, target in jobs:
        try:
            picture = read_photo(photo, network.spec.resolution, network.spec.img_channels)
        except LoomError as error:
            if len(jobs) == 1:
                raise
            failures += 1
            console.note(error.sentence)
            continue
        _project(network, encoder, photo.name, picture, target, settings, console)
    if failures:
        raise LoomError(f"{failures} of {len(jobs)} files could not be read as pictures; the others were projected.")
    return 0


def _project(
    network: DifferentiableNetwork,
    encoder: PictureEncoder | None,
    name: str,
    picture: object,
    target: Path,
    settings: ProjectionSettings,
    console: Console,
) -> None:
    from gpu_backend import Projection

    projection = Projection(network, picture, settings, encoder)  # type: ignore[arg-type]
    began_s = time.monotonic()
    try:
        while not projection.report.is_done:
            projection.step()
            console.status(_progress_text(name, projection, time.monotonic() - began_s))
    except KeyboardInterrupt:
        if projection.has_found:
            _write(target, projection, f"{name}, stopped early", console)
        raise
    _write(target, projection, name, console)


def _write(target: Path, projection: Projection, what: str, console: Console) -> None:
    with as_export_error(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        write_latent(target, projection.latent)
    console.conclude(f"{target} holds the w rows of {what}: PSNR {projection.psnr():.1f} dB.")


def _progress_text(name: str, projection: Projection, elapsed_s: float) -> str:
    report = projection.report
    if not math.isfinite(report.loss):
        return f"{name}: drafts are matched to pictures"
    text = f"{name}: {_STAGES[report.stage]} {report.step} of {report.steps}, loss {report.loss:.3f}"
    if report.stage != "random" and report.step < report.steps:
        # Steps at the full resolution come last and take longest, so this is a lower bound until then.
        text += f", at least {elapsed_s / report.step * (report.steps - report.step):.0f} s left"
    return text


def _jobs(options: argparse.Namespace) -> list[tuple[Path, Path]]:
    """Return (picture, file of w rows) pairs."""
    source, out = options.source, options.out
    if not source.is_dir():
        if not source.exists():
            raise UsageError(f"{source} is not there; name a picture or a folder of pictures.")
        if out.suffix.lower() not in LATENT_SUFFIXES:
            raise UsageError(f"--out should end in {', '.join(LATENT_SUFFIXES)}, but is {out.name}.")
        return [(source, out)]
    photos = sorted(path for path in source.iterdir() if path.suffix.lower() in PHOTO_SUFFIXES and path.is_file())
    if not photos:
        raise UsageError(f"{source} holds no pictures ({', '.join(PHOTO_SUFFIXES)}).")
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out should be a folder, since {source} is one, but {out} is a file.")
    if len({photo.stem for photo in photos}) < len(photos):
        raise UsageError(f"Some pictures of {source} differ only in their suffix; rename them, or project one by one.")
    return [(photo, out / f"{photo.stem}.npz") for photo in photos]


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MOST_STEPS):
        raise argparse.ArgumentTypeError(f"expected a number from 1 to {_MOST_STEPS:,}, not {text[:40]!r}")
    return int(text)

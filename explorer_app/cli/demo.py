"""``latentloom demo``: a short loop through the bundled model, for machines without a display."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from explorer_app.cli.arguments import Parser, add_device
from explorer_app.cli.console import Console
from explorer_app.cli.network import read_network, reference_to
from explorer_app.cli.renderer import chosen, start_renderer
from explorer_app.cli.sequence import render_sequence
from explorer_app.exporting.contact_sheet import write_contact_sheet
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.output_file import check_output_path
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.exporting.sinks.picture_folder import PictureFolder
from gpu_backend import Latent, Point, Recipe, Truncation

SEEDS = (38, 42, 41, 4)
FRAMES_PER_STEP = 12
SHEET_COLUMNS = 4
_SHEET_STEP = 4


def parser() -> Parser:
    """Return the parser of this command."""
    made = Parser("latentloom demo", "Render a short loop of the bundled model and a contact sheet of it.")
    made.add_argument(
        "--outdir",
        type=Path,
        default=Path("latentloom-demo"),
        metavar="DIR",
        help="where to save the output images (default: latentloom-demo)",
    )
    add_device(made)
    return made


def run(words: Sequence[str], console: Console) -> int:
    """Render the demo; files of an earlier call are not rendered again."""
    options = parser().parse_args(words)
    sheet = options.outdir / "contact-sheet.png"
    check_output_path(sheet)
    model = read_network(None, console)
    truncation = Truncation(psi=0.7)
    settings = SequenceSettings(
        keys=tuple(Keyframe(((Recipe(Latent(Point(((seed, 1.0),))), truncation), 1.0),)) for seed in SEEDS),
        folder=options.outdir,
        name="demo",
        model=reference_to(model.facts),
        kind="w-cubic",
        frames_per_step=FRAMES_PER_STEP,
        loop=True,
        z_dim=model.facts.z_dim,
        overwrite=True,
    )
    choice = chosen(options.device, options.precision)
    with contextlib.closing(start_renderer(model, choice, console)) as renderer:
        render_sequence(settings, renderer, console)
    frames = PictureFolder(settings.folder, settings.name)
    pictures = [frames.unit_path(index) for index in range(0, settings.frame_count, _SHEET_STEP)]
    write_contact_sheet(sheet, pictures, columns=SHEET_COLUMNS)
    console.conclude(f"See {sheet} for some of them at a glance.")
    return 0

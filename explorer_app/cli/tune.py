"""``latentloom tune``: find out how the convolutions of a network run best on this GPU, and remember it."""

from __future__ import annotations

import argparse
import contextlib
import math
import re
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from explorer_app.cli.arguments import Parser, UsageError, device, finite_number
from explorer_app.cli.console import Console
from explorer_app.cli.network import read_network
from explorer_app.cli.path_text import without_home
from gpu_backend import ConvTile, Model, TileFinding, TileProgress, TileTuning, random_model, shape_of

_BUDGET_S = 300.0
_MAX_BATCH = 64
_MOST_WRONG = 20
_FIGURES = ("batch", "before us", "after us", "predicted", "gain", "tried", "found at")
_WIDTHS = (6, 11, 10, 11, 8, 14, 10)
_IN_FRONT = ("rows", "columns", "channels", "warps_m", "warps_n")


def parser() -> Parser:
    """Return the parser of this command."""
    made = Parser(
        "latentloom tune",
        "Time every way to run a network's convolutions on this GPU, check the fastest against a plain kernel, and\n"
        "keep it in a table that later renderings use. Ctrl-C keeps what was found.",
    )
    made.add_argument(
        "model",
        nargs="?",
        type=Path,
        metavar="MODEL",
        help="network pickle, torch file or safetensors (default: bundled)",
    )
    made.add_argument(
        "--shape", metavar="NAME", help="random weights of a shape instead of a model: ffhq1024, or RESOLUTION:BASE:MAX"
    )
    made.add_argument(
        "--batch", type=batch_list, default=(1,), metavar="LIST", help="pictures at a time, e.g. 1,8 (default: 1)"
    )
    made.add_argument(
        "--precision",
        choices=("fp16", "fp8", "tf32", "bf16x3"),
        default="fp16",
        help="precision of the products (default: fp16); fp8 tunes the layers that multiply it, others are those of "
        "fp16; fp32 runs plain kernels, which have no tiles",
    )
    made.add_argument(
        "--budget-s",
        type=finite_number,
        default=_BUDGET_S,
        metavar="N",
        help=f"approximate time limit in seconds (default: {_BUDGET_S:.0f})",
    )
    made.add_argument(
        "--table", type=Path, metavar="FILE", help="write the table to this file instead of the cache folder"
    )
    made.add_argument(
        "--device",
        type=device,
        default="auto",
        metavar="NAME",
        help="the GPU: cuda, or cuda:1 and so on (default: auto, the first)",
    )
    return made


def run(words: Sequence[str], console: Console) -> int:
    """Tune, and print the results."""
    options = parser().parse_args(words)
    if options.model is not None and options.shape is not None:
        raise UsageError("Give either a model or --shape, not both.")
    if options.device == "cpu":
        raise UsageError("Tuning is for GPUs; there is nothing to tune on the CPU.")
    if options.budget_s <= 0:
        raise UsageError(f"The budget must be more than 0 seconds, not {options.budget_s:g}.")
    tuning = TileTuning(
        _network(options, console),
        options.device,
        batches=options.batch,
        precision=options.precision,
        table=options.table,
    )
    console.note(f"Tuning {len(tuning.shapes)} convolutions on {tuning.gpu.name}; Ctrl-C keeps what was found.")
    if tuning.quality.timings:
        console.note(tuning.quality.sentence)
    found: list[TileFinding] = []
    try:
        with contextlib.closing(
            tuning.findings(budget_s=options.budget_s, progress=lambda progress: console.status(_status(progress)))
        ) as findings:
            found.extend(findings)
    finally:
        console.end_progress()
        if found:
            console.results(report(found))
            if tuning.quality.timings:
                console.note(tuning.quality.sentence)
            console.conclude(f"The table is {without_home(str(tuning.path))}.")
    return 0


def batch_list(text: str) -> tuple[int, ...]:
    """Return the numbers of a list like ``1,8``."""
    if not re.fullmatch(r"[0-9]{1,2}(,[0-9]{1,2})*", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"expected numbers like 1,8, not {text[:40]!r}")
    numbers = tuple(dict.fromkeys(int(part) for part in text.split(",")))
    if not all(1 <= number <= _MAX_BATCH for number in numbers):
        raise argparse.ArgumentTypeError(f"pictures at a time must be 1 to {_MAX_BATCH}, not {text}")
    return numbers


def report(findings: Sequence[TileFinding]) -> list[str]:
    """Return a table of what was found, and what was discarded."""
    lines = [_line("convolution", _FIGURES, "tile")]
    for item in findings:
        is_known = math.isfinite(item.before_us)
        figures = (
            str(item.shape.batch),
            f"{item.before_us:.1f}" if is_known else "no result",
            f"{item.time_us:.1f}",
            "" if item.predicted_us is None else f"{item.predicted_us:.1f}",
            f"{item.before_us / item.time_us:.2f} x" if is_known else "",
            f"{item.tried} of {item.candidates}",
            str(item.trials),
        )
        lines.append(_line(item.shape.title, figures, tile_text(item.tile)))
    wrong = [(item.shape, refused) for item in findings for refused in item.refused if refused.is_wrong]
    lines += [
        f"wrong, so discarded, for {shape.kind} {shape.side}: {tile_text(refused.tile)}: {refused.why}"
        for shape, refused in wrong[:_MOST_WRONG]
    ]
    if len(wrong) > _MOST_WRONG:
        lines.append(f"and {len(wrong) - _MOST_WRONG} more were wrong")
    unfit = sum(not refused.is_wrong for item in findings for refused in item.refused)
    if unfit:
        lines.append(f"{unfit} more did not run here or spill registers, so they were left out")
    return lines


def _line(title: str, figures: Sequence[str], tile: str) -> str:
    cells = (f"{figure:>{width}}" for figure, width in zip(figures, _WIDTHS, strict=True))
    return f"{title:<32}{''.join(cells)}  {tile}"


def tile_text(tile: ConvTile) -> str:
    """Return the choices of a tile on one line, without the default ones."""
    words = [f"{tile.rows}x{tile.columns}x{tile.channels}", f"warps {tile.warps_m}x{tile.warps_n}"]
    for choice in fields(tile):
        value = getattr(tile, choice.name)
        if choice.name not in _IN_FRONT and value != choice.default:
            words.append(choice.name if value is True else f"{choice.name} {value}")
    return " ".join(words)


def _network(options: argparse.Namespace, console: Console) -> Model:
    return read_network(options.model, console) if options.shape is None else random_model(shape_of(options.shape))


def _status(progress: TileProgress) -> str:
    shape = progress.shape
    best = f", best {progress.best_us:.1f} us" if math.isfinite(progress.best_us) else ""
    tried = f"{progress.tried} of {progress.candidates} tried{best}" if progress.candidates else "listing tiles"
    return f"{progress.number} of {progress.shapes}: {shape.title}, batch {shape.batch}: {tried}"

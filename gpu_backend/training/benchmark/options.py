"""The options of `latentloom train-bench`; importing this loads no torch."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from gpu_backend.argument_types import names_of, seconds, whole_number
from gpu_backend.errors import RequestError
from gpu_backend.run_facts import without_folders

RowName = Literal[
    "fp32",
    "channels-last",
    "bf16",
    "weights",
    "activations",
    "filters",
    "adam",
    "set-to-none",
    "graph",
    "loading",
    "compile",
    "compile-alone",
]
ROWS: tuple[RowName, ...] = get_args(RowName)

_COUNT = whole_number(1, 1_000_000)


@dataclass(frozen=True, slots=True)
class TrainBenchOptions:
    """What to measure and where to put it.

    Attributes
    ----------
    steps
        Timed steps of a row, in whole periods of the regularisers.
    rows
        Which rows to measure; each has the optimisations of all rows before it, measured or not.
    budget_s
        No row begins after so many seconds.
    out
        Folder for CSV, JSON and a plot; None writes none.
    command, commit
        For the record.
    """

    resolution: int = 256
    batch: int = 8
    channel_base: int = 16384
    channel_max: int = 512
    steps: int = 48
    rows: tuple[RowName, ...] = ROWS
    device: str = "auto"
    budget_s: float = 900.0
    out: Path | None = None
    command: str = ""
    commit: str = ""


def add_train_bench_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to a parser; `train_bench_options_of` reads what it gives."""
    usual = TrainBenchOptions()
    add = parser.add_argument
    add("--resolution", type=_COUNT, default=usual.resolution, metavar="N", help=f"({usual.resolution})")
    add("--batch", type=_COUNT, default=usual.batch, metavar="N", help=f"pictures a step ({usual.batch})")
    add("--channel-base", type=_COUNT, default=usual.channel_base, metavar="N", help=f"({usual.channel_base})")
    add("--channel-max", type=_COUNT, default=usual.channel_max, metavar="N", help=f"({usual.channel_max})")
    add(
        "--steps",
        type=_COUNT,
        default=usual.steps,
        metavar="N",
        help=f"timed steps of a row, rounded up to whole periods of 16; fewer where they are slow ({usual.steps})",
    )
    add("--rows", type=_rows, default=ROWS, metavar="LIST", help=f"of {', '.join(ROWS)} (default: all)")
    add("--device", default=usual.device, metavar="NAME", help="auto, cpu, cuda or cuda:N (auto)")
    add(
        "--budget-s",
        type=seconds,
        default=usual.budget_s,
        metavar="S",
        help=f"begin no row after so many seconds, and name those ({usual.budget_s:g})",
    )
    add("--out", type=Path, metavar="FOLDER", help="write train-bench.csv, .json and .png into this folder")
    add("--commit", default="", metavar="TEXT", help="for the record where git cannot tell")


def train_bench_options_of(found: argparse.Namespace, command: str) -> TrainBenchOptions:
    """Return the options that a parser found.

    Raises
    ------
    RequestError
        If the resolution is no power of two.
    """
    side = found.resolution
    if side < 8 or side & (side - 1):
        raise RequestError(f"The resolution must be a power of two from 8 up, not {side}.")
    return TrainBenchOptions(**{**vars(found), "command": without_folders(command)})


def _rows(text: str) -> tuple[RowName, ...]:
    names = names_of(ROWS)(text)
    return tuple(row for row in ROWS if row in names)

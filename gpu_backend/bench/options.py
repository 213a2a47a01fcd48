"""The options of the benchmark, for both of its command lines."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from gpu_backend.argument_types import names_of, seconds, whole_number
from gpu_backend.bench.cases import PEERS, PRECISIONS
from gpu_backend.bench.shapes import SHAPES, SHAPES_WITH_PEERS, Shape, shape_of
from gpu_backend.errors import RequestError
from gpu_backend.run_facts import without_folders

_COUNT = whole_number(1, 100_000)
_BUDGET_S = 300.0
_BUDGET_OF_ALL_S = 3600.0


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What to measure and where to put it; empty and None leave the choice to the benchmark.

    Attributes
    ----------
    out
        Folder for CSV, JSON and plots; None writes none.
    counters
        Whether the table of kernels has the GPU's hardware counters.
    command
        The command line, for the record.
    commit
        Recorded where git is not available.
    """

    file: Path | None = None
    shape: Shape | None = None
    device: str = "auto"
    batches: tuple[int, ...] = ()
    peers: tuple[str, ...] | None = None
    precisions: tuple[str, ...] = ()
    everything: bool = False
    all_shapes: bool = False
    ladder: bool = False
    counters: bool = False
    quick: bool = False
    runs: int | None = None
    threads: int | None = None
    budget_s: float = _BUDGET_S
    out: Path | None = None
    command: str = ""
    commit: str = ""


def add_bench_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to a parser; `bench_options_of` reads what it gives."""
    add = parser.add_argument
    add("file", nargs="?", type=Path, metavar="FILE", help="a model file (default: a shape with random weights)")
    add(
        "--shape",
        metavar="NAME",
        help=f"{', '.join(SHAPES)} or RESOLUTION:BASE:MAX, with random weights "
        "(default: ffhq1024 on a GPU, ffhq256 on the processor)",
    )
    add("--device", default="auto", metavar="NAME", help="auto, cpu, cuda or cuda:N (default: auto)")
    add("--batch", type=_batches, default=(), metavar="LIST", help="batches (default: 1,8,16,32; 1 on the processor)")
    add("--peers", type=_peers, metavar="LIST", help=f"of {', '.join(PEERS)}, or none (default: all)")
    add("--precision", type=_precisions, default=(), metavar="LIST", help=f"of {', '.join(PRECISIONS)}")
    add("--all", dest="everything", action="store_true", help="every peer in every precision and batch")
    add(
        "--all-shapes",
        action="store_true",
        help=f"--all of {', '.join(SHAPES_WITH_PEERS)}, batches 1 to 32, on the processor 1 and 2; "
        "each has an equal share of the time",
    )
    add("--ladder", action="store_true", help="what each optimisation gains, from plain kernels to a batch of 32")
    add("--counters", action="store_true", help="hardware counters of the kernels too (the extra profile, permission)")
    add("--quick", action="store_true", help="fewer cases and fewer runs")
    add("--runs", type=_COUNT, metavar="N", help="timed runs of each (default: 50; 15 on the processor)")
    add("--threads", type=_COUNT, metavar="N", help="threads on the processor, for all (default: torch's own number)")
    add(
        "--budget-s",
        type=seconds,
        metavar="S",
        help="start no new case after this many seconds, and name those "
        f"(default: {_BUDGET_S:g}; {_BUDGET_OF_ALL_S:g} with --all and --all-shapes)",
    )
    add("--out", type=Path, metavar="DIR", help="write bench.csv, bench.json and plots into this folder")
    add("--commit", default="", metavar="TEXT", help="for the record where git cannot tell")


def bench_options_of(parsed: argparse.Namespace, command: str) -> BenchOptions:
    """Return the options of a parsed command line.

    Raises
    ------
    RequestError
        If they do not go together, or there is no such shape.
    """
    if parsed.file is not None and parsed.shape is not None:
        raise RequestError("Give either a model file or --shape, not both.")
    if parsed.all_shapes and (parsed.file is not None or parsed.shape is not None):
        raise RequestError("--all-shapes measures a fixed set of shapes; give no model file and no --shape with it.")
    if parsed.ladder and parsed.all_shapes:
        raise RequestError("--ladder measures one network; leave --all-shapes out.")
    budget_s = parsed.budget_s
    if budget_s is None:
        budget_s = _BUDGET_OF_ALL_S if parsed.everything or parsed.all_shapes else _BUDGET_S
    return BenchOptions(
        file=parsed.file,
        shape=None if parsed.shape is None else shape_of(parsed.shape),
        device=parsed.device,
        batches=parsed.batch,
        peers=parsed.peers,
        precisions=parsed.precision,
        everything=parsed.everything,
        all_shapes=parsed.all_shapes,
        ladder=parsed.ladder,
        counters=parsed.counters,
        quick=parsed.quick,
        runs=parsed.runs,
        threads=parsed.threads,
        budget_s=budget_s,
        out=parsed.out,
        command=without_folders(command),
        commit=parsed.commit,
    )


def _peers(text: str) -> tuple[str, ...]:
    return () if text.strip() == "none" else names_of(PEERS)(text)


def _precisions(text: str) -> tuple[str, ...]:
    return names_of(PRECISIONS)(text)


def _batches(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(_COUNT(part.strip()) for part in text.split(",")))

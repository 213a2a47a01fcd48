"""Parsers that answer a slip with one sentence, and the kinds of values that arguments have."""

from __future__ import annotations

import argparse
import contextlib
import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from explorer_app import logs
from explorer_app.exporting.formats.picture_format import BACKGROUNDS, MAX_SIDE_PX, is_background
from explorer_app.exporting.video.video_format import exact_rate
from explorer_app.rendering.device_choice import PRECISIONS
from explorer_app.session.session import MAX_SCALE, MIN_SCALE
from gpu_backend import SEED_COUNT, LoomError, whole_number

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

MAX_SEEDS = 100_000

count, positive_count = whole_number(0), whole_number(1)
"""Read whole numbers from 0 or from 1 upwards."""


class UsageError(LoomError):
    """The command line asks for something that does not exist or does not go together."""


class _SetLogLevel(argparse.Action):
    """Takes effect as it is parsed and leaves nothing among the options."""

    def __init__(self, option_strings: Sequence[str], dest: str, **others: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, **{**others, "default": argparse.SUPPRESS})

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        log = logs.current()
        if log is not None:
            log.set_level(logs.LEVELS[values])


class Parser(argparse.ArgumentParser):
    """Like its base, but a slip is one sentence, and options are written out in full."""

    def __init__(self, prog: str, description: str, epilog: str | None = None) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.add_argument(
            "--log",
            action=_SetLogLevel,
            choices=tuple(logs.LEVELS),
            metavar="LEVEL",
            help=f"log to stderr from this level on: {', '.join(logs.LEVELS)} (default: warning)",
        )

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Print help or the version; unlike in the base class, a failure to do so is an error.

        The base class passes None for a closed stdout, and would print to stderr then.
        """
        if file is None:
            raise UsageError("The result goes to standard output, which is closed.")
        with contextlib.suppress(BrokenPipeError):  # the reader closed the pipe early, on purpose
            file.write(message)

    def error(self, message: str) -> NoReturn:
        """Raise a usage error as one sentence."""
        raise UsageError(f"{message}; see {self.prog} --help.")


def seed_list(text: str) -> tuple[int, ...]:
    """Return the seeds of a list like ``1,2,5-10``; ranges include both ends, the order is kept.

    Raises
    ------
    argparse.ArgumentTypeError
        If a part is no number and no range, or there are too many.
    """
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]+)(?:\s*-\s*([0-9]+))?\s*", part, re.ASCII)
        if match is None or max(map(len, match.groups(default=""))) > 20:
            raise argparse.ArgumentTypeError(f"seeds must be numbers and ranges like 1,2,5-10, not {part[:40]!r}")
        first = int(match[1])
        last = first if match[2] is None else int(match[2])
        if last < first:
            raise argparse.ArgumentTypeError(f"a range of seeds must ascend, but {part.strip()} does not")
        if last >= SEED_COUNT:
            raise argparse.ArgumentTypeError(f"seeds must be at most {SEED_COUNT - 1}, not {last}")
        if len(seeds) + last - first >= MAX_SEEDS:
            raise argparse.ArgumentTypeError(f"expected at most {MAX_SEEDS} seeds at a time, but there are more")
        seeds.extend(range(first, last + 1))
    return tuple(seeds)


def seed(text: str) -> int:
    """Return one seed."""
    seeds = seed_list(text)
    if len(seeds) != 1:
        raise argparse.ArgumentTypeError(f"expected one seed, not {text[:40]!r}")
    return seeds[0]


def finite_number(text: str) -> float:
    """Return a number that is not infinite."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"expected a number, not {text[:40]!r}")
    return number


def two_numbers(text: str) -> tuple[float, float]:
    """Return the two numbers of a place like ``0.25,-0.1``."""
    parts = text.split(",")
    if len(parts) != 2:
        raise argparse.ArgumentTypeError(f"expected two numbers like 0.25,-0.1, not {text[:40]!r}")
    return finite_number(parts[0]), finite_number(parts[1])


def scale(text: str) -> float:
    """Return a scale that a transform may have."""
    number = finite_number(text)
    if not MIN_SCALE <= number <= MAX_SCALE:
        raise argparse.ArgumentTypeError(f"a scale must be {MIN_SCALE:g} to {MAX_SCALE:g}, not {text[:40]!r}")
    return number


def frame_rate(text: str) -> Fraction:
    """Return a number of frames per second like ``30``, ``23.976`` or ``30000/1001``."""
    match = re.fullmatch(r"([0-9]{1,6})(?:/([0-9]{1,6})|(\.[0-9]{1,6}))?", text, re.ASCII)
    if match is None or (match[2] is not None and int(match[2]) == 0):
        raise argparse.ArgumentTypeError(f"expected frames per second like 30 or 30000/1001, not {text[:40]!r}")
    return exact_rate(Fraction(text)) if match[3] is not None else Fraction(text)


def seconds(text: str) -> Fraction:
    """Return a time like ``12``, ``1.5`` or ``1/3``."""
    match = re.fullmatch(r"([0-9]{1,6})(?:/([0-9]{1,6})|(\.[0-9]{1,9}))?", text, re.ASCII)
    if match is None or (match[2] is not None and int(match[2]) == 0):
        raise argparse.ArgumentTypeError(f"expected seconds like 12 or 1.5, below 1,000,000, not {text[:40]!r}")
    return Fraction(text)


def size(text: str) -> tuple[int, int]:
    """Return the width and height of a text like ``1920x1080``, or ``512`` for a square."""
    match = re.fullmatch(r"([0-9]{1,5})(?:x([0-9]{1,5}))?", text, re.ASCII)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected a size like 512 or 1920x1080, not {text[:40]!r}")
    width = int(match[1])
    height = width if match[2] is None else int(match[2])
    if not (1 <= width <= MAX_SIDE_PX and 1 <= height <= MAX_SIDE_PX):
        raise argparse.ArgumentTypeError(f"sides must be 1 to {MAX_SIDE_PX} pixels, not {text[:40]!r}")
    return width, height


def grid(text: str) -> tuple[int, int]:
    """Return the columns and rows of a text like ``4x3``, or ``4`` for as many rows as columns."""
    match = re.fullmatch(r"([0-9]{1,5})(?:x([0-9]{1,5}))?", text, re.ASCII)
    columns = 0 if match is None else int(match[1])
    rows = columns if match is None or match[2] is None else int(match[2])
    if columns < 1 or rows < 1:
        raise argparse.ArgumentTypeError(f"expected columns and rows like 4x3, not {text[:40]!r}")
    return columns, rows


def print_size(text: str) -> tuple[int, int] | str:
    """Return a size in pixels as `size` does, or the text of one in print such as ``210x297mm``, which needs a dpi."""
    return text if re.search("(mm|cm|in)$", text) else size(text)


def background(text: str) -> str:
    """Return the name or the colour of a background."""
    if not is_background(text):
        raise argparse.ArgumentTypeError(
            f"a background is {', '.join(BACKGROUNDS)} or a colour like #rrggbb, but {text[:40]!r} came"
        )
    return text


def priority(text: str) -> int:
    """Return the priority of a job on a farm, a whole number of up to six digits."""
    if not re.fullmatch(r"-?[0-9]{1,6}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"expected a whole number of up to six digits, not {text[:40]!r}")
    return int(text)


def device(text: str) -> str:
    """Return the name of a device, without a check that the device exists."""
    if not re.fullmatch(r"auto|cpu|cuda(:[0-9]{1,3})?", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"a device must be auto, cpu, cuda or cuda:1, not {text[:40]!r}")
    return text


def gpu_list(text: str) -> tuple[int, ...] | None:
    """Return the numbers of a list like ``0,1,3``; None for ``all``, and no number for ``none``."""
    if text == "all":
        return None
    if text == "none":
        return ()
    if not re.fullmatch(r"[0-9]{1,3}(,[0-9]{1,3})*", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"GPUs are numbers like 0,1,3, or all, or none, not {text[:40]!r}")
    return tuple(dict.fromkeys(int(part) for part in text.split(",")))


def add_device(parser: argparse.ArgumentParser, *, remembered: bool = False) -> None:
    """Add ``--device`` and ``--precision``; with `remembered`, left out they are None: the last choice is used."""
    usual = ("as chosen in the window",) * 2 if remembered else ("auto, the best there is", "fp16, the fast one")
    parser.add_argument(
        "--device",
        type=device,
        default=None if remembered else "auto",
        metavar="NAME",
        help=f"what to render on: auto, cpu, cuda, or cuda:1 and so on (default: {usual[0]})",
    )
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default=None if remembered else "fp16",
        help=f"how exactly to render on a GPU: fp16, fp8 in large layers, tf32 with "
        f"activations of fp32, bf16x3 with more exact products too, or fp32 (default: {usual[1]})",
    )

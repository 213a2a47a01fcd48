"""Blends on the command line: seeds that show where grey pictures are bright."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from explorer_app.cli.arguments import UsageError, finite_number, seed
from explorer_app.session.local_blends import DEFAULT_SOFTNESS, LocalBlend
from gpu_backend import (
    MASK_SIDE,
    MAX_BLENDS,
    Latent,
    ModelFacts,
    PictureFileError,
    PictureMask,
    Point,
    RowRange,
    open_photo,
)

BLEND_OPTIONS = ("blend", "blend_rows", "blend_softness")


def row_span(text: str) -> RowRange:
    """Return the rows of w of a text like ``0-5``, ``6-`` or ``3``."""
    match = re.fullmatch(r"([0-9]{1,3})(-([0-9]{1,3})?)?", text, re.ASCII)
    if match is None or (match[3] is not None and int(match[3]) < int(match[1])):
        raise argparse.ArgumentTypeError(f"rows are a range like 0-5 or 6-, not {text[:40]!r}")
    first = int(match[1])
    if match[2] is None:
        return RowRange(first, first)
    return RowRange(first, None if match[3] is None else int(match[3]))


def softness(text: str) -> float:
    """Return the width of soft edges, in widths of the picture."""
    number = finite_number(text)
    if not 0.0 <= number <= 1.0:
        raise argparse.ArgumentTypeError(f"soft edges are 0 to 1 widths of the picture, not {text[:40]!r}")
    return number


def add_blend_options(group: argparse._ArgumentGroup) -> None:
    """Add the options to the group of options of seeds."""
    group.add_argument(
        "--blend",
        nargs=2,
        action="append",
        metavar=("SEED", "MASK"),
        help="show another seed where a grey picture is bright; up to 3 times",
    )
    group.add_argument(
        "--blend-rows", type=row_span, metavar="A-B", help="blend in the layers of these rows of w (default: all)"
    )
    group.add_argument(
        "--blend-softness",
        type=softness,
        metavar="S",
        help=f"width of the masks' edges in widths of the picture (default: {DEFAULT_SOFTNESS:g})",
    )


def blends_of(
    options: argparse.Namespace, facts: ModelFacts, classes: tuple[tuple[int, float], ...]
) -> tuple[LocalBlend, ...]:
    """Return the requested blends.

    Raises
    ------
    UsageError
        If a seed is invalid, a mask cannot be read or covers nothing, or the network has fewer rows.
    """
    given = options.blend or []
    rows = options.blend_rows or RowRange()
    if not given and (options.blend_rows is not None or options.blend_softness is not None):
        raise UsageError("--blend-rows and --blend-softness belong to a blend; give its seed and mask with --blend.")
    if len(given) > MAX_BLENDS:
        raise UsageError(f"A picture has at most {MAX_BLENDS} blends, but {len(given)} were given.")
    if max(rows.first, rows.last or 0) >= facts.num_ws:
        raise UsageError(f"{facts.name} has the rows of w 0 to {facts.num_ws - 1}; --blend-rows asks for others.")
    width = DEFAULT_SOFTNESS if options.blend_softness is None else options.blend_softness
    blends = []
    for number, (text, path) in enumerate(given, 1):
        try:
            other = seed(text)
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"--blend: {error}.") from error
        latent = Latent(Point(((other, 1.0),)), classes)
        blends.append(LocalBlend(number, latent, read_mask(Path(path)), rows, 1.0, width, label=f"seed {other}"))
    return tuple(blends)


def read_mask(path: Path) -> PictureMask:
    """Return the mask of a picture: white covers all, and what is transparent nothing.

    A picture of any size and shape is stretched over the whole.

    Raises
    ------
    UsageError
        If the file cannot be read as a picture, is too large, or is black.
    """
    # Imported here: few commands need it.
    from PIL import Image

    try:
        picture, _ = open_photo(path, "L")
    except PictureFileError as error:
        raise UsageError(error.sentence, error.details) from error
    values = picture.resize((MASK_SIDE, MASK_SIDE), Image.Resampling.BOX).tobytes()
    if not any(values):
        raise UsageError(f"{path.name} is black, so the blend would be invisible; paint white where it should show.")
    return PictureMask(values)

"""Resource limits for files, and bounded reading. Readers and writers share the same limits.

A small file can cause much work or memory use: a JSON text of 28 MB becomes 800 MB of Python objects, and each seed
of a recipe costs a run of the mapping network. Every reader therefore checks three limits first: bytes, JSON values,
and the parts of recipes.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import zipfile
from pathlib import Path
from typing import Any, NoReturn

from gpu_backend.errors import LoomError, RequestError
from gpu_backend.quick_dataclass import dataclass

MAX_ITEMS = 4096
"""Longest list inside a recipe or a session."""

MAX_TEXT = 4096
"""Longest label or name, in characters."""

MAX_MIX_DEPTH = 8
"""Mix sources may hold mix sources, nested this deep."""

MAX_RECIPE_SEEDS = 4096
"""Seeds of one picture, in all its recipes and mix sources. Each may cost a run of the mapping network."""

MAX_RECIPE_SOURCES = 4096
"""Mix sources of one picture, on all levels."""

MAX_RECIPE_DIRECTIONS = 8192
"""Directions of one picture, on all levels."""

MAX_BENDS, MAX_STYLE_OFFSETS, MAX_BLENDS = 64, 256, 3
"""Local edits of one picture. Each blend runs the network for one more latent."""

MAX_STORED_ROWS, MAX_STORED_DIM = 128, 8192
"""Largest stored latent: rows of w, and numbers in a row."""

MAX_STORED_NBYTES = 64 << 20
"""Stored latents of one file."""

MAX_KEPT = 10_000
"""Kept sessions in one file."""

MAX_STEPS = 500
"""Steps of the history in one file."""


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Limits of a JSON text: `nbytes` of text and `values` (items of lists and objects, nested ones included).

    A parsed value takes at most about 100 bytes of memory.
    """

    nbytes: int
    values: int


SESSION_LIMITS = FileLimits(32 << 20, 2_000_000)
PICTURE_LIMITS = FileLimits(4 << 20, 500_000)
MANIFEST_LIMITS = FileLimits(64 << 20, 4_000_000)
SETTINGS_LIMITS = FileLimits(4 << 20, 100_000)
LABELS_LIMITS = FileLimits(4 << 20, 200_000)


class LimitError(LoomError):
    """A file is larger than its reader allows, or is not a regular file."""


def read_regular_file(path: Path, max_nbytes: int, what: str) -> bytes:
    """Return the bytes of a regular file.

    A pipe, a device or a folder is refused at once: opening a pipe would wait for its other end. No file has a name
    that the system cannot express, with a NUL or half a surrogate pair, such as one from a damaged list of paths.

    Parameters
    ----------
    what
        Kind of file with an article, for error messages: "a session".

    Raises
    ------
    LimitError
        If the file is not a regular one, or larger than `max_nbytes`.
    OSError
        If the file cannot be read.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        status = os.stat(path)
    except ValueError as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from error
    if not stat.S_ISREG(status.st_mode):  # a folder cannot be opened on every system
        raise LimitError(f"{path.name} should be {what}, but is a folder, a pipe or a device.")
    with open(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise LimitError(f"{path.name} should be {what}, but is a folder, a pipe or a device.")
        data = file.read(max_nbytes + 1)
    if len(data) > max_nbytes:
        raise LimitError(
            f"{path.name} should be {what} of at most {_size(max_nbytes)}, but has {_size(max(status.st_size, 0))}."
        )
    return data


def check_file_size(path: Path, data: bytes, max_nbytes: int) -> None:
    """Raise OSError (EFBIG) if the content of a file is larger than its reader's `max_nbytes`: it would be lost."""
    if len(data) > max_nbytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))


def read_member(archive: zipfile.ZipFile, name: str, max_nbytes: int) -> bytes:
    """Return up to `max_nbytes` of a member of a zip that is stored or deflated.

    No writer of ours and no NumPy compresses otherwise, and LZMA may ask for gigabytes to unpack a few bytes.

    Raises
    ------
    zipfile.BadZipFile
        If it is compressed in another way, or damaged.
    KeyError, zlib.error, RuntimeError, EOFError, OSError
        As `zipfile` raises them for missing, damaged and encrypted members.
    """
    if archive.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile(f"{name} is compressed in an unusual way")
    with archive.open(name) as file:
        return file.read(max_nbytes)


def is_regular_file(path: Path) -> bool:
    """Return whether there is a file; a path that the system refuses, such as one that is too long, has none."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def parse_json(data: bytes | str, limits: FileLimits, what: str) -> Any:
    """Return the value of a JSON text, without NaN and infinities.

    Raises
    ------
    LimitError
        If the text is longer, or holds more values, than the limits allow.
    ValueError
        If the text is not JSON, or nests deeper than Python's parser goes.
    """
    check_json_size(data, limits, what)
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("lists and objects nest too deep") from None


def check_json_size(data: bytes | str, limits: FileLimits, what: str) -> None:
    """Raise LimitError if a JSON text exceeds the limits.

    Every value except the first of a list or object follows a comma, and every list or object opens with a bracket.
    Their count is therefore an upper bound of the values. Brackets and commas inside strings are counted too.
    """
    if len(data) > limits.nbytes:
        raise LimitError(f"{_capital(what)} has at most {_size(limits.nbytes)}, but this one has {_size(len(data))}.")
    count = (
        data.count(b",") + data.count(b"[") + data.count(b"{")
        if isinstance(data, bytes)
        else data.count(",") + data.count("[") + data.count("{")
    )
    if count > limits.values:
        raise LimitError(f"{_capital(what)} holds at most {limits.values:,} values, but this one has {count:,}.")


@dataclass(slots=True)
class RecipeBudget:
    """Remaining budget for the recipes of one picture. Readers and writers charge to it as they traverse recipes."""

    seeds: int = MAX_RECIPE_SEEDS
    sources: int = MAX_RECIPE_SOURCES
    directions: int = MAX_RECIPE_DIRECTIONS
    depth: int = MAX_MIX_DEPTH

    def spend(self, *, seeds: int = 0, sources: int = 0, directions: int = 0, depth: int = 0) -> None:
        """Charge a latent at nesting depth `depth`. Raises RequestError if the budget is exceeded."""
        if depth > self.depth:
            raise RequestError(f"Mix sources may be nested {self.depth} deep, but these are nested deeper.")
        self.seeds -= seeds
        self.sources -= sources
        self.directions -= directions
        for left, most, name in (
            (self.seeds, MAX_RECIPE_SEEDS, "seeds"),
            (self.sources, MAX_RECIPE_SOURCES, "mix sources"),
            (self.directions, MAX_RECIPE_DIRECTIONS, "directions"),
        ):
            if left < 0:
                raise RequestError(f"A picture may have {most:,} {name} in all, but this one has more.")


def _size(nbytes: int) -> str:
    return f"{nbytes / (1 << 20):.3g} MB" if nbytes >= 1 << 20 else f"{nbytes:,} bytes"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")

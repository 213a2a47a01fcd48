"""Files of our own beside a model: safetensors with one JSON text in the metadata, which names the model's SHA-256.

They are read strictly, in whole and only up to a limit, and read back before they are written.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from gpu_backend.errors import LoomError, ModelFileError, not_written
from gpu_backend.model.network_json import parse_json
from gpu_backend.model.refusal import Refusal, shown
from gpu_backend.model.source import open_source
from gpu_backend.whole_file import check_same, write_whole

_MAX_HEADER_BYTES = 1 << 18

Parsed = TypeVar("Parsed")


def read_companion(
    path: str | os.PathLike[str], expected: str, most_nbytes: int, parse: Callable[[bytes], Parsed]
) -> Parsed:
    """Return what `parse` makes of a file; `expected` names its kind: "an encoder".

    Raises
    ------
    ModelFileError
        If it has more bytes, or `parse` refuses it.
    """
    path = Path(path)
    try:
        with open_source(path) as source:
            if source.size > most_nbytes:
                raise Refusal(f"{expected} of at most {most_nbytes >> 20} MiB", f"it has {source.size} bytes")
            content = source.read(0, source.size)
        return parse(content)
    except Refusal as refusal:
        raise ModelFileError(refusal.sentence(path.name)) from refusal


def write_companion(
    path: str | os.PathLike[str], content: Callable[[], bytes], parse: Callable[[bytes], object]
) -> None:
    """Write a file, aside first, read back and then moved into place, if `parse` reads it.

    Raises
    ------
    ModelFileError
        If a number is not finite (`content` raises ValueError), or reading would refuse it.
    LoomError
        If the file cannot be written; nothing is left behind.
    """
    path = Path(path)
    try:
        written = content()
        parse(written)
    except ValueError:
        raise ModelFileError(f"{path.name} was not written: its numbers must be finite.") from None
    except Refusal as refusal:
        raise ModelFileError(refusal.sentence(path.name).replace("was not opened", "was not written", 1)) from refusal
    if path.exists() and not path.is_file():
        raise LoomError(f"{path.name} was not written: there is a folder, a pipe or a device of that name.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, written, check=lambda aside: check_same(aside, written))
    except OSError as error:
        raise not_written(path, error) from error


def parse_companion(content: bytes, key: str, expected: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the JSON of the metadata's text `key`, and the tensors.

    Raises
    ------
    Refusal
        If it is no such file; `expected` says what was.
    """
    said = parse_json(_header_text(content, key, expected))
    try:
        return said, safetensors.numpy.load(content)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refusal("a whole safetensors file", f"the library that reads it says {shown(str(error))}") from error


def _header_text(content: bytes, key: str, expected: str) -> str:
    """Return a text of a safetensors header; the library gives metadata only of files that it opens by their path.

    Raises
    ------
    Refusal
        If there is none; `expected` says what was.
    """
    length = int(struct.unpack("<Q", content[:8])[0]) if len(content) >= 8 else 0
    if not 2 <= length <= min(_MAX_HEADER_BYTES, len(content) - 8):
        raise Refusal(expected, "its header is missing, cut or too long")
    try:
        header = parse_json(content[8 : 8 + length].decode("utf-8"))
    except UnicodeDecodeError:
        raise Refusal(expected, "its header is not text") from None
    notes = header.get("__metadata__")
    text = notes.get(key) if isinstance(notes, dict) else None
    if not isinstance(text, str):
        raise Refusal(expected, "it holds none that this program wrote")
    return text

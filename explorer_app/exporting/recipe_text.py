"""A picture as text to paste: a command, or a Python program, that makes exactly this picture again.

The command carries the recipe itself as one word::

    latentloom render --network cats.pkl --from recipe:eNqr... --outdir .

which is the picture's document (`picture_document`), deflated, in URL-safe base64.
"""

from __future__ import annotations

import base64
import binascii
import shlex
import sys
import textwrap
import zlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from explorer_app.exporting.errors import PictureError
from explorer_app.exporting.picture_document import PictureDocument, document_from_text, document_to_text
from gpu_backend import PICTURE_LIMITS, PictureMask, RenderRequest, StoredLatent, mask_from_text, mask_to_text

PREFIX = "recipe:"

MAX_WORD = 30_000 if sys.platform == "win32" else 120_000
"""Letters of a recipe in a command; Windows takes 32,767 for a whole command line, Linux 131,071 for a word."""

_WIDTH = 80


def recipe_argument(document: PictureDocument) -> str:
    """Return a document as one word of a command line.

    Raises
    ------
    PictureError
        If it is too long: stored rows of w take 2,700 letters each.
    """
    text = document_to_text(replace(document, session=None))
    word = PREFIX + base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")
    if len(word) > MAX_WORD:
        raise PictureError("This picture's recipe is too long for a command; save the picture, and use --from.")
    return word


def document_of_argument(word: str) -> PictureDocument:
    """Read what `recipe_argument` wrote.

    Raises
    ------
    PictureError
        If the word is no such recipe, or damaged.
    """
    code = word.removeprefix(PREFIX)
    try:
        packed = base64.b64decode(code + "=" * (-len(code) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(packed, PICTURE_LIMITS.nbytes + 1).decode("ascii")
        is_whole = unpacker.eof and not unpacker.unused_data
    except (binascii.Error, zlib.error, ValueError) as error:
        raise PictureError("The recipe in the command is damaged; copy the command again.", str(error)) from error
    if not is_whole:
        raise PictureError("The recipe in the command is not whole; copy the command again.")
    return document_from_text(text)


def as_command(document: PictureDocument, network: Path | None) -> str:
    """Return the command that renders a picture again; `network` None is the bundled model. Raises PictureError."""
    of_network = [] if network is None else ["--network", str(network)]
    words = ["latentloom", "render", *of_network, "--from", recipe_argument(document), "--outdir", "."]
    if sys.platform == "win32":
        import subprocess

        return subprocess.list2cmdline(words)
    return shlex.join(words)


def as_python(request: RenderRequest, network: Path) -> str:
    """Return the program that renders a picture again, with the recipe as values that can be read and changed."""
    request = replace(request, measure_steps=False)
    names = sorted({"open_renderer", *_names(request)})
    line = f"from gpu_backend import {', '.join(names)}"
    if len(line) > _WIDTH:
        line = "from gpu_backend import (\n" + "".join(f"    {name},\n" for name in names) + ")"
    stored = _needs_bytes(request)
    return "\n".join(
        [
            *(["import base64", ""] if stored else []),
            "from PIL import Image",
            "",
            line,
            "",
            f"request = {_code(request, 0)}",
            f"with open_renderer({str(network)!r}) as renderer:",
            "    frame = renderer.render(request)",
            'Image.fromarray(frame.to_rgb()).save("picture.png")',
            "",
        ]
    )


def _values(value: Any) -> Iterator[Any]:
    """Return the fields of a value that differ from their defaults, or the items of a tuple."""
    if is_dataclass(value) and not isinstance(value, type | PictureMask):
        for _, item in _given(value):
            yield item
    elif isinstance(value, tuple):
        yield from value


def _given(value: Any) -> list[tuple[str, Any]]:
    pairs = ((item, getattr(value, item.name)) for item in fields(value))
    return [(item.name, there) for item, there in pairs if there != item.default]


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, PictureMask):
        yield mask_from_text.__name__
    elif is_dataclass(value):
        yield type(value).__name__
    for item in _values(value):
        yield from _names(item)


def _needs_bytes(value: Any) -> bool:
    return isinstance(value, StoredLatent) or any(_needs_bytes(item) for item in _values(value))


def _code(value: Any, indent: int) -> str:
    """Return the expression of a value; one that is too long for a line is broken after each part."""
    if isinstance(value, bytes):
        return f"base64.b64decode({base64.b64encode(value).decode()!r})"
    if isinstance(value, PictureMask):
        return f"{mask_from_text.__name__}({mask_to_text(value)!r})"
    if is_dataclass(value):
        head, tail = f"{type(value).__name__}(", ")"
        parts = [f"{name}={_code(item, indent + 4)}" for name, item in _given(value)]
    elif isinstance(value, tuple):
        head, tail = "(", ",)" if len(value) == 1 else ")"
        parts = [_code(item, indent + 4) for item in value]
    else:
        return repr(value)
    line = head + ", ".join(parts) + tail
    if "\n" not in line and indent + len(line) <= _WIDTH:
        return line
    space = " " * (indent + 4)
    if isinstance(value, tuple) and all(isinstance(item, int | float) for item in value):
        numbers = textwrap.fill(", ".join(parts) + ",", _WIDTH + 20, initial_indent=space, subsequent_indent=space)
        return f"{head}\n{numbers}\n{' ' * indent})"
    return head + "\n" + "".join(f"{space}{part},\n" for part in parts) + " " * indent + ")"

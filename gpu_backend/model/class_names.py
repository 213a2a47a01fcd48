"""Names of classes, from a text or JSON file beside the model: ``tench`` for class 0.

Looked for beside ``MODEL.pkl``, the first that is there counts: ``MODEL.labels.txt``, ``MODEL.labels.json``,
``MODEL.classes.txt``, ``MODEL.classes.json``. Without one of those, the first of the folder's `SHARED` files that
fits the network: ``labels.txt``, ``classes.txt``, ``class_index.json``, ``imagenet_class_index.json`` and so on.

What they may hold, UTF-8, a name for each class and none more::

    tench                                  text: a name a line, in the order of the classes; empty lines do not count
    0: tench                               each line with its class before it (also ``0,`` ``0;`` ``0)`` or a tab)
    {0: 'tench, Tinca tinca',              so, too
    n01440764 tench, Tinca tinca           each line with the key of WordNet before it, which is left out
    ["tench", "goldfish"]                  JSON: a list
    {"0": "tench", "1": "goldfish"}        by class
    {"0": ["n01440764", "tench"]}          by class, the last of several words
    {"tench": 0, "goldfish": 1}            by name
    {"class_names": ...}                   any of those under one of the keys `_HOLDERS`

A file is read strictly. An invalid file does not keep the model from opening: a warning describes the problem, and
classes keep their numbers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from gpu_backend.errors import ModelFileError
from gpu_backend.model.network_json import strict_json
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.source import open_source
from gpu_backend.quick_dataclass import dataclass

OWN = (".labels.txt", ".labels.json", ".classes.txt", ".classes.json")
"""Endings after the model's name, of files for just this model."""

SHARED = (
    "labels.txt",
    "labels.json",
    "classes.txt",
    "classes.json",
    "class_names.txt",
    "class_names.json",
    "class_index.json",
    "imagenet_class_index.json",
    "imagenet_classes.txt",
    "imagenet1000_clsidx_to_labels.txt",
)
"""Files for whatever models of their folder have so many classes."""

MAX_FILE_BYTES = 4 << 20
MAX_NAME = 120
"""Characters of a name; what is beyond is cut."""

_HOLDERS = ("id2label", "class_names", "names", "classes", "labels")
_EXPECTED = "a file of class names"
_BLANK = " \t"
_NUMBER = re.compile(r"[0-9]{1,6}", re.ASCII)
_WORDNET_KEY = re.compile(r"n[0-9]{8}(?=[ \t,:;])", re.ASCII)


@dataclass(frozen=True, slots=True)
class ClassNames:
    """A name for each class, in order, and the name of the file that they come from."""

    names: tuple[str, ...]
    file: str


def class_names_beside(model: str | os.PathLike[str], c_dim: int) -> tuple[ClassNames | None, tuple[str, ...]]:
    """Return the names of a model's classes; None where there are none, with a warning if a file cannot be used."""
    if c_dim == 0:
        return None, ()
    path = Path(model)
    own = _there(path.parent, (path.stem + ending for ending in OWN))[:1]
    warnings: list[str] = []
    for place in own or _there(path.parent, SHARED):
        try:
            return ClassNames(read_class_names(place, c_dim), place.name), ()
        except ModelFileError as error:
            warnings.append(error.sentence)
    return None, tuple(warnings[:1])


def read_class_names(path: str | os.PathLike[str], c_dim: int) -> tuple[str, ...]:
    """Read the names of a network's `c_dim` classes.

    Raises
    ------
    ModelFileError
        If the file is too large, of another format, or does not have one name for each class.
    """
    path = Path(path)
    try:
        with open_source(path, _EXPECTED) as source:
            if source.size > MAX_FILE_BYTES:
                raise Refusal(f"{_EXPECTED} of at most {MAX_FILE_BYTES >> 20} MiB", f"it has {source.size} bytes")
            content = source.read(0, source.size)
        return _parsed(content, c_dim)
    except Refusal as refusal:
        raise ModelFileError(refusal.sentence(path.name)) from refusal


def _there(folder: Path, names: Iterable[str]) -> list[Path]:
    # Unlike Path's, it says no to a name that the system finds too long.
    return [folder / name for name in names if os.path.isfile(folder / name)]


def _parsed(content: bytes, count: int) -> tuple[str, ...]:
    try:
        text = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise Refusal(f"{_EXPECTED} in UTF-8", "it is in another encoding", "save it as UTF-8") from None
    try:
        names = _of_json(strict_json(text), count)
    except (ValueError, RecursionError):
        names = _of_lines(list(filter(None, map(str.strip, text.splitlines()))), count)
    _check_count(len(names), count)
    return tuple(_clean(name) for name in names)


def _check_count(found: int, count: int) -> None:
    if found != count:
        raise Refusal(f"{count} names, one for each class", f"found {found}", "classes keep their numbers")


def _of_lines(lines: Sequence[str], count: int) -> Sequence[str]:
    if lines and lines[0].startswith(("{", "[")) and _quoted(lines[0]) is None:
        raise Refusal(f"{_EXPECTED} with whole JSON in it", "its JSON is damaged")
    _check_count(len(lines), count)  # first: the lines that are looked into are as many as the classes
    quoted = _all_of(_quoted, lines)
    if quoted is not None:
        return _in_order(quoted, count)
    numbered = _all_of(_numbered, lines)
    # Names may begin with numbers; they are those of classes only if each class has its own.
    if numbered is not None and {number for number, _ in numbered} == set(range(count)):
        lines = _in_order(numbered, count)
    return _all_of(_keyed, lines) or lines


_T = TypeVar("_T")


def _all_of(read: Callable[[str], _T | None], lines: Sequence[str]) -> list[_T] | None:
    """Return what `read` makes of each line; None if it makes nothing of one."""
    found: list[_T] = []
    for line in lines:
        value = read(line)
        if value is None:
            return None
        found.append(value)
    return found


# The three forms of a line. Each looks at every character a fixed number of times, however the line is made.


def _quoted(line: str) -> tuple[int, str] | None:
    """Read ``{0: 'tench',``; braces and the comma may be missing."""
    number, _, rest = line.partition(":")
    number = number.removeprefix("{").strip(_BLANK)
    text = rest.removesuffix("}").rstrip(_BLANK).removesuffix(",").strip(_BLANK)
    if not _NUMBER.fullmatch(number) or len(text) < 2 or text[0] not in "'\"" or text[-1] != text[0]:
        return None
    return int(number), text[1:-1]


def _numbered(line: str) -> tuple[int, str] | None:
    """Read ``0: tench`` or ``0 tench``."""
    match = _NUMBER.match(line)
    if match is None:
        return None
    rest = line[match.end() :]
    text = rest.lstrip(_BLANK)
    if text.startswith((":", ",", ";", ")")):
        text = text[1:].lstrip(_BLANK)
    elif len(text) == len(rest):
        return None
    return (int(match[0]), text) if text else None


def _keyed(line: str) -> str | None:
    """Read the name behind a key of WordNet."""
    match = _WORDNET_KEY.match(line)
    return line[match.end() :].lstrip(" \t,:;") or None if match else None


def _of_json(data: object, count: int) -> Sequence[str]:
    if isinstance(data, dict):
        data = next((data[key] for key in _HOLDERS if isinstance(data.get(key), dict | list)), data)
    if isinstance(data, list):
        return [_name(value) for value in data]
    if not isinstance(data, dict):
        raise Refusal(_EXPECTED, "found another value")
    if data and all(_is_class(value) for value in data.values()):
        return _in_order(((value, key) for key, value in data.items()), count)
    if not all(re.fullmatch(r"[0-9]{1,6}", key, re.ASCII) for key in data):
        raise Refusal("class names by their numbers, '0' to the last", "found other keys")
    return _in_order(((int(key), _name(value)) for key, value in data.items()), count)


def _is_class(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _name(value: object) -> str:
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        value = value[-1]
    if not isinstance(value, str):
        raise Refusal("a name for each class", "found something else")
    return value


def _in_order(pairs: Iterable[tuple[int, str]], count: int) -> Sequence[str]:
    """Return names by their classes, which are 0 to the last, each once."""
    listed = list(pairs)
    _check_count(len(listed), count)
    # The range is looked at first: a file can choose large numbers that all have the same hash.
    if not all(0 <= number < count for number, _ in listed) or len(dict(listed)) != count:
        raise Refusal(f"the classes 0 to {count - 1}, each once", "found others")
    return [name for _, name in sorted(listed, key=lambda pair: pair[0])]


def _clean(name: str) -> str:
    """Return a name on one line that steers nothing, with spaces where file names have underscores."""
    words = " ".join(name.replace("_", " ").split(None, MAX_NAME)[:MAX_NAME])  # so many words are cut anyway
    plain = "".join(letter if letter.isprintable() else "�" for letter in words[: MAX_NAME + 1])
    if not plain:
        raise Refusal("a name for each class", "one is empty")
    return plain if len(plain) <= MAX_NAME else plain[: MAX_NAME - 1] + "…"

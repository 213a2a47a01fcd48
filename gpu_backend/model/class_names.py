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

A file is read strictly and never stops a model from being opened: what is wrong with it is told in one sentence, and
classes keep their numbers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_backend.errors import ModelFileError
from gpu_backend.model.network_json import strict_json
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.source import open_source

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
_NUMBERED = re.compile(r"([0-9]{1,6})[ \t]*[:,;)\t ][ \t]*(\S.*)", re.ASCII)
_QUOTED = re.compile(r"\{?[ \t]*([0-9]{1,6})[ \t]*:[ \t]*(['\"])(.*)\2[ \t]*,?[ \t]*\}?", re.ASCII)
_WORDNET = re.compile(r"n[0-9]{8}[ \t,:;]+(\S.*)", re.ASCII)


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
        If the file is too large, no such file, or has not one name for each class; the sentence says what came.
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
        names = _of_lines([line.strip() for line in text.splitlines() if line.strip()], count)
        if names and names[0].startswith(("{", "[")):
            raise Refusal(f"{_EXPECTED} with whole JSON in it", "its JSON is damaged") from None
    if len(names) != count:
        raise Refusal(f"{count} names, one for each class", f"{len(names)} came", "classes keep their numbers")
    return tuple(_clean(name) for name in names)


def _of_lines(lines: Sequence[str], count: int) -> Sequence[str]:
    quoted = [match for line in lines if (match := _QUOTED.fullmatch(line))]
    if lines and len(quoted) == len(lines):
        return _in_order(((int(match[1]), match[3]) for match in quoted), count)
    numbered = [match for line in lines if (match := _NUMBERED.fullmatch(line))]
    # Names may begin with numbers; they are those of classes only if each class has its own.
    if len(numbered) == len(lines) and {int(match[1]) for match in numbered} == set(range(len(lines))):
        lines = _in_order(((int(match[1]), match[2]) for match in numbered), len(lines))
    keyed = [match[1] for line in lines if (match := _WORDNET.fullmatch(line))]
    return keyed if len(keyed) == len(lines) else lines


def _of_json(data: object, count: int) -> Sequence[str]:
    if isinstance(data, dict):
        data = next((data[key] for key in _HOLDERS if isinstance(data.get(key), dict | list)), data)
    if isinstance(data, list):
        return [_name(value) for value in data]
    if not isinstance(data, dict):
        raise Refusal(_EXPECTED, "another value came")
    if data and all(_is_class(value) for value in data.values()):
        return _in_order(((value, key) for key, value in data.items()), count)
    if not all(re.fullmatch(r"[0-9]{1,6}", key, re.ASCII) for key in data):
        raise Refusal("class names by their numbers, '0' to the last", "other keys came")
    return _in_order(((int(key), _name(value)) for key, value in data.items()), count)


def _is_class(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _name(value: object) -> str:
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        value = value[-1]
    if not isinstance(value, str):
        raise Refusal("a name for each class", "something else came")
    return value


def _in_order(pairs: Iterable[tuple[int, str]], count: int) -> Sequence[str]:
    """Return names by their classes, which are 0 to the last, each once."""
    listed = list(pairs)
    table = dict(listed)
    if len(listed) == count and table.keys() != set(range(count)):
        raise Refusal(f"the classes 0 to {count - 1}, each once", "others came")
    return [name for _, name in sorted(listed, key=lambda pair: pair[0])]


def _clean(name: str) -> str:
    """Return a name on one line that steers nothing, with spaces where file names have underscores."""
    words = " ".join(name.replace("_", " ").split())
    plain = "".join(letter if letter.isprintable() else "�" for letter in words)
    if not plain:
        raise Refusal("a name for each class", "one is empty")
    return plain if len(plain) <= MAX_NAME else plain[: MAX_NAME - 1] + "…"

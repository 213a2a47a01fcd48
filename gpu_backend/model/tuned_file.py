"""The file of a tuned model: what is added to the weights of another model's file, which it needs.

A safetensors file with the changes of some weights in half precision, and one JSON text in the metadata::

    {"version": 1, "base": "/models/hills.pkl", "base_id": SHA-256 of that file, "of": "photo.png"}

It is opened like every model. The other file lies beside it under the name that is said or under its SHA-256, or where
it was at the time; its SHA-256 decides. The tuned model has a SHA-256 of its own, the one of this file. A model that is
tuned twice changes the first model of all: the file has the sum of both changes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from gpu_backend.errors import ModelFileError
from gpu_backend.limits import is_regular_file
from gpu_backend.model.companion_file import write_companion
from gpu_backend.model.found import Found
from gpu_backend.model.network_json import parse_json
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.safetensors_table import SafetensorsTable, looks_like_safetensors
from gpu_backend.model.source import FileSource, open_source
from gpu_backend.model.tensors import Loaded
from gpu_backend.model.watch import Watch
from gpu_backend.plain_text import printable
from gpu_backend.quick_dataclass import dataclass
from gpu_backend.whole_file import cut_name

KEY = "latent-loom-tuned"
VERSION = 1
_MAX_TEXT = 4096
_MAX_STEM_NBYTES = 115


@dataclass(frozen=True, slots=True)
class Base:
    """The model that a tuned one changes: where its file was, its SHA-256, and the name of the photo.

    A name that was read from a file is printable, on one line.
    """

    path: Path
    model_id: str
    photo: str


def tuned_path(model: str | os.PathLike[str], photo: str | os.PathLike[str]) -> Path:
    """Return where a model that is tuned to a photo is kept: ``hills.pkl`` -> ``hills.photo.safetensors``.

    Long names are cut, so that the file can be written, also with a number at its end.
    """
    path = Path(model)
    names = cut_name(path.stem, _MAX_STEM_NBYTES), cut_name(Path(photo).stem, _MAX_STEM_NBYTES)
    return path.with_name(f"{'.'.join(names)}.safetensors")


def write_tuned(changes: Mapping[str, NDArray[np.float32]], base: Base, path: str | os.PathLike[str]) -> None:
    """Write a tuned model, aside first and then moved into place.

    Parameters
    ----------
    changes
        What is added to weights, by official state-dict names.
    base
        The model with these weights, which may be tuned itself.

    Raises
    ------
    ModelFileError
        If a change does not fit into half precision, a text is longer than the reader allows, or `path` is the model
        that is changed.
    LoomError
        If the file cannot be written; nothing is left behind.
    """
    changes, base = _from_first_model(changes, base)
    if _are_same(Path(path), base.path):
        raise ModelFileError(
            f"{Path(path).name} was not written: it is the model that is changed; choose another name."
        )
    said = {"version": VERSION, "base": str(base.path), "base_id": base.model_id, "of": base.photo}
    text = json.dumps(said, sort_keys=True)

    def content() -> bytes:
        _base(text)
        arrays: dict[str, NDArray[Any]] = {}
        for name, array in changes.items():
            if not np.abs(array).max(initial=0.0) <= np.finfo(np.float16).max:
                raise ValueError(name)
            arrays[name] = np.ascontiguousarray(array, np.float16)
        return safetensors.numpy.save(arrays, {KEY: text})

    write_companion(path, content, safetensors.numpy.load)


def _from_first_model(
    changes: Mapping[str, NDArray[np.float32]], base: Base
) -> tuple[Mapping[str, NDArray[np.float32]], Base]:
    """Return what changes of a tuned model add to the model that it changes, and that; of any other model, the same."""
    try:
        with open_source(base.path) as source:
            if not _is_tuned(source):
                return changes, base
            table = SafetensorsTable(source)
            first = _first_model(table, source)
            earlier = table.load(tuple(table.shapes), Watch())
    except Refusal:  # gone meanwhile, as any other model can be: reading the new file says so
        return changes, base
    if earlier.digest != base.model_id:
        return changes, base
    whole = dict(earlier.weights)
    for name, change in changes.items():
        whole[name] = whole[name] + change if name in whole else change
    return whole, Base(first.path, first.model_id, base.photo)


def changed_model(path: str | os.PathLike[str]) -> Base | None:
    """Return the model that a tuned one changes, by the path at which it is looked for; None for any other file."""
    try:
        with open_source(Path(path)) as source:
            return _first_model(SafetensorsTable(source), source) if _is_tuned(source) else None
    except Refusal:
        return None


def find_tuned(source: FileSource, find: Callable[[FileSource], Found]) -> Found | None:
    """Find the network of a tuned model; None if the file is no such.

    Parameters
    ----------
    find
        Finds the network of the other model's file.

    Raises
    ------
    Refusal
        If the other model's file is missing, or another one, or the changes do not fit it.
    """
    table = SafetensorsTable(source)
    if KEY not in table.metadata:
        return None
    base = _base(table.metadata[KEY])
    path = _path_of(base, source)
    expected = f"{printable(_names(base)[-1])} beside it, the model that it changes"
    with open_source(path, expected) as other:
        if _is_tuned(other):
            raise Refusal("changes of a model that is not tuned itself", f"{path.name} is")
        found = find(other)

    def load(watch: Watch) -> Loaded:
        with open_source(path, expected) as again:
            loaded = find(again).load(watch.part(0, again.size, again.size + source.size))
        if loaded.digest != base.model_id:
            raise Refusal(expected, "another file has its name", "put back the model that was tuned")
        whole = again.size + source.size
        changes = table.load(tuple(table.shapes), watch.part(again.size, whole, whole))
        for name, change in changes.weights.items():
            weight = loaded.weights.get(name)
            if weight is None or weight.shape != change.shape:
                raise Refusal(f"changes of tensors of {path.name}", f"it has no {name[:80]} of the same shape")
            loaded.weights[name] = weight + change
        return Loaded(loaded.weights, changes.digest)

    flavour = f"tuned to {base.photo}" if base.photo else "tuned"
    return Found(
        found.spec, load, "safetensors", flavour, found.requested, found.ignored, found.warnings, (path, base.model_id)
    )


def _path_of(base: Base, source: FileSource) -> Path:
    """Return where to look for the model that a file changes."""
    for name in _names(base):
        beside = source.path.with_name(name)
        if is_regular_file(beside) and beside != source.path:
            return beside
    if re.fullmatch("[0-9a-f]{64}", base.model_id):
        for suffix in (base.path.suffix.lower(), ".pkl"):  # a farm's worker keeps a model of unusual suffix as .pkl
            kept = source.path.with_name(base.model_id + suffix)
            if is_regular_file(kept):
                return kept
    # A path that a stranger wrote must not reach for another computer, as the paths of Windows shares do.
    is_far = str(base.path).startswith(("\\\\", "//"))
    return beside if is_far else base.path


def _names(base: Base) -> list[str]:
    """Return what the model's file may be called: its path may be one of Windows, whose separators are in the name."""
    return list(dict.fromkeys((base.path.name, PureWindowsPath(base.path).name or base.path.name)))


def _first_model(table: SafetensorsTable, source: FileSource) -> Base:
    """Return the model that a tuned one changes, by the path at which it is looked for."""
    said = _base(table.metadata[KEY])
    return Base(_path_of(said, source).absolute(), said.model_id, said.photo)


def _are_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one is missing
        return False


def _is_tuned(source: FileSource) -> bool:
    return looks_like_safetensors(source.read(0, 16), source.size) and KEY in SafetensorsTable(source).metadata


def _base(text: str) -> Base:
    said = parse_json(text)
    if said.get("version") != VERSION:
        raise Refusal(f"version {VERSION} of tuned models", "this file is of another version")
    texts = [said.get(key) for key in ("base", "base_id", "of")]
    if not all(isinstance(text, str) and len(text) <= _MAX_TEXT for text in texts):
        raise Refusal("the name of the model that was tuned", "it is missing or damaged")
    path, model_id, photo = (str(text) for text in texts)
    if not Path(path).name:
        raise Refusal("the name of the model that was tuned", "it is missing or damaged")
    # Names of files may hold any character: screenshots of macOS have a narrow no-break space before AM or PM.
    return Base(Path(path), model_id, printable(" ".join(photo.split())))

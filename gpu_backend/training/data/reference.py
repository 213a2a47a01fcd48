"""What a checkpoint says about its pictures: name and fingerprint, and no path, which names private folders."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpu_backend.errors import RequestError
from gpu_backend.training.data.files import is_picture_name
from gpu_backend.training.options import WORLD

_NAME, _FINGERPRINT = "data", "data_fingerprint"


def data_reference(data: str) -> dict[str, str]:
    """Return the reference to the pictures in a checkpoint's options; `find_data` reads it."""
    if data == WORLD:
        return {_NAME: WORLD, _FINGERPRINT: ""}
    name = Path(data).absolute().name
    return {_NAME: f"./{name}" if name == WORLD else name, _FINGERPRINT: fingerprint(Path(data))}


def find_data(saved: Mapping[str, Any], out: Path) -> str:
    """Return the pictures of a checkpoint's options, from the working folder or from beside the training's folder.

    Checkpoints of earlier versions hold a path and no fingerprint: the path is used unchanged.

    Raises
    ------
    RequestError
        If they are in neither place.
    """
    data = str(saved.get(_NAME, WORLD))
    wanted = str(saved.get(_FINGERPRINT, ""))
    if data == WORLD or not wanted:
        return data
    for place in (Path(data), out.absolute().parent / data):
        if place.exists() and fingerprint(place) == wanted:
            return str(place.absolute())
    raise RequestError(
        f"The checkpoint was trained on {Path(data).name}, which is not in this folder; say with --data where it is."
    )


def fingerprint(path: Path) -> str:
    """Return a SHA-256 of the names and sizes of the pictures in a folder, or of names, sizes and CRCs in a zip.

    The content of a folder's pictures is not read: there may be hundreds of gigabytes. Of a file that is no zip it is
    the SHA-256 of nothing; opening it fails with a sentence.
    """
    digest = hashlib.sha256()
    for line in _folder_lines(path) if path.is_dir() else _zip_lines(path):
        digest.update(f"{line}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _folder_lines(folder: Path) -> Iterator[str]:
    found = [path for path in folder.rglob("*") if is_picture_name(path.name) and path.is_file()]
    return iter(sorted(f"{path.relative_to(folder).as_posix()} {path.stat().st_size}" for path in found))


def _zip_lines(path: Path) -> Iterator[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (OSError, zipfile.BadZipFile):
        return iter(())
    return iter(sorted(f"{entry.filename} {entry.file_size} {entry.CRC:08x}" for entry in entries))

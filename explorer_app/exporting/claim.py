"""Which exports a sequence's path permits, given the manifest there."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from explorer_app.exporting.errors import TakenError
from explorer_app.exporting.manifest import Manifest, frames_total, manifest_of
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.exporting.sinks.frame_sink import Claim
from gpu_backend import MANIFEST_LIMITS, Disk, LoomError, read_regular_file, remove_leftovers

_QUICK_NBYTES = 1 << 20
"""Larger manifests are read only by the export itself."""


def place_objection(settings: SequenceSettings, way_out: str = "choose another name, or replace it.") -> str:
    """Return why files would take the place of others, as far as a quick look tells; empty if they would not.

    The export itself looks again, and at everything. `way_out` ends the sentence.
    """
    path = settings.manifest_path
    if settings.overwrite:
        return ""
    try:
        found = path.stat()
    except FileNotFoundError:
        first = settings.single_path or settings.frame_path(0)
        return f"There is a {first.name} in this folder; {way_out}" if first.exists() else ""
    except (OSError, ValueError):
        return ""
    if found.st_size > _QUICK_NBYTES:
        return ""
    former = _settings_at(path, found.st_mtime_ns, found.st_size)
    if former is None:
        return f"There is a {path.name} in this folder; {way_out}"
    if former.makes_the_same_as(settings):
        return ""
    return f"There is another export named {settings.name} in this folder; {way_out}"


@lru_cache(maxsize=4)
def _settings_at(path: Path, mtime_ns: int, nbytes: int) -> SequenceSettings | None:
    """Return the settings of a manifest; None if it is none. Time and size tell whether it was written again."""
    try:
        return manifest_of(read_regular_file(path, _QUICK_NBYTES, "a manifest of a sequence"), path).settings
    except (LoomError, OSError):
        return None


def claim_place(settings: SequenceSettings, disk: Disk) -> tuple[Claim, Manifest | None]:
    """Read the manifest of an earlier run, and return what may be done with the frames beside it.

    The manifest is None if there is none, or it is another sequence's.

    Raises
    ------
    TakenError
        If something else is there, and may not be replaced.
    """
    path = settings.manifest_path
    remove_leftovers(path.parent, path.name.__eq__, disk)
    data = b""
    what = f"The folder {settings.folder} holds a different sequence named {settings.name}"
    try:
        data = read_regular_file(path, MANIFEST_LIMITS.nbytes, "a manifest of a sequence")
        manifest = manifest_of(data, path)
        if manifest.settings.makes_the_same_as(settings):
            return Claim(is_ours=True), manifest
    except FileNotFoundError:
        return Claim(is_ours=settings.overwrite), None
    except OSError as error:
        what = f"{path.name} in {settings.folder} cannot be read ({error.strerror})"
    except LoomError as error:
        what = f"The folder {settings.folder} holds another file in this place: {error.sentence.rstrip('.')}"
    if settings.overwrite:
        return Claim(is_ours=True, replaced_total=frames_total(data)), None
    raise TakenError(what)

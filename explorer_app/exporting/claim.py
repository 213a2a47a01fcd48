"""Which exports a sequence's path permits, given the manifest there."""

from __future__ import annotations

from explorer_app.exporting.errors import TakenError
from explorer_app.exporting.manifest import Manifest, frames_total, manifest_of
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.exporting.sinks.frame_sink import Claim
from gpu_backend import MANIFEST_LIMITS, Disk, LoomError, read_regular_file, remove_leftovers


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

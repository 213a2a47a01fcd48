"""Records the export that a window has begun, so that the next start can offer to resume it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.manifest import Manifest, read_manifest
from gpu_backend import SETTINGS_LIMITS, LimitError, parse_json, read_regular_file, write_whole


class UnfinishedExport:
    """The path of a manifest, in a file of the folder that a window keeps its session in.

    Every method may wait for a disk, and raises OSError if that refuses.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "export.json"

    def note(self, manifest: Path) -> None:
        """Record the manifest of an export that begins."""
        write_whole(self._path, json.dumps({"manifest": str(manifest.absolute())}).encode("ascii"))

    def forget(self) -> None:
        """Delete the record."""
        self._path.unlink(missing_ok=True)

    def left(self) -> Manifest | None:
        """Return the manifest of an export that was begun and not ended; None if there is none, or it is gone."""
        try:
            fields = parse_json(read_regular_file(self._path, SETTINGS_LIMITS.nbytes, "a note"), SETTINGS_LIMITS, "it")
            manifest = read_manifest(Path(str(fields["manifest"])))
            if manifest.state == "unfinished":
                return manifest
        except FileNotFoundError:
            return None
        except (LimitError, ExportError, ValueError, KeyError, TypeError):
            pass  # the export was ended elsewhere, or its folder was deleted
        with contextlib.suppress(OSError):
            self.forget()
        return None


def stopped_sentence(manifest: Manifest) -> str:
    """Return the message about an unfinished export."""
    settings = manifest.settings
    frames = f"{settings.frame_count:,} frame{'' if settings.frame_count == 1 else 's'}"
    return f"The export “{settings.name}” of {frames} in {settings.folder} is not finished."

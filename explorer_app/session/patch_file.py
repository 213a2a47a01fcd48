"""Presets of controllers: the live patches of a session as a small JSON file.

::

    {"format": "latent-loom-patches", "version": 1, "patches": [...]}        patches as in `patch_table`
"""

from __future__ import annotations

import json
from pathlib import Path

from explorer_app.session.patch_table import Patches, patches_from_json, patches_to_json
from explorer_app.session.session_json import SessionFileError, read_mapping
from gpu_backend import SETTINGS_LIMITS, LoomError, parse_json, read_regular_file, write_whole

FORMAT = "latent-loom-patches"
VERSION = 1
SUFFIX = ".patches.json"


def save_patches(path: Path, patches: Patches) -> None:
    """Write patches that are not of the timeline's sounds; read back before the old file is replaced.

    Raises
    ------
    OSError
        If the system refuses.
    """
    data = {
        "format": FORMAT,
        "version": VERSION,
        "patches": patches_to_json(tuple(item for item in patches if not item.is_of_sound)),
    }
    write_whole(path, json.dumps(data, indent=1, allow_nan=False).encode(), check=load_patches)


def load_patches(path: Path) -> Patches:
    """Read what `save_patches` wrote.

    Raises
    ------
    LoomError
        If it is no such file, or holds a patch that a session cannot have.
    OSError
        If the system refuses.
    """
    content = read_regular_file(path, SETTINGS_LIMITS.nbytes, "a controller preset")
    try:
        data = read_mapping(parse_json(content, SETTINGS_LIMITS, "a controller preset"), "preset")
        if data.get("format") != FORMAT or data.get("version") != VERSION:
            raise SessionFileError("its format or version is another")
        return tuple(item for item in patches_from_json(data.get("patches")) if not item.is_of_sound)
    except (ValueError, LoomError) as error:
        sentence = error.sentence if isinstance(error, LoomError) else str(error)
        raise SessionFileError(
            f"{path.name} is not a controller preset of this version of Latent Loom.", sentence
        ) from error

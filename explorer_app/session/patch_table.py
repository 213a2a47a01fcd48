"""The patches of a session: what they may move, edits of the table, JSON.

::

    patch    {"source": "audio/drums/onset", "parameter": "truncation.psi", "low": 0.5, "high": 0.9, "mode": "set",
              "curve": 0, "attack": 0, "release": 0.2, "offset": 0, "pick_up": false, "on": true}
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from explorer_app.session.number_paths import number_path
from explorer_app.session.parameters import Parameter, parameter
from explorer_app.session.patches import MAX_PATCHES, Patch, PatchError, PatchMode
from explorer_app.session.session import Session
from explorer_app.session.session_json import SessionFileError, read_list, read_mapping, read_number, read_text
from gpu_backend import dataclass

PATCHES = "patches"
"""What edits of the table set."""

LABEL, ADJUST = "Patches", "Adjust patch"

Patches = tuple[Patch, ...]


@dataclass(frozen=True, slots=True)
class SetPatches:
    """The edit that replaces the session's patches; see `explorer_app.session.edits`.

    Several with the label `ADJUST` in a row are one step of undo.
    """

    patches: Patches
    label: str = LABEL

    @property
    def target(self) -> Hashable:
        """The whole table: two gestures cannot move it at once."""
        return PATCHES

    def is_nudge(self, session: Session) -> bool:
        """Return whether several in a row are one step of undo."""
        return self.label == ADJUST

    def apply(self, session: Session) -> Session:
        """Return the session with the patches."""
        return replace(session, patches=self.patches)


def target_row(path: str) -> Parameter:
    """Return the parameter that a patch moves.

    Raises
    ------
    ParameterError
        If there is no such parameter.
    PatchError
        If it is no number.
    """
    row = parameter(path)
    if number_path(path) != path:
        raise PatchError(f"A patch moves a number, but {row.label.lower()} ({path[:80]}) is not a number.")
    return row


def checked(patches: Patches) -> Patches:
    """Return patches that a session may hold. Raises PatchError or ParameterError."""
    if len(patches) > MAX_PATCHES:
        raise PatchError(f"A session may have {MAX_PATCHES} patches, but this one would have {len(patches)}.")
    for patch in patches:
        target_row(patch.parameter)
    return patches


def with_patch(patches: Patches, patch: Patch) -> Patches:
    """Return the patches with one more, as the last one. Raises PatchError or ParameterError."""
    return checked((*patches, patch))


def with_changed(patches: Patches, index: int, patch: Patch) -> Patches:
    """Return the patches with another one in a place. Raises PatchError or ParameterError."""
    return checked((*patches[:index], patch, *patches[index + 1 :]))


def without_patch(patches: Patches, index: int) -> Patches:
    """Return the patches without one."""
    return (*patches[:index], *patches[index + 1 :])


# -- JSON -----------------------------------------------------------------------------------------------------------


def patches_to_json(patches: Patches) -> list[dict[str, Any]]:
    """Return patches as JSON-able data."""
    return [
        {
            "source": patch.source,
            "parameter": patch.parameter,
            "low": patch.low,
            "high": patch.high,
            "mode": patch.mode,
            "curve": patch.curve,
            "attack": patch.attack_s,
            "release": patch.release_s,
            "offset": patch.offset_s,
            "pick_up": patch.is_picked_up,
            "on": patch.is_on,
        }
        for patch in patches
    ]


def patches_from_json(data: object) -> Patches:
    """Read what `patches_to_json` wrote. Raises SessionFileError, PatchError or ParameterError."""
    return checked(tuple(_patch(item) for item in read_list(data, "patches", MAX_PATCHES)))


@lru_cache(maxsize=1024)
def patches_bytes(patches: Patches) -> bytes:
    """Return patches as JSON that was read back, encoded once: steps of the history are written again and again.

    Raises
    ------
    SessionFileError, PatchError, ParameterError
        If the patches could not be read again.
    """
    text = json.dumps(patches_to_json(patches), separators=(",", ":"), allow_nan=False).encode()
    patches_from_json(json.loads(text))
    return text


def _patch(data: object) -> Patch:
    fields = read_mapping(data, "patch")
    numbers = {
        name: read_number(fields.get(key, default), f"patch's {key}")
        for key, name, default in (
            ("low", "low", 0.0),
            ("high", "high", 1.0),
            ("curve", "curve", 0.0),
            ("attack", "attack_s", 0.0),
            ("release", "release_s", 0.0),
            ("offset", "offset_s", 0.0),
        )
    }
    return Patch(
        read_text(fields.get("source"), "patch's source"),
        read_text(fields.get("parameter"), "patch's parameter"),
        mode=cast("PatchMode", read_text(fields.get("mode", "set"), "patch's mode")),
        is_picked_up=_flag(fields.get("pick_up", False), "patch's pick-up"),
        is_on=_flag(fields.get("on", True), "patch's switch"),
        **numbers,
    )


def _flag(data: object, what: str) -> bool:
    if not isinstance(data, bool):
        raise SessionFileError(f"The {what} must be true or false, but is not.")
    return data

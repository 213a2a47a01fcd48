"""A stretch of a timeline as JSON, for manifests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from explorer_app.exporting.sequence import Piece
from explorer_app.exporting.sheet import MAX_CELLS
from explorer_app.session.envelopes import envelopes_from_json, envelopes_to_json
from explorer_app.session.patch_table import patches_from_json, patches_to_json
from explorer_app.session.session import as_still
from explorer_app.session.session_json import (
    read_integer,
    read_list,
    read_mapping,
    session_from_json,
    session_to_json,
    stored_of,
)
from explorer_app.session.timeline.timeline_json import (
    read_positive,
    read_time,
    stored_of_tracks,
    timeline_from_json,
    timeline_to_json,
    track_from_json,
    track_to_json,
)
from explorer_app.session.tracks import MAX_TRACKS
from gpu_backend import StoredPart

_MAX_FPS = 100 * MAX_CELLS
"""A sheet may show the pictures of a hundredth of a second."""


def piece_to_json(piece: Piece) -> dict[str, Any]:
    """Return a piece as JSON-able data."""
    tracks, class_count = piece.session.timeline.tracks, piece.session.model.class_count
    return {
        "fps": _terms(piece.fps),
        "start": _terms(piece.start),
        "end": _terms(piece.end),
        "session": session_to_json(as_still(piece.session)),
        **({} if class_count is None else {"class_count": class_count}),
        "tracks": [track_to_json(track) for track in tracks],
        "timeline": timeline_to_json(piece.session.timeline, range(len(tracks))),
        **({"patches": patches_to_json(piece.session.patches)} if piece.session.patches else {}),
        **({"envelopes": envelopes_to_json(piece.envelopes)} if piece.envelopes else {}),
    }


def piece_stored(piece: Piece) -> dict[str, StoredPart]:
    """Return the stored latents of a piece, by digest."""
    return {**stored_of((piece.session,)), **stored_of_tracks(piece.session.timeline.tracks)}


def piece_from_json(data: object, stored: Mapping[str, StoredPart]) -> Piece:
    """Read what `piece_to_json` wrote. Raises LoomError."""
    fields = read_mapping(data, "piece")
    tracks = [track_from_json(item, stored) for item in read_list(fields.get("tracks", []), "tracks", MAX_TRACKS)]
    timeline = timeline_from_json(fields.get("timeline", {}), tracks)
    patches = patches_from_json(fields.get("patches", []))
    session = session_from_json(fields.get("session"), stored)
    if "class_count" in fields:
        count = read_integer(fields["class_count"], "number of classes", 1, 1 << 20)
        session = replace(session, model=replace(session.model, class_count=count))
    return Piece(
        replace(session, timeline=timeline, patches=patches),
        read_positive(fields.get("fps"), "frames per second", _MAX_FPS),
        read_time(fields.get("start"), "start"),
        read_time(fields.get("end"), "end"),
        envelopes_from_json(fields.get("envelopes", [])),
    )


def _terms(value: Fraction) -> list[int]:
    return [value.numerator, value.denominator]

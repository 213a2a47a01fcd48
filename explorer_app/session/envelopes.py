"""Envelopes of sounds, and the modulation that the patches of a session make of them: pure functions of time.

An envelope holds 100 values per second of one feature of one sound. An export carries the envelopes that it needs in
its manifest, so that it renders the same pictures wherever it is resumed, with the sound's file or without.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from explorer_app.session.patches import FEATURES, Patch, audio_parts, followed, shaped
from explorer_app.session.resolve import NO_MODULATION, Modulation, Modulator
from explorer_app.session.session import Session
from explorer_app.session.session_json import SessionFileError, read_list, read_mapping, read_text
from explorer_app.session.tracks import MAX_SECONDS, Sound, Timeline
from gpu_backend import LazyModule, dataclass

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

ENVELOPE_HZ = 100
"""Values per second."""

_MAX_TAIL_S = 60.0
_MAX_NBYTES = 256 << 20
"""Of all envelopes of a manifest, unpacked: ten sounds and features of 35 hours. A few kilobytes unpack to a day's."""

EnvelopeKey = tuple[str, str]
"""A sound's SHA-256 and a feature."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A feature of a sound over time: little-endian 16-bit whole numbers, 0..65535 for 0..1."""

    digest: str
    feature: str
    values: bytes = field(repr=False)

    @property
    def key(self) -> EnvelopeKey:
        """Sound and feature."""
        return self.digest, self.feature


Envelopes = Mapping[EnvelopeKey, Envelope]


class PatchCurve:
    """What a patch makes of an envelope: implements `explorer_app.session.resolve.Curve`.

    Attack and release are worked out once for the whole envelope; a time is then two look-ups.
    """

    __slots__ = ("_last", "_patch", "_start", "_values")

    def __init__(self, patch: Patch, sound: Sound, envelope: Envelope) -> None:
        values = np.frombuffer(envelope.values, "<u2").astype(np.float32) / 65535.0
        tail = int(min(5.0 * patch.release_s, _MAX_TAIL_S) * ENVELOPE_HZ) + 1
        # Silence on both sides, so that it rises with its attack and ends with its release.
        padded = np.concatenate((np.zeros(1, np.float32), values, np.zeros(tail, np.float32)))
        self._values: list[float] = followed(padded, ENVELOPE_HZ, patch).tolist()
        self._last = len(self._values) - 1
        self._start = float(sound.start) + patch.offset_s - 1.0 / ENVELOPE_HZ
        self._patch = patch

    def at(self, t: float) -> float:
        """Return the parameter's value, or what is added to it, at a time in seconds."""
        return shaped(self._patch, self.source_at(t))

    def source_at(self, t: float) -> float:
        """Return the value of the source after attack and release at a time in seconds, 0..1."""
        place = (t - self._start) * ENVELOPE_HZ
        if place <= 0.0 or place >= self._last:
            return 0.0
        index = int(place)
        first = self._values[index]
        return first + (place - index) * (self._values[index + 1] - first)


def sound_patches(session: Session) -> list[tuple[Patch, Sound, EnvelopeKey]]:
    """Return the patches that act and whose sound is on the timeline, with it and the envelope that they need."""
    found = []
    sounds = {sound.name: sound for sound in session.timeline.sounds}
    for patch in session.patches:
        name, feature = audio_parts(patch.source) if patch.is_on else ("", "")
        if name in sounds:
            found.append((patch, sounds[name], (sounds[name].digest, feature)))
    return found


def needed_envelopes(session: Session) -> list[EnvelopeKey]:
    """Return the envelopes that a session's patches need, each once."""
    return list(dict.fromkeys(key for _, _, key in sound_patches(session)))


def sound_modulation(session: Session, envelopes: Envelopes) -> Modulation:
    """Return what the patches of sounds do to a session over the timeline; one without its envelope does nothing."""
    modulators = tuple(
        Modulator(patch.parameter, _curve(patch, sound, envelopes[key]), patch.mode)
        for patch, sound, key in sound_patches(session)
        if key in envelopes
    )
    return Modulation(modulators) if modulators else NO_MODULATION


def source_level(session: Session, envelopes: Envelopes, patch: Patch, t: float) -> float | None:
    """Return the value of the sound that a patch follows at a time in seconds, 0..1; None if it does nothing."""
    for acting, sound, key in sound_patches(session):
        if acting == patch and key in envelopes:
            return _curve(patch, sound, envelopes[key]).source_at(t)
    return None


_CURVES: dict[tuple[Patch, Any, Envelope], PatchCurve] = {}
_MAX_CURVES = 64


def _curve(patch: Patch, sound: Sound, envelope: Envelope) -> PatchCurve:
    """Return a curve, made once while patch, place of the sound and envelope stay."""
    key = (patch, sound.start, envelope)
    curve = _CURVES.get(key)
    if curve is None:
        if len(_CURVES) >= _MAX_CURVES:
            _CURVES.clear()
        curve = _CURVES[key] = PatchCurve(patch, sound, envelope)
    return curve


def with_sound(timeline: Timeline, sound: Sound) -> Timeline:
    """Return the timeline with a sound in the place of that of the same name, or as the last one."""
    names = [item.name for item in timeline.sounds]
    if sound.name in names:
        sounds = tuple(sound if item.name == sound.name else item for item in timeline.sounds)
    else:
        sounds = (*timeline.sounds, sound)
    return replace(timeline, sounds=sounds)


def without_sound(timeline: Timeline, name: str) -> Timeline:
    """Return the timeline without a sound; its patches stay, and act again when a sound of that name is there."""
    return replace(timeline, sounds=tuple(sound for sound in timeline.sounds if sound.name != name))


def free_name(timeline: Timeline, stem: str) -> str:
    """Return a name for a sound that no other one has: that of its file, or with a number."""
    names = {sound.name for sound in timeline.sounds}
    stem = stem.strip()[:80] or "sound"
    return next(name for n in range(1, len(names) + 2) if (name := stem if n == 1 else f"{stem} {n}") not in names)


# -- JSON, for manifests --------------------------------------------------------------------------------------------


def envelopes_to_json(envelopes: Iterable[Envelope]) -> list[dict[str, Any]]:
    """Return envelopes as JSON-able data: zlib in base64. Raises SessionFileError beyond the reader's limit."""
    envelopes = tuple(envelopes)
    _check_nbytes(envelopes)
    return [
        {
            "sound": item.digest,
            "feature": item.feature,
            "values": base64.b64encode(zlib.compress(item.values, 9)).decode(),
        }
        for item in envelopes
    ]


def envelopes_from_json(data: object) -> tuple[Envelope, ...]:
    """Read what `envelopes_to_json` wrote. Raises SessionFileError."""
    found: list[Envelope] = []
    for item in read_list(data, "envelopes"):
        found.append(_envelope(item))
        _check_nbytes(found)
    return tuple(found)


def _check_nbytes(envelopes: Sequence[Envelope]) -> None:
    if sum(len(item.values) for item in envelopes) > _MAX_NBYTES:
        raise SessionFileError(
            f"The envelopes of all sounds take at most {_MAX_NBYTES >> 20} MB, but these take more; "
            "render a shorter stretch, or switch patches off."
        )


def _envelope(data: object) -> Envelope:
    fields = read_mapping(data, "envelope")
    feature = read_text(fields.get("feature"), "envelope's feature")
    packed = fields.get("values")
    most = 2 * ENVELOPE_HZ * MAX_SECONDS + 2
    try:
        reader = zlib.decompressobj()
        values = (
            reader.decompress(base64.b64decode(packed, validate=True), most + 1) if isinstance(packed, str) else b""
        )
    except (ValueError, zlib.error) as error:
        raise SessionFileError("The values of an envelope are damaged.", str(error)) from error
    if feature not in FEATURES or not values or len(values) > most or len(values) % 2:
        raise SessionFileError("An envelope must have a known feature and up to a day of values, but does not.")
    return Envelope(read_text(fields.get("sound"), "envelope's sound"), feature, values)


def cut_envelopes(envelopes: Sequence[Envelope], session: Session, end_s: float) -> tuple[Envelope, ...]:
    """Return envelopes without what comes after a time of the timeline, whatever the offsets of their patches."""
    result = []
    for envelope in envelopes:
        starts = [
            float(sound.start) + patch.offset_s for patch, sound, key in sound_patches(session) if key == envelope.key
        ]
        count = max(2, int((end_s - min(starts, default=0.0)) * ENVELOPE_HZ) + 3)
        result.append(replace(envelope, values=envelope.values[: 2 * count]))
    return tuple(result)

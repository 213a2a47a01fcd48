"""Names of live sources, and how they are shown.

========================================  ===================================================
``midi/<port>/cc/<channel>/<number>``     a control change; channels count from 1
``midi/<port>/note/<channel>/<number>``   a note's velocity, 0 when it is released
``midi/<port>/bend/<channel>``            pitch bend, 0.5 at rest
``osc/<address>/<argument>``              an argument of an OSC message: ``osc/mixer/fader/0``
``gamepad/<n>/axis/<i>``                  a stick or trigger, 0.5 at rest for a stick
``gamepad/<n>/button/<i>``                1 while it is pressed
``input/rms``, ``input/band/3``           the microphone's envelopes
``audio/<track>/rms``                     envelopes of a sound file in the timeline
========================================  ===================================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_MIDI = re.compile(r"midi/([^/]*)/(cc|note|bend)/(\d{1,2})(?:/(\d{1,3}))?")
_OSC = re.compile(r"osc(/.*)/(\d{1,3})", re.DOTALL)
_GAMEPAD = re.compile(r"gamepad/(\d{1,2})/(axis|button)/(\d{1,3})")
_COUNT = re.compile(r" #\d+$")
_KINDS = {"cc": "CC", "note": "note", "bend": "bend"}

LIVE_PREFIXES = ("midi/", "osc/", "gamepad/", "input/")
"""Sources that exist only while the program runs; the others belong to the timeline."""

MAX_NAME = 200


def is_live(source: str) -> bool:
    """Return whether a source is a controller or a microphone, and not a sound of the timeline."""
    return source.startswith(LIVE_PREFIXES)


def port_name(name: str) -> str:
    """Return the name of a MIDI port without the numbers that ALSA changes at every plug, and without slashes."""
    text = re.sub(r"\s+\d+:\d+$", "", name).replace("/", "-").strip()
    return text[:MAX_NAME] or "MIDI"


def port_places(names: Sequence[str]) -> dict[str, int]:
    """Return the places of ports in a system's list; names that occur several times are counted: #2, #3."""
    places: dict[str, int] = {}
    for place, name in enumerate(names):
        unique, count = name, 1
        while unique in places:
            count += 1
            unique = f"{name} #{count}"
        places[unique] = place
    return places


def port_names(names: Sequence[str], known: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the ports of a system by names that last: `port_name`, followed by #2, #3 … if several have the same.

    Parameters
    ----------
    names
        The system's names, each once.
    known
        An earlier result: ports that are still there keep their names in it.
    """
    found = {lasting: name for lasting, name in (known or {}).items() if name in names}
    for name in names:
        if name in found.values():
            continue
        lasting, count = port_name(name), 1
        while lasting in found:
            count += 1
            lasting = f"{port_name(name)} #{count}"
        found[lasting] = name
    return found


def stale_ports(before: Mapping[str, str], now: Mapping[str, str]) -> set[str]:
    """Return the lasting names of open ports that must be closed; `port_names` returned both arguments.

    These are the ports that were unplugged, those that were plugged in again and so have another name of the system,
    and all ports of a name that several have (macOS) once their number changes: which of them was unplugged cannot be
    seen, and the place of each in the list may be another.
    """
    gone = {lasting for lasting, name in before.items() if now.get(lasting) != name}
    changed = set(before.values()) ^ set(now.values())
    shared = {_uncounted(name) for name in changed if _COUNT.search(name)}
    return gone | {lasting for lasting, name in before.items() if _uncounted(name) in shared}


def _uncounted(name: str) -> str:
    """Return a name of `port_places` as the system has it."""
    return _COUNT.sub("", name)


def midi_source(port: str, kind: str, channel: int, number: int | None = None) -> str:
    """Return the name of a MIDI source; `channel` is 1..16, `port` comes from `port_names`."""
    return f"midi/{port}/{kind}/{channel}" if number is None else f"midi/{port}/{kind}/{channel}/{number}"


def osc_source(address: str, argument: int) -> str:
    """Return the name of an argument of an OSC address, which begins with a slash."""
    return f"osc{address[:MAX_NAME]}/{argument}"


def midi_parts(source: str) -> tuple[str, str, int, int] | None:
    """Return port, kind, channel (1..16) and number of a MIDI source; None for another source."""
    match = _MIDI.fullmatch(source)
    if match is None:
        return None
    port, kind, channel, number = match.groups()
    return port, kind, int(channel), int(number or 0)


def osc_parts(source: str) -> tuple[str, int] | None:
    """Return address and argument of an OSC source; None for another source."""
    match = _OSC.fullmatch(source)
    return None if match is None else (match[1], int(match[2]))


def source_label(source: str) -> str:
    """Return a source as a user reads it: "nanoKONTROL · CC 21", "OSC /sun"."""
    midi = midi_parts(source)
    if midi is not None:
        port, kind, channel, number = midi
        count = _COUNT.search(port)
        short = (port.split(":")[0].strip() or port) + (count[0] if count and ":" in port else "")
        place = "" if channel == 1 else f" ch {channel}"
        return f"{short} · {_KINDS[kind]}{place}" + ("" if kind == "bend" else f" {number}")
    osc = osc_parts(source)
    if osc is not None:
        return f"OSC {osc[0]}" + (f" [{osc[1] + 1}]" if osc[1] else "")
    pad = _GAMEPAD.fullmatch(source)
    if pad is not None:
        return f"Gamepad {int(pad[1]) + 1} · {pad[2]} {int(pad[3]) + 1}"
    room, *rest = source.split("/")
    names = {"input": "Microphone", "audio": rest[0] if rest else "Sound"}
    tail = rest[1:] if room == "audio" else rest
    words = {"rms": "loudness"}
    what = " ".join(words.get(part, part) if not part.isdigit() else str(int(part) + 1) for part in tail)
    return f"{names.get(room, room)} · {what}" if what else source

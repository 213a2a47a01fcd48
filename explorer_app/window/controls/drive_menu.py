"""The menu that lets sound move a parameter: features of the timeline's sounds and of a microphone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtWidgets import QMenu

from explorer_app.session.number_paths import number_path
from explorer_app.session.parameters import ParameterError
from explorer_app.session.patches import BAND_COUNT, INPUT, Patch, audio_source
from explorer_app.window.controls.menu_text import menu_text

FEATURE_NAMES = {
    "rms": "Loudness",
    "onset": "Onsets",
    "beat": "Beat",
    **{f"band/{index}": f"Band {index + 1}" for index in range(BAND_COUNT)},
}
_BAND_HZ = (
    "30–66 Hz",
    "66–144 Hz",
    "144–316 Hz",
    "316–693 Hz",
    "0.7–1.5 kHz",
    "1.5–3.3 kHz",
    "3.3–7.3 kHz",
    "7.3–16 kHz",
)

_USUAL = {
    "truncation.psi": 0.3,
    "noise.gain": 0.8,
    "transform.x": 0.1,
    "transform.y": 0.1,
    "transform.degrees": 20.0,
    "transform.scale": 0.2,
    "layer.gain": 6.0,
    "noise.seed": 1.0,
    "noise.mode/number": 1.0,
    "classes/number": 1.0,
}
"""What a medium patch adds where the sound is loudest; 1.5 for a slider, 0.5 for the rest."""

Drive = Callable[[Patch], object]
"""Adds a patch."""


def is_driven(path: str) -> bool:
    """Return whether sound can move a parameter: a number."""
    try:
        return number_path(path) == path
    except ParameterError:
        return False


def usual_patch(source: str, path: str) -> Patch:
    """Return the patch that a menu adds: a medium amount, added to what the parameter has."""
    amount = _USUAL.get(path, 1.5 if path.startswith("slider/") else 0.5)
    release_s = 0.1 if source.endswith(("onset", "beat")) else 0.3
    return Patch(source, path, 0.0, amount, "add", release_s=release_s)


def add_drive_menu(menu: QMenu, path: str, sounds: Sequence[str], drive: Drive, *, hears: bool = False) -> None:
    """Add "Drive by sound" to the menu of a track or a parameter.

    `sounds` are names of sounds of the timeline; `hears` says whether a microphone is on.
    """
    sub = menu.addMenu("Drive by sound")
    sub.setEnabled(is_driven(path))
    if not (sounds or hears):
        sub.addAction("No sound yet: + Track > Add sound…, or drop a file").setEnabled(False)
    add_sound_sources(sub, path, sounds, drive, hears=hears)


def add_sound_sources(menu: QMenu, path: str, sounds: Sequence[str], drive: Drive, *, hears: bool) -> None:
    """Add the features of each sound and of the microphone; a single sound's sources have no submenu."""
    for name in sounds:
        own = menu if len(sounds) == 1 and not hears else menu.addMenu(menu_text(name))
        add_features(own, partial(audio_source, name), path, drive)
    if hears:
        add_features(menu.addMenu("Microphone"), INPUT.__add__, path, drive)


def add_features(menu: QMenu, source_of: Callable[[str], str], path: str, drive: Drive) -> None:
    """Add an entry for each feature; a microphone has no beat, since that needs the whole sound."""
    for feature, text in FEATURE_NAMES.items():
        source = source_of(feature)
        if source != f"{INPUT}beat":
            hertz = f" · {_BAND_HZ[int(feature[5:])]}" if feature.startswith("band/") else ""
            menu.addAction(text + hertz).triggered.connect(partial(_drive, drive, usual_patch(source, path)))


def _drive(drive: Drive, patch: Patch, _checked: bool = False) -> None:
    drive(patch)

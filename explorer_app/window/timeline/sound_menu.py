"""The menus of sounds: how loud one is, its tempo, and which parameters it moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from explorer_app.audio.decoding import SUFFIXES
from explorer_app.session.parameter_names import parameter_name
from explorer_app.session.patch_table import SetPatches, with_changed, without_patch
from explorer_app.session.patches import Patch, audio_parts, audio_source
from explorer_app.session.session import Session
from explorer_app.session.tracks import Sound
from explorer_app.window.controls.drive_menu import FEATURE_NAMES, Drive, add_features, is_driven, usual_patch
from explorer_app.window.controls.menu_text import menu_text

_STRENGTHS = {"Gentle": 0.5, "Medium": 1.0, "Strong": 2.0}
_RELEASES = {"None": 0.0, "Short (0.1 s)": 0.1, "Medium (0.3 s)": 0.3, "Long (1 s)": 1.0}
_GAINS = (6, 3, 0, -3, -6, -12, -18, -24)

SOUND_FILES = f"Sounds ({' '.join(f'*{suffix}' for suffix in SUFFIXES)})"


def sound_menu(
    parent: QWidget,
    sound: Sound,
    session: Session,
    paths: Iterable[str],
    *,
    change: Callable[[Sound, str, bool], None],
    edit: Callable[[SetPatches, bool], None],
    drive: Drive,
    use_tempo: Callable[[str], None],
    locate: Callable[[str], None],
    remove: Callable[[str], None],
) -> QMenu:
    """Return the menu of a sound; `paths` are the parameters that it may move. Closing deletes it."""
    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    mute = menu.addAction("Mute")
    mute.setCheckable(True)
    mute.setChecked(sound.is_muted)
    mute.triggered.connect(lambda on: change(replace(sound, is_muted=on), "Mute sound", True))
    volume = menu.addMenu("Volume")
    group = QActionGroup(volume)
    for gain in _GAINS:
        action = volume.addAction(f"{gain:+d} dB".replace("-", "−") if gain else "0 dB")
        action.setCheckable(True)
        action.setChecked(sound.gain_db == gain)
        group.addAction(action)
        action.triggered.connect(partial(_set_gain, change, sound, gain))
    menu.addAction("Use this tempo").triggered.connect(lambda: use_tempo(sound.name))
    menu.addSeparator()
    moves = menu.addMenu("Move a parameter")
    for path in paths:
        if is_driven(path):
            add_features(
                moves.addMenu(menu_text(parameter_name(path, session))), partial(audio_source, sound.name), path, drive
            )
    for index, patch in enumerate(session.patches):
        name, feature = audio_parts(patch.source)
        if name == sound.name:
            title = f"{FEATURE_NAMES[feature]} → {parameter_name(patch.parameter, session)}"
            _add_patch(menu.addMenu(menu_text(title)), index, patch, session, edit)
    menu.addSeparator()
    menu.addAction("Locate file…").triggered.connect(lambda: locate(sound.name))
    menu.addAction("Remove sound").triggered.connect(lambda: remove(sound.name))
    return menu


def choose_sounds(parent: QWidget, then: Callable[[list[Path]], None], *, many: bool = True) -> QFileDialog:
    """Open a dialog that chooses sound files, and pass them on."""
    dialog = QFileDialog(parent, "Add sounds" if many else "Locate sound", "", SOUND_FILES)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFiles if many else QFileDialog.FileMode.ExistingFile)
    dialog.filesSelected.connect(lambda names: then([Path(name) for name in names]))
    dialog.open()
    return dialog


def _set_gain(change: Callable[[Sound, str, bool], None], sound: Sound, gain: int, _checked: bool = False) -> None:
    change(replace(sound, gain_db=float(gain)), "Volume of sound", True)


def _add_patch(
    menu: QMenu, index: int, patch: Patch, session: Session, edit: Callable[[SetPatches, bool], None]
) -> None:
    """Add the entries that change one patch."""

    def put(changed: Patch, label: str) -> None:
        edit(SetPatches(with_changed(session.patches, index, changed), label), True)

    on = menu.addAction("On")
    on.setCheckable(True)
    on.setChecked(patch.is_on)
    on.triggered.connect(lambda is_on: put(replace(patch, is_on=is_on), "Switch patch"))
    menu.addSection("Strength")
    usual = usual_patch(patch.source, patch.parameter).high
    if patch.mode == "add":
        for text, factor in _STRENGTHS.items():
            action = menu.addAction(text)
            action.setCheckable(True)
            action.setChecked(abs(abs(patch.high - patch.low) - usual * factor) < 1e-6)
            sign = -1.0 if patch.high < patch.low else 1.0
            made = replace(patch, low=0.0, high=sign * usual * factor)
            action.triggered.connect(lambda _=False, made=made: put(made, "Strength of patch"))
    inverted = menu.addAction("Inverted")
    inverted.setCheckable(True)
    inverted.setChecked(patch.high < patch.low)
    turned = replace(patch, high=-patch.high) if patch.mode == "add" else replace(patch, low=patch.high, high=patch.low)
    inverted.triggered.connect(lambda _=False: put(turned, "Invert patch"))
    menu.addSection("Release")
    for text, seconds in _RELEASES.items():
        action = menu.addAction(text)
        action.setCheckable(True)
        action.setChecked(patch.release_s == seconds)
        made = replace(patch, release_s=seconds)
        action.triggered.connect(lambda _=False, made=made: put(made, "Release of patch"))
    menu.addSeparator()
    removed = SetPatches(without_patch(session.patches, index), "Remove patch")
    menu.addAction("Remove").triggered.connect(lambda: edit(removed, True))

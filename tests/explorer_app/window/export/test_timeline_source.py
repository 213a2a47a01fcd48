"""Exporting the timeline."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

from explorer_app.exporting.sequence import SequenceSettings, plan_sequence
from explorer_app.session.envelopes import Envelope, Envelopes
from explorer_app.session.patches import Patch
from explorer_app.session.tracks import Sound
from explorer_app.settings import Settings
from explorer_app.window.export.export_dialog import ExportDialog
from tests.helpers.export_dialogs import history, moving, opened


def test_a_session_without_a_timeline_offers_a_path_only(made: ExportDialog) -> None:
    assert made.source.isHidden()
    assert made.timeline.isHidden()
    assert made.wanted.piece is None


def test_the_timeline_is_offered_first_with_the_range_that_loops(qtbot: QtBot, settings: Settings) -> None:
    dialog = opened(qtbot, settings, history(), moving())
    assert dialog.source.segments["timeline"].isChecked()
    assert dialog.path.keys.isHidden() or not dialog.path.keys.isVisible()
    piece = dialog.wanted.piece
    assert piece is not None
    assert (piece.fps, piece.start, piece.end, piece.frame_count) == (12, 1, 3, 24)
    assert dialog.length.text() == "24 frames · 2.0 s at 12 fps"
    dialog.timeline.start.setValue(0.5)
    assert dialog.length.text() == "30 frames · 2.5 s at 12 fps"
    assert dialog.export.isEnabled()


def test_a_range_that_ends_on_a_frame_has_no_frame_more_than_it_plays(qtbot: QtBot, settings: Settings) -> None:
    ranged = moving()
    loop = Fraction(1, 12), Fraction(1, 12) + Fraction(8, 12)  # 0.0833… to 0.75 s
    uneven = replace(ranged, timeline=replace(ranged.timeline, loop=loop, end=Fraction(38, 12)))
    piece = opened(qtbot, settings, history(), uneven).wanted.piece
    assert piece is not None
    assert (piece.start, piece.end, piece.frame_count) == (*loop, 8)
    whole = opened(qtbot, settings, history(), replace(uneven, timeline=replace(uneven.timeline, loop=None)))
    piece = whole.wanted.piece
    assert piece is not None
    assert piece.frame_count == 38, "the field shows 3.17 s"
    whole.timeline.end.setValue(3.0)
    assert whole.wanted.frame_count == 36


def test_a_video_of_the_timeline_has_the_frames_a_second_that_are_chosen(qtbot: QtBot, settings: Settings) -> None:
    dialog = opened(qtbot, settings, history(), moving())
    dialog.presets.segments["gif"].click()
    video = dialog.files.video_format
    assert video is not None
    piece = dialog.wanted.piece
    assert piece is not None
    assert piece.fps == video.fps


def test_a_video_of_the_timeline_has_its_rate_and_one_of_a_path_that_of_the_last(
    qtbot: QtBot, settings: Settings
) -> None:
    settings.choose("export.fps", "25")
    film = Fraction(24000, 1001)
    dialog = opened(qtbot, settings, history(), replace(moving(), timeline=replace(moving().timeline, fps=film)))
    dialog.presets.segments["web"].click()
    assert (dialog.files.fps.text(), dialog.wanted.piece and dialog.wanted.piece.fps) == ("23.976", film)
    dialog.source.segments["path"].click()
    assert dialog.files.fps.text() == "25"
    dialog.source.segments["timeline"].click()
    dialog.files.fps.setValue(60)
    dialog.presets.segments["gif"].click()
    assert dialog.files.fps.text() == "50", "no GIF is quicker"
    dialog.presets.segments["web"].click()
    assert dialog.files.fps.text() == "60"
    assert dialog.wanted.piece is not None
    assert dialog.wanted.piece.fps == 60
    dialog.files.fps.lineEdit().setText("29,97")
    dialog.files.fps.interpretText()
    assert dialog.wanted.piece.fps == Fraction(30000, 1001)
    dialog.files.remember()
    assert settings.choice("export.fps") == "25", "the timeline's own rate is no choice"


def test_a_stretch_that_ends_before_it_starts_is_refused(qtbot: QtBot, settings: Settings) -> None:
    dialog = opened(qtbot, settings, history(), moving())
    dialog.timeline.start.setValue(3.5)
    assert not dialog.export.isEnabled()
    assert "end after it starts" in dialog.hint.text()


def test_a_path_can_still_be_chosen_and_the_export_offers_the_timeline_again(
    qtbot: QtBot, settings: Settings, tmp_path: Path
) -> None:
    settings.remember_folder("export", tmp_path)
    dialog = opened(qtbot, settings, history(), moving())
    dialog.source.segments["path"].click()
    assert dialog.path.keys.isVisible()
    assert dialog.wanted.piece is None
    dialog.source.segments["timeline"].click()
    calls: list[SequenceSettings] = []
    dialog.export_requested.connect(lambda wanted, _: calls.append(wanted))
    dialog.export.click()
    (wanted,) = calls
    assert wanted.keys == ()
    assert wanted.piece is not None
    assert len(plan_sequence(wanted)) == 24


def test_the_ends_of_the_timeline_are_requested_once_they_rest_and_shown_as_they_arrive(
    qtbot: QtBot, settings: Settings
) -> None:
    dialog = opened(qtbot, settings, history(), moving())
    with qtbot.waitSignal(dialog.ends.thumbnail_wanted) as signal:
        dialog.timeline.start.setValue(0.5)
        dialog.timeline.changed.emit()
    plan = plan_sequence(dialog.wanted)
    assert signal.args[1] == plan.request(0)
    for index, colour in ((0, "red"), (len(plan) - 1, "blue")):
        image = QImage(8, 8, QImage.Format.Format_RGB32)
        image.fill(QColor(colour))
        dialog.ends.show_thumbnail(plan.request(index), image)
    ends = (dialog.ends.first, dialog.ends.last)
    assert [end.pixmap().toImage().pixelColor(2, 2).name() for end in ends] == ["#ff0000", "#0000ff"]


def test_without_a_sound_that_moves_the_picture_no_frames_are_shown(qtbot: QtBot, settings: Settings) -> None:
    sound = Sound("drums", "a" * 64, "drums.wav", 4.0)
    patch = Patch("audio/drums/rms", "truncation.psi", 0.0, 1.0)
    moved = replace(moving(), timeline=replace(moving().timeline, sounds=(sound,)), patches=(patch,))
    dialog = opened(qtbot, settings, history(), moved)
    assert "its file is missing" in dialog.hint.text()
    assert [part.isHidden() for part in (dialog.ends.first, dialog.ends.arrow, dialog.ends.last)] == [True] * 3
    dialog.source.segments["path"].click()
    assert not dialog.ends.first.isHidden()
    dialog.source.segments["timeline"].click()
    assert dialog.ends.first.isHidden(), "those of the path are not those of the timeline"


def test_a_sound_that_is_read_while_the_dialog_is_open_lets_the_timeline_be_exported(
    qtbot: QtBot, settings: Settings
) -> None:
    sound = Sound("drums", "a" * 64, "drums.wav", 4.0)
    patch = Patch("audio/drums/rms", "truncation.psi", 0.0, 1.0)
    moved = replace(moving(), timeline=replace(moving().timeline, sounds=(sound,)), patches=(patch,))
    read: list[Envelope] = []

    def envelopes_of(session: object) -> Envelopes:
        return {envelope.key: envelope for envelope in read}

    dialog = opened(qtbot, settings, history(), moved, envelopes_of=envelopes_of)
    assert not dialog.export.isEnabled()
    read.append(Envelope("a" * 64, "rms", bytes(2 * 400)))
    dialog.sounds_changed()
    assert dialog.export.isEnabled()
    assert "missing" not in dialog.hint.text()
    piece = dialog.wanted.piece
    assert piece is not None
    assert piece.session.patches == (patch,)
    assert not dialog.ends.first.isHidden()

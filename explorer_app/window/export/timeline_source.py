"""The timeline as the source of an export: which stretch of it, from when to when."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFormLayout, QVBoxLayout, QWidget

from explorer_app.exporting.sequence import Piece
from explorer_app.exporting.sheet import MAX_CELLS
from explorer_app.exporting.video.video_format import VideoFormat
from explorer_app.session.envelopes import Envelopes, needed_envelopes
from explorer_app.session.session import Session
from explorer_app.window.controls.number_field import NumberField, SpinBox
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.look import theme

SHEET_PICTURES = 12
"""On a sheet, unless a user says otherwise."""


class TimelineSource(QWidget):
    """Start and end of what is exported of a session's timeline, and how many pictures of it a sheet shows.

    Signals
    -------
    changed()
        Another start, end or number of pictures.
    """

    changed = Signal()

    def __init__(self, session: Session, envelopes: Envelopes, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._envelopes = envelopes
        timeline = session.timeline
        first, last = timeline.loop if timeline.loop is not None else (Fraction(0), timeline.end)
        self._bounds = first, last
        self.start = self._field(float(first), "First second of the export.", "Start in seconds")
        self.end = self._field(float(last), "End of the export, in seconds; the frame at that time is excluded.", "End")
        self.pictures = SpinBox(2, MAX_CELLS, self)
        self.pictures.setAccessibleName("Pictures")
        self.pictures.setToolTip(f"Pictures on the sheet, 2 to {MAX_CELLS:,}, at equal distances in time.")
        self.pictures.setValue(SHEET_PICTURES)
        self.pictures.valueChanged.connect(self.changed)
        tracks, sounds = len(timeline.tracks), len(timeline.sounds)
        heard = f" and {sounds} sound{'' if sounds == 1 else 's'}" if sounds else ""
        what = "the loop range" if timeline.loop is not None else "the whole timeline"
        about = WrappedLabel(
            f"{float(timeline.end):g} s at {float(timeline.fps):g} fps, {tracks} "
            f"track{'' if tracks == 1 else 's'}{heard}. Export {what}, or choose a stretch.",
            self,
        )
        theme.set_role(about, "dim")
        form = self._form = QFormLayout()
        form.setHorizontalSpacing(theme.px(12))
        form.setVerticalSpacing(theme.px(8))
        form.addRow("From", self.start)
        form.addRow("To", self.end)
        form.addRow("Pictures", self.pictures)
        self.show_pictures(False)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(8))
        layout.addWidget(about)
        layout.addLayout(form)
        layout.addStretch(1)

    @property
    def objection(self) -> str:
        """Why the timeline cannot be exported; empty if it can."""
        names = {sound.digest: sound.name for sound in self._session.timeline.sounds}
        missing = [names[key[0]] for key in needed_envelopes(self._session) if key not in self._envelopes]
        return (
            f"The sound “{missing[0]}” moves the picture, but its file is missing or still being read."
            if missing
            else ""
        )

    def take_envelopes(self, envelopes: Envelopes) -> None:
        """Take what was read of the sounds until now."""
        self._envelopes = envelopes

    def _field(self, value: float, tip: str, name: str) -> NumberField:
        field = NumberField(0.0, float(self._session.timeline.end), decimals=2, step=0.5, widest="00000.00")
        field.setSuffix(" s")
        field.setToolTip(tip)
        field.setAccessibleName(name)
        field.setAlignment(Qt.AlignmentFlag.AlignLeft)
        field.show_number(value)
        field.entered.connect(lambda _number, _final: self.changed.emit())
        return field

    def show_pictures(self, is_shown: bool) -> None:
        """Show the number of pictures of a sheet, or hide it for other exports."""
        self._form.setRowVisible(self.pictures, is_shown)

    def piece(self, video: VideoFormat | None, pictures: int | None = None) -> Piece:
        """Return the stretch at the frame rate of a video or the timeline, or in so many `pictures` of a sheet."""
        start, end = (
            _exact(field.value(), bound) for field, bound in zip((self.start, self.end), self._bounds, strict=True)
        )
        fps = self._session.timeline.fps if video is None else video.fps
        if pictures is not None and end > start:
            fps = pictures / (end - start)
        session = replace(self._session, patches=()) if self.objection else self._session
        return Piece.of(session, fps, start, end, self._envelopes)


def _exact(shown: float, bound: Fraction) -> Fraction:
    """Return the time that a field shows: `bound` where that is what it shows rounded, since it is on a frame."""
    typed = Fraction(round(shown * 100), 100)
    return bound if typed == Fraction(round(float(bound) * 100), 100) else typed

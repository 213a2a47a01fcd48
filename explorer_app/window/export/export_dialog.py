"""Exports a picture, a sequence or a video: preset, path and interpolation, file format and folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import cast

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import (
    QDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.estimate import nbytes_text, picture_nbytes, shortage_text, video_nbytes
from explorer_app.exporting.export_list import JobState
from explorer_app.exporting.progress import time_text
from explorer_app.exporting.sequence import Piece, SequenceSettings, check_name, plan_sequence
from explorer_app.session.envelopes import Envelope, EnvelopeKey, Envelopes
from explorer_app.session.history import History
from explorer_app.session.session import Session
from explorer_app.session.timeline.evaluation import is_piece
from explorer_app.settings import Settings
from explorer_app.window.controls.column_scroll import ColumnScroll
from explorer_app.window.controls.segmented import SegmentedControl
from explorer_app.window.controls.tab_order import chain
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.export.end_pictures import EndPictures
from explorer_app.window.export.export_keys import (
    ExportKey,
    export_settings,
    length_text,
    objection,
    sheet_text,
)
from explorer_app.window.export.file_choices import FileChoices
from explorer_app.window.export.interpolation_choices import InterpolationChoices
from explorer_app.window.export.name_choices import NameChoices
from explorer_app.window.export.path_editor import PathEditor
from explorer_app.window.export.place_choices import PlaceChoices
from explorer_app.window.export.presets import PRESETS, PresetName
from explorer_app.window.export.timeline_source import TimelineSource
from explorer_app.window.look import fonts, theme
from gpu_backend import ModelFacts

_PREVIEW_FPS = 24
"""Frames per second of sequences, whose files store no rate."""

_NO_ENVELOPES: Mapping[EnvelopeKey, Envelope] = MappingProxyType({})


class ExportDialog(QDialog):
    """A non-modal dialog for export settings.

    Parameters
    ----------
    session, history
        The current session, where the path starts, and the history of latents to choose from. Latents of another model
        are fitted to this one, as their thumbnails are.
    facts
        The open model.
    settings
        Stores the folder and the choices.
    frame_ms
        Render time of a full picture in ms, for the estimate; None if unknown.
    gpu_count
        GPUs of this machine; None if it is not known yet.
    envelopes_of
        Returns the envelopes that the patches of a session's sounds need, as far as they were read.
    unfinished_in
        Returns the names of the exports into a folder that run, wait or are paused.
    project
        Name of the open project, which the files are offered to have; empty without one.
    last_path
        Path of the last export, if the user put it together; empty to offer the current and the kept latents.

    Signals
    -------
    export_requested(SequenceSettings, ExportPlace)
        An export was confirmed, other than a still by this device.
    picture_requested(Path, PictureFormat, Size or None)
        A still picture of the canvas by this device was confirmed.
    """

    export_requested = Signal(object, object)
    picture_requested = Signal(object, object, object)

    def __init__(
        self,
        session: Session,
        history: History,
        facts: ModelFacts,
        settings: Settings,
        parent: QWidget | None = None,
        *,
        frame_ms: float | None = None,
        gpu_count: int | None = None,
        envelopes_of: Callable[[Session], Envelopes] = lambda session: _NO_ENVELOPES,
        unfinished_in: Callable[[Path], Mapping[str, JobState]] = lambda folder: {},
        project: str = "",
        last_path: Sequence[ExportKey] = (),
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Export")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._session = session
        self._facts = facts
        self._settings = settings
        self._frame_ms = frame_ms
        self._envelopes_of = envelopes_of
        self._preset: PresetName = "sequence"
        self.presets = SegmentedControl(
            [(key, preset.label, preset.tip) for key, preset in PRESETS.items()], "Kind of export", self
        )
        self.files = FileChoices(
            (facts.resolution, facts.resolution), settings, self, has_alpha=facts.img_channels == 4
        )
        self.place = PlaceChoices(settings, self, gpu_count=gpu_count)
        self.names = NameChoices(settings, self, unfinished_in, project)
        self.interpolation = InterpolationChoices(settings, facts.z_dim, self)
        self.path = PathEditor(session, history, facts, last_path, self)
        self._make_source()
        self._make_form()
        self._lay_out()
        self._restore_choices()
        self.path.changed.connect(self._keys_changed)
        self.path.seeds_refused.connect(self._warn)
        self.path.keys.icons_changed.connect(self._show_ends)
        self.presets.chosen.connect(self._choose_preset)
        self.files.changed.connect(self._changed)
        self.place.changed.connect(self._changed)
        self.timeline.changed.connect(self._changed)
        self.source.chosen.connect(self._choose_source)
        self.names.changed.connect(self._changed)
        self.interpolation.changed.connect(self._interpolation_changed)
        self._keys_changed()

    # -- parts ------------------------------------------------------------------------------------------------------

    def _make_source(self) -> None:
        """Make the choice between a path and the timeline, which is offered if something moves on it."""
        self._is_timeline = is_piece(self._session)
        self.source = SegmentedControl(
            [
                ("timeline", "Timeline", "What the timeline shows, frame by frame."),
                ("path", "Path", "A path through kept latents, steps and seeds."),
            ],
            "Source of the frames",
            self,
        )
        self.source.setVisible(self._is_timeline)
        self.timeline = TimelineSource(self._session, self._envelopes_of(self._session), self)

    def _choose_source(self, source: str) -> None:
        self._is_timeline = source == "timeline"
        self._choose_preset(self._preset)

    def _make_form(self) -> None:
        self.length = WrappedLabel("", self)
        self.length.setFont(fonts.strong())
        theme.set_role(self.length, "strong")
        self.ends = EndPictures(self)
        self.estimate = WrappedLabel("", self)
        self.estimate.setToolTip("Estimated size and time; it takes longer while you move the picture.")
        theme.set_role(self.estimate, "dim")
        self.picture_hint = WrappedLabel("Frames show the picture, not the layer on the canvas.", self)
        self.picture_hint.setVisible(self._session.tap is not None)
        theme.set_role(self.picture_hint, "dim")
        self.hint = WrappedLabel("", self)
        self.hint.setMinimumHeight(self.fontMetrics().height() * 2)
        self.hint.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.hint.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        theme.set_role(self.hint, "dim")
        self.export = QPushButton("Export", self)
        self.export.setDefault(True)
        self.export.setToolTip("Start the export in the background; you can keep exploring.")
        self.export.clicked.connect(self._ask)
        theme.set_role(self.export, "main")
        self.cancel = QPushButton("Cancel", self)
        self.cancel.setAutoDefault(False)
        self.cancel.clicked.connect(self.reject)

    def _lay_out(self) -> None:
        title = QLabel("Path of the last export" if self.path.has_last else "Path", self)
        title.setFont(fonts.strong())
        theme.set_role(title, "strong")
        self.path_side = QWidget(self)
        left = QVBoxLayout(self.path_side)
        left.setContentsMargins(0, 0, theme.px(24), 0)
        left.setSpacing(theme.px(8))
        left.addWidget(title)
        left.addWidget(self.source, 0, Qt.AlignmentFlag.AlignLeft)
        title.setVisible(not self._is_timeline)
        left.addWidget(self.path, 1)
        left.addWidget(self.timeline, 1)

        form = QFormLayout()
        form.setHorizontalSpacing(theme.px(12))
        form.setVerticalSpacing(theme.px(8))
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        self.files.add_rows(form)
        self.interpolation.add_rows(form)
        self.place.add_rows(form)
        self.names.add_rows(form)
        told = QVBoxLayout()
        told.setSpacing(0)
        told.addWidget(self.length)
        told.addWidget(self.estimate)
        buttons = QHBoxLayout()
        buttons.setSpacing(theme.px(8))
        buttons.addLayout(told, 1)
        buttons.addWidget(self.cancel)
        buttons.addWidget(self.export)
        choices = QWidget(self)
        right = QVBoxLayout(choices)
        right.setContentsMargins(0, 0, 0, 0)
        right.setSpacing(theme.px(8))
        heading = QLabel("Files", self)
        heading.setFont(fonts.strong())
        theme.set_role(heading, "strong")
        right.addWidget(heading)
        right.addLayout(form)
        right.addSpacing(theme.px(4))
        right.addWidget(self.ends, 0, Qt.AlignmentFlag.AlignLeft)
        right.addWidget(self.picture_hint)
        right.addStretch(1)
        scrolled = ColumnScroll(choices, self)  # on a low screen the form scrolls and the buttons stay visible
        files_side = QVBoxLayout()
        files_side.setSpacing(theme.px(8))
        files_side.addWidget(scrolled, 1)
        files_side.addWidget(
            self.hint
        )  # visible on every screen, like the estimate: it gives the reason why a button is disabled
        files_side.addLayout(buttons)
        sides = QHBoxLayout()
        sides.setSpacing(0)
        sides.addWidget(self.path_side, 6)
        sides.addLayout(files_side, 6)
        whole = QVBoxLayout(self)
        edge = theme.px(16)
        whole.setContentsMargins(edge, edge, edge, edge)
        whole.setSpacing(theme.px(16))
        whole.addWidget(self.presets)
        whole.addLayout(sides, 1)
        self.resize(theme.px(900), theme.px(650))
        parts: tuple[QWidget | QLayout, ...] = (self.presets, self.path_side, form, self.cancel, self.export)
        chain(parts)

    # -- behaviour -------------------------------------------------------------------------------------------------

    @Slot()
    def jobs_changed(self) -> None:
        """Look again which names are free: exports were added, or ended."""
        self._changed()

    @Slot()
    def sounds_changed(self) -> None:
        """Look again which sounds were read: those that move the picture may be there now."""
        self.timeline.take_envelopes(self._envelopes_of(self._session))
        self._changed()

    @property
    def wanted(self) -> SequenceSettings:
        """The settings as entered in the dialog."""
        return export_settings(
            [self.path.current_key()] if self._is_still else self.path.keys.keys,
            self._session,
            kind="w-linear" if self._is_still else self.interpolation.path_kind,
            frames_per_step=self.interpolation.frames.value(),
            loop=self.interpolation.loops,
            folder=self.names.folder.path,
            name=self.names.stem,
            z_dim=self._facts.z_dim,
            overwrite=self.names.overwrite.isChecked(),
            form=self.files.picture_format,
            size=None if self.files.objection else self.files.wanted_size,
            video=self.files.video_format,
            piece=self._piece() if self._takes_timeline else None,
            sheet=self.files.sheet,
            file_names=(self.names.stem,) if self._is_still else (),
        )

    def _piece(self) -> Piece:
        return self.timeline.piece(self.files.video_format, self.timeline.pictures.value() if self._is_sheet else None)

    @property
    def _takes_timeline(self) -> bool:
        """Whether the timeline is exported: not a path or a still."""
        return self._is_timeline and not self._is_still

    @property
    def picture_path(self) -> Path:
        """Path of a still picture."""
        return self.names.folder.path / f"{self.names.stem}{self.files.picture_format.ending}"

    def _keys_changed(self) -> None:
        self._show_ends()
        self.interpolation.enable_kinds(self.path.keys.keys)
        self._changed()

    def _interpolation_changed(self) -> None:
        self._show_ends()
        self._changed()

    def _changed(self) -> None:
        self.names.offer(self.files.picture_format, self._single_ending)
        wanted = self.wanted
        reason = self.files.objection or (self._still_objection() if self._is_still else objection(wanted))
        reason = reason or self.place.objection
        if not reason and self._takes_timeline:
            reason = self.timeline.objection
        if not reason and self.names.folder.is_empty:
            reason = "Choose a folder for the files."
        if not reason and not self._is_still:
            reason = self.names.objection(wanted)
        has_frames = self.path.keys.count() > 1 or self._takes_timeline
        frames = 1 if self._is_still else wanted.frame_count if has_frames else 0
        piece = wanted.piece
        rate = piece.fps if piece is not None else _PREVIEW_FPS if wanted.video is None else wanted.video.fps
        if self._is_still:
            self.length.setText("1 picture")
        elif wanted.sheet is not None:
            self.length.setText(sheet_text(frames, wanted.sheet))
        else:
            self.length.setText(length_text(frames, rate))
        if self._takes_timeline and not reason:
            plan = plan_sequence(wanted)
            self.ends.show_frames(plan.request(0), plan.request(len(plan) - 1))
        nbytes = self._nbytes(wanted, frames)
        self.estimate.setText(self._estimate(nbytes, frames))
        shortage = "" if reason else shortage_text(wanted.folder, nbytes)
        self.hint.setText(reason or " ".join(filter(None, (self._files_text(wanted), shortage))))
        theme.set_role(self.hint, "warn" if shortage or (reason and (self._is_still or has_frames)) else "dim")
        self.export.setEnabled(not reason)

    @property
    def _is_still(self) -> bool:
        return self._preset == "still"

    @property
    def _is_sheet(self) -> bool:
        return self._preset == "sheet"

    @property
    def _single_ending(self) -> str | None:
        """Ending of the one file; None for numbered frames."""
        video = self.files.video_format
        if video is not None:
            return video.file_ending
        return self.files.picture_format.ending if self._is_still or self._is_sheet else None

    def _still_objection(self) -> str:
        """Return why the still cannot be written; empty if it can."""
        try:
            check_name(self.names.stem)
        except ExportError as error:
            return error.sentence
        if self.picture_path.exists() and not self.names.overwrite.isChecked():
            return f"There is a {self.picture_path.name} in this folder; choose another name, or replace it."
        if self._session.tap is not None and self.place.place.where != "here":
            return "The canvas shows a layer, which only this device renders; choose it, or show the picture."
        return ""

    def _files_text(self, wanted: SequenceSettings) -> str:
        """Return a description of the files to write."""
        texts = [self._names_text(wanted)]
        sounds = () if wanted.piece is None else wanted.piece.session.timeline.sounds
        if wanted.sheet is None and not all(sound.is_muted for sound in sounds):
            carries = wanted.video is not None and wanted.video.carries_sound
            texts.append("The sound is in the file." if carries else "The sound is left out.")
        if self.files.makes_white:
            texts.append("Transparent parts become white.")
        return " ".join(texts)

    def _names_text(self, wanted: SequenceSettings) -> str:
        if self._is_still:
            return f"{self.picture_path.name}, with its recipe inside."
        if wanted.sheet is not None and wanted.single_path is not None:
            return f"{wanted.single_path.name}, with the recipe of each picture inside; open it to choose one."
        if wanted.single_path is not None:
            return f"{wanted.single_path.name}, beside {wanted.name}.manifest.json."
        return f"{wanted.frame_path(0).name} and on, beside {wanted.name}.manifest.json."

    def _nbytes(self, wanted: SequenceSettings, frames: int) -> float:
        """Return the estimated size of all files."""
        size, has_alpha = self.files.shown_size, self._facts.img_channels == 4
        if wanted.video is not None:
            return video_nbytes(wanted.video, size, frames, has_alpha=has_alpha)
        if wanted.sheet is not None:
            return picture_nbytes(wanted.form, wanted.size or wanted.sheet.size_of(frames, size))
        return frames * picture_nbytes(wanted.form, size, has_alpha=has_alpha)

    def _estimate(self, nbytes: float, frames: int) -> str:
        """Return the estimated size and time: "about 1.2 MB · about 35 s"."""
        texts = [f"about {nbytes_text(nbytes)}"] if frames else []
        if self._frame_ms is not None and frames and self.place.place.where == "here":
            texts.append(f"about {time_text(frames * self._frame_ms / 1e3)}")
        return " · ".join(texts)

    def _choose_preset(self, preset: str) -> None:
        self._preset = cast("PresetName", preset)
        self.presets.show_choice(preset)
        self.files.follow_timeline(self._session.timeline.fps if self._is_timeline else None)
        self.files.show_preset(self._preset)
        self.place.show_still(self._is_still)
        self.path_side.setVisible(not self._is_still)
        has_path = not (self._is_still or self._takes_timeline)
        self.interpolation.show_preset(is_sheet=self._is_sheet, has_path=has_path)
        self.source.show_choice("timeline" if self._is_timeline else "path")
        self.path.setVisible(not self._takes_timeline)
        self.timeline.setVisible(self._takes_timeline)
        self.timeline.show_pictures(self._is_sheet)
        self._show_ends()
        self._changed()

    def _show_ends(self) -> None:
        """Show thumbnails of the first and the last frame; a still has one."""
        if self._takes_timeline:
            self.ends.show_nothing()  # `_changed` shows those of its start and end, if all that moves it is known
            return
        keys = self.path.keys
        items = [keys.item(row) for row in (0, keys.count() - 1)]
        first, last = (QPixmap() if item is None else item.icon().pixmap(self.ends.first.size()) for item in items)
        is_path = not self._is_still and keys.count() > 1
        self.ends.show_pictures(first, last if is_path else None, is_loop=self.interpolation.loops)

    @Slot(str)
    def _warn(self, sentence: str) -> None:
        self.hint.setText(sentence)
        theme.set_role(self.hint, "warn")

    def _restore_choices(self) -> None:
        pictures = self._settings.choice("export.sheet_pictures")
        if pictures.isdecimal() and len(pictures) < 6:
            self.timeline.pictures.setValue(int(pictures))
        self.path.offer()
        self.interpolation.fit(self.path.keys.keys)
        preset = self._settings.choice("export.preset")
        self._choose_preset(preset if preset in PRESETS else "sequence")
        self.presets.segments[self._preset].setFocus()

    def _ask(self) -> None:
        self._changed()  # another window, or another program, may have written there since
        if not self.export.isEnabled():
            return
        wanted = self.wanted
        self.files.remember()
        self._settings.choose("export.preset", self._preset)
        self.interpolation.remember()
        if self._is_sheet and self._takes_timeline:
            self._settings.choose("export.sheet_pictures", str(self.timeline.pictures.value()))
        self.names.remember()
        if not self._is_still:
            self.place.remember()
        if self._is_still and self.place.place.where == "here":
            self.picture_requested.emit(self.picture_path, wanted.form, wanted.size)
        else:
            self.export_requested.emit(wanted, self.place.place)
        self.accept()

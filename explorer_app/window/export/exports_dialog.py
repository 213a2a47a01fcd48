"""The exports: what runs, waits and is done, with progress and what can be done about each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

from explorer_app.controller import ExportProgress, ExportQueueController
from explorer_app.exporting.export_list import ExportRecord, JobState
from explorer_app.exporting.progress import time_text
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.settings import Settings
from explorer_app.window.controls.elided_label import ElidedLabel
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.controls.screen_fit import fit_to_screen
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.export.destination_dialog import DestinationDialog
from explorer_app.window.export.place_choices import PriorityBox
from explorer_app.window.export.worker_log_dialog import WorkerLogDialog
from explorer_app.window.look import fonts, theme
from explorer_app.window.look.icons import icon
from explorer_app.window.messages.file_actions import reveal

_REFRESH_MS = 2000
"""Interval at which the list of other windows is read while the dialog is open."""

_MOST_WORKERS = 8
_MOST_TOLD = 40
"""Workers of a farm that are shown, and that a tooltip names."""

_LEAST_LINE_PX = 120

_ON_CLIPBOARD = "No file manager answered, so the path is on the clipboard instead."

_STATES: dict[JobState, tuple[str, str]] = {
    "waiting": ("Waiting", "dim"),
    "running": ("Running", "accent"),
    "paused": ("Paused", "dim"),
    "failed": ("Failed", "bad"),
    "cancelled": ("Stopped", "dim"),
    "done": ("Done", "good"),
}
"""Word and label role of a state."""


class ExportRow(QFrame):
    """One export: name, state, progress and buttons.

    Signals
    -------
    pause_requested, resume_requested, change_requested, cancel_requested, remove_requested, model_requested,
    logs_requested()
        The button was pressed.
    move_requested(int)
        -1 for up, 1 for down.
    priority_chosen(int)
        The priority on a farm.
    """

    pause_requested = Signal()
    resume_requested = Signal()
    change_requested = Signal()
    cancel_requested = Signal()
    remove_requested = Signal()
    model_requested = Signal()
    logs_requested = Signal()
    move_requested = Signal(int)
    priority_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._path = Path()
        self._lines: list[str] = []
        """What is told of the workers."""
        self.name = ElidedLabel("", self)
        self.name.setFont(fonts.strong())
        theme.set_role(self.name, "strong")
        self.state = QLabel(self)
        self.state.setFont(fonts.table())
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(theme.px(6))
        self.details = ElidedLabel("", self)
        self.details.setFont(fonts.table())
        theme.set_role(self.details, "dim")
        self.error = WrappedLabel("", self)
        self.error.setFont(fonts.table())
        self.error.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        theme.set_role(self.error, "dim")
        self.workers = QLabel(self)
        self.workers.setFont(fonts.table())
        self.workers.setTextFormat(Qt.TextFormat.PlainText)
        self.workers.setSizePolicy(
            QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred
        )  # its text follows its width
        self.workers.setAccessibleName("Workers of the farm")
        theme.set_role(self.workers, "dim")
        self.logs = QPushButton("Logs", self)
        self.logs.setToolTip("Show the workers' latest log lines.")
        self.logs.setAutoDefault(False)
        theme.set_role(self.logs, "flat")
        self.logs.clicked.connect(self.logs_requested)
        self.priority = PriorityBox(self, " priority")
        self.priority.activated.connect(lambda _: self.priority_chosen.emit(self.priority.priority))
        self.model = QPushButton("Open model", self)
        self.model.setAutoDefault(False)
        self.pause = self._button("pause", "Pause", "Stop after the frames in progress; resume at any time.")
        self.resume = self._button("resume", "Resume", "Continue; finished frames are not rendered again.")
        self.change = self._button(
            "rename", "Change", "Change the folder, or where it is rendered, and continue there."
        )
        self.up = self._button("chevron-up", "Up", "Move up: run before the export above.")
        self.down = self._button("chevron-down", "Down", "Move down: run after the export below.")
        self.folder = self._button("open", "Show in folder", "Show the files in the file manager.")
        self.cancel = self._button(
            "cancel", "Stop", "Stop the export; finished frames stay, and it can be resumed later."
        )
        self.remove = self._button("remove", "Remove", "Remove it from this list; its files stay.")
        self.pause.clicked.connect(self.pause_requested)
        self.resume.clicked.connect(self.resume_requested)
        self.change.clicked.connect(self.change_requested)
        self.cancel.clicked.connect(self.cancel_requested)
        self.remove.clicked.connect(self.remove_requested)
        self.model.clicked.connect(self.model_requested)
        self.up.clicked.connect(lambda: self.move_requested.emit(-1))
        self.down.clicked.connect(lambda: self.move_requested.emit(1))
        self.folder.clicked.connect(self._reveal)
        head = QHBoxLayout()
        head.setSpacing(theme.px(8))
        head.addWidget(self.name, 1)
        head.addWidget(self.priority)
        head.addWidget(self.state)
        texts = QVBoxLayout()
        texts.setSpacing(theme.px(4))
        texts.addLayout(head)
        texts.addWidget(self.details)
        texts.addWidget(self.error)
        texts.addWidget(self.bar)
        kept = self.bar.sizePolicy()
        kept.setRetainSizeWhenHidden(True)  # the rows below stay where they are under the pointer
        self.bar.setSizePolicy(kept)
        told = QHBoxLayout()
        told.setSpacing(theme.px(8))
        told.addWidget(self.workers, 1)
        told.addWidget(self.logs, 0, Qt.AlignmentFlag.AlignTop)
        texts.addLayout(told)
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.px(4), theme.px(8), theme.px(4), theme.px(8))
        row.setSpacing(theme.px(4))
        row.addLayout(texts, 1)
        row.addSpacing(theme.px(12))
        row.addWidget(self.model)
        slots = (
            (self.up,),
            (self.down, self.change),
            (self.pause, self.resume),
            (self.cancel, self.remove),
            (self.folder,),
        )
        places = QGridLayout()
        places.setSpacing(0)  # of columns without a visible button, a grid leaves the spacing out
        for column, buttons in enumerate(slots):  # buttons of one slot are never shown together
            places.setColumnMinimumWidth(column, self.folder.sizeHint().width() + theme.px(4))
            for button in buttons:
                places.addWidget(button, 0, column)
        row.addLayout(places)

    def show_job(self, job: ExportRecord, progress: ExportProgress | None, *, is_own: bool, waits_for: str) -> None:
        """Show a job.

        Parameters
        ----------
        progress
            Progress of the job if it runs in this window; None otherwise.
        is_own
            Whether this window may change it.
        waits_for
            Name of the model that a waiting job needs to be opened; empty if it only waits for its turn.
        """
        self._path = Path(job.folder) / job.file
        self.name.setText(job.name)
        self.name.setToolTip(plain_tip(str(self._path)))
        is_stopping = progress is not None and progress.is_stopping
        word, role = _STATES[job.state]
        is_joining = progress is not None and progress.is_joining
        self.state.setText("Stopping" if is_stopping else "Joining" if is_joining else word)
        theme.set_role(self.state, role)
        done = job.done if progress is None else progress.done
        self.bar.setRange(0, max(1, job.total))
        self.bar.setValue(done)
        self.bar.setAccessibleName(f"Progress of {job.name}")
        self.bar.setVisible(job.state in ("running", "paused"))
        details = _details(job, done, progress, is_own=is_own, waits_for=waits_for)
        self.details.setText(details)
        self.details.setToolTip(plain_tip(details))
        self.details.setVisible(not job.error)
        self.error.setText(job.error)
        self.error.setVisible(bool(job.error))
        self._show_workers(() if progress is None else progress.workers)
        self.priority.setVisible(is_own and job.where == "farm" and job.is_unfinished)
        if not self.priority.view().isVisible():
            self.priority.show_priority(job.priority)
        self.model.setVisible(is_own and bool(waits_for))
        self.model.setToolTip(plain_tip(f"Open the model {waits_for}, so that this export can start."))
        self.pause.setVisible(is_own and job.state in ("running", "waiting"))
        self.pause.setEnabled(not is_stopping)
        can_resume = is_own and job.state in ("paused", "failed", "cancelled")
        self.resume.setVisible(can_resume)
        self.change.setVisible(can_resume)
        is_failed = job.state == "failed"
        self.resume.setAccessibleName("Try again" if is_failed else "Resume")
        self.up.setVisible(is_own and job.state == "waiting")
        self.down.setVisible(is_own and job.state == "waiting")
        self.cancel.setVisible(is_own and job.is_unfinished)
        self.cancel.setEnabled(not is_stopping)
        self.remove.setVisible(is_own and not job.is_unfinished)

    def _show_workers(self, workers: Sequence[str]) -> None:
        """Show a line for each of the first workers of a farm, and all of them in the tooltip."""
        self._lines = list(workers[:_MOST_WORKERS])
        if len(workers) > _MOST_WORKERS:
            self._lines.append(f"and {len(workers) - _MOST_WORKERS:,} more")
        self._elide_workers()
        self.workers.setToolTip(plain_tip("\n".join(workers[:_MOST_TOLD])))
        self.workers.setVisible(bool(workers))
        self.logs.setVisible(bool(workers))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Fit the lines of the workers to the new width."""
        super().resizeEvent(event)
        self._elide_workers()

    def _elide_workers(self) -> None:
        width = max(theme.px(_LEAST_LINE_PX), self.details.width() - self.logs.sizeHint().width() - theme.px(8))
        cut, metrics = Qt.TextElideMode.ElideRight, self.workers.fontMetrics()
        text = "\n".join(metrics.elidedText(line, cut, width) for line in self._lines)
        if text != self.workers.text():
            self.workers.setText(text)

    def _button(self, glyph: str, name: str, tip: str) -> QToolButton:
        button = QToolButton(self)
        button.setIcon(icon(glyph, "dim"))
        button.setAccessibleName(name)
        button.setToolTip(tip)
        theme.set_role(button, "flat")
        return button

    def _reveal(self) -> None:
        if not reveal(self._path if self._path.exists() else self._path.parent):
            QGuiApplication.clipboard().setText(str(self._path))
            self.folder.setToolTip(_ON_CLIPBOARD)
            self.details.setText(_ON_CLIPBOARD)
            self.details.setVisible(True)


class ExportsDialog(QDialog):
    """A non-modal list of all exports, including other windows' exports.

    Parameters
    ----------
    export
        Has the list, and receives the commands.
    settings
        Has the farm and the keys that were chosen last.
    gpu_count
        GPUs of this machine; None if it is not known yet.
    """

    def __init__(
        self,
        export: ExportQueueController,
        settings: Settings,
        parent: QWidget | None = None,
        *,
        gpu_count: int | None = None,
    ) -> None:
        super().__init__(parent)
        self._settings = settings
        self._gpu_count = gpu_count
        self.setWindowTitle("Exports")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._export = export
        self._rows: dict[str, ExportRow] = {}
        self.empty = QLabel("No exports yet. File > Export makes pictures, sequences and videos.", self)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        theme.set_role(self.empty, "dim")
        self._inside = QWidget(self)
        self._column = QVBoxLayout(self._inside)
        self._column.setContentsMargins(0, 0, theme.px(8), 0)
        self._column.setSpacing(0)
        self._column.addWidget(self.empty, 1)
        self._column.addStretch(1)
        scrolled = self.scrolled = QScrollArea(self)
        scrolled.setWidgetResizable(True)
        scrolled.setFrameShape(QFrame.Shape.NoFrame)
        scrolled.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # its rows have buttons, to which Tab scrolls
        scrolled.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scrolled.setWidget(self._inside)
        self.clear = QPushButton("Clear finished", self)
        self.clear.setToolTip("Remove finished, failed and stopped exports from this list; their files stay.")
        self.clear.setAutoDefault(False)
        self.clear.clicked.connect(export.clear)
        self.close_button = QPushButton("Close", self)
        self.close_button.setDefault(True)
        self.close_button.clicked.connect(self.accept)
        buttons = QHBoxLayout()
        buttons.addWidget(self.clear)
        buttons.addStretch(1)
        buttons.addWidget(self.close_button)
        whole = QVBoxLayout(self)
        edge = theme.px(16)
        whole.setContentsMargins(edge, edge, edge, edge)
        whole.setSpacing(theme.px(12))
        whole.addWidget(scrolled, 1)
        whole.addLayout(buttons)
        self.resize(theme.px(680), theme.px(420))
        export.jobs_changed.connect(self._show_jobs)
        export.changed.connect(self._show_jobs)
        self._timer = QTimer(self, interval=_REFRESH_MS)
        self._timer.timeout.connect(export.refresh)
        self._timer.start()
        export.refresh()
        self._show_jobs()

    @property
    def rows(self) -> list[ExportRow]:
        """The rows, from top to bottom."""
        return [self._rows[job.job_id] for job in self._export.jobs]

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Scroll to what runs or waits, otherwise to the newest, once the rows have their places."""
        super().showEvent(event)
        QTimer.singleShot(0, self, self._show_newest)

    @Slot()
    def _show_newest(self) -> None:
        jobs = self._export.jobs
        job = next((job for job in jobs if job.is_unfinished), jobs[-1] if jobs else None)
        if job is not None:
            self.scrolled.ensureWidgetVisible(self._rows[job.job_id])

    @Slot()
    def _show_jobs(self) -> None:
        jobs = self._export.jobs
        ids = [job.job_id for job in jobs]
        for job_id in [job_id for job_id in self._rows if job_id not in ids]:
            row = self._rows.pop(job_id)
            row.hide()
            row.deleteLater()
        own = [job for job in jobs if self._export.is_own(job)]
        waiting = [job.job_id for job in own if job.state == "waiting"]
        for place, job in enumerate(jobs):
            row = self._rows.get(job.job_id) or self._add_row(job.job_id)
            if self._column.indexOf(row) != place + 1:
                self._column.insertWidget(place + 1, row)
                row.show()
            is_current = job.job_id == self._export.current
            row.show_job(
                job,
                self._export.progress if is_current else None,
                is_own=job in own,
                waits_for=self._export.waits_for(job),
            )
            row.up.setEnabled(job.job_id in waiting[1:])
            row.down.setEnabled(job.job_id in waiting[:-1])
        self.empty.setVisible(not jobs)
        self.clear.setEnabled(any(not job.is_unfinished for job in own))

    @Slot()
    def _show_logs(self) -> None:
        progress = self._export.progress
        if progress is not None and progress.worker_names:
            dialog = WorkerLogDialog(self._export, progress.worker_names, self)
            dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            fit_to_screen(dialog)
            dialog.show()

    def _change(self, job_id: str) -> None:
        """Ask where an export goes, and continue it there."""
        export = self._export
        record = next((job for job in export.jobs if job.job_id == job_id), None)
        if record is None:
            return

        def ask(settings: SequenceSettings) -> None:
            if not isValid(self):  # closed while the settings were read
                return
            others = [job for job in export.jobs if job.is_unfinished and job.job_id != job_id]
            dialog = DestinationDialog(settings, record.place, self._settings, others, self, gpu_count=self._gpu_count)
            dialog.chosen.connect(lambda settings, place: export.redirect(job_id, settings, place))
            fit_to_screen(dialog)
            dialog.open()

        export.with_settings(job_id, ask)

    def _add_row(self, job_id: str) -> ExportRow:
        row = ExportRow(self._inside)
        export = self._export
        row.pause_requested.connect(lambda: export.pause(job_id))
        row.resume_requested.connect(lambda: export.resume_job(job_id))
        row.change_requested.connect(lambda: self._change(job_id))
        row.cancel_requested.connect(lambda: export.cancel(job_id))
        row.remove_requested.connect(lambda: export.remove(job_id))
        row.logs_requested.connect(self._show_logs)
        row.model_requested.connect(lambda: export.open_model_of(job_id))
        row.move_requested.connect(lambda step: export.move(job_id, step))
        row.priority_chosen.connect(lambda priority: export.set_priority(job_id, priority))
        self._rows[job_id] = row
        return row


def _details(job: ExportRecord, done: int, progress: ExportProgress | None, *, is_own: bool, waits_for: str) -> str:
    """Return the second line of a job: "PNG · 37 of 96 frames · 12.3 fps · 35 s left"."""
    noun = "frame" if job.total == 1 else "frames"
    parts = [job.kind, f"{job.total:,} {noun}" if job.state in ("waiting", "done") else ""]
    if job.state not in ("waiting", "done"):
        parts[1] = f"{done:,} of {job.total:,} {noun}"
    if progress is not None and progress.per_second is not None and not progress.activity:
        parts.append(f"{_rate(progress.per_second)} fps")
    if progress is not None and progress.picture_rate is not None:
        parts.append(f"slowed by the moving picture ({_rate(progress.picture_rate)} fps)")
    if progress is not None and progress.seconds_left is not None and done < job.total:
        parts.append(f"{time_text(progress.seconds_left)} left")
    if progress is not None and progress.activity:
        parts.append(progress.activity)
    elif job.where != "here" and job.state != "done":
        parts.append(f"on the farm at {job.address}" if job.where == "farm" else "on all GPUs")
    if not is_own:
        parts.append("in another window")
    elif waits_for:
        parts.append(f"waits for the model {waits_for}")
    if progress is None or not progress.activity:
        parts.append(job.folder)  # a farm's progress needs the room; the tooltip of the name has the path
    return " · ".join(parts)


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 20 else f"{per_second:.1f}"

"""A notification of the desktop at the end of a long export, while another program has the keyboard."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import Protocol

from PySide6.QtCore import QObject, QProcess, Qt, QTimer, Signal, SignalInstance, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QSystemTrayIcon, QWidget

from explorer_app.controller import ExportQueueController
from explorer_app.exporting.export_list import ExportRecord, Jobs
from explorer_app.settings import Settings

PREFERENCE = "export.notify"
"""The choice in the settings: "no" for none; anything else, the default too, shows them."""

LONG_S = 10.0
"""Who waits for less is still looking."""

_NAME = "Latent Loom"
_SHOWN_MS = 10_000


class Notifier(Protocol):
    """Shows a notification of the desktop."""

    @property
    def clicked(self) -> SignalInstance:
        """The user clicked it."""
        ...

    def show(self, title: str, text: str) -> None:
        """Show a notification; where the system has none, nothing happens."""
        ...


class ExportNotices(QObject):
    """Notifies the user at the end of a run of exports.

    The task bar calls for attention if the user is elsewhere; so does a notification after a run that took long, unless
    the user stopped it.

    Parameters
    ----------
    settings
        Has the preference.
    window
        The main window, which a click on the notification brings to the front.
    notifier
        Shows the notification; None for the desktop's.
    is_active
        Whether the user is at this program.
    clock
        Seconds.
    """

    def __init__(
        self,
        export: ExportQueueController,
        settings: Settings,
        window: QWidget,
        notifier: Notifier | None = None,
        is_active: Callable[[], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(window)
        self._export = export
        self._settings = settings
        self._window = window
        self._notifier = notifier or DesktopNotifier(window)
        self._is_active = is_active or is_program_active
        self._clock = clock
        self._begun: float | None = None
        export.changed.connect(self._note_begin)
        export.finished.connect(self._note_end)
        self._notifier.clicked.connect(self._come)

    @Slot()
    def _note_begin(self) -> None:
        if self._begun is None and self._export.progress is not None:
            self._begun = self._clock()

    @Slot()
    def _note_end(self) -> None:
        QApplication.alert(self._window)
        begun, self._begun = self._begun, None
        told = end_of(self._export.last_run)
        is_long = begun is not None and self._clock() - begun >= LONG_S
        if told is not None and is_long and not self._is_active() and self._settings.choice(PREFERENCE) != "no":
            self._notifier.show(*told)

    @Slot()
    def _come(self) -> None:
        self._window.raise_()
        self._window.activateWindow()


def end_of(run: Jobs) -> tuple[str, str] | None:
    """Return title and text of how exports ended; None if the user stopped all that did not run to their end."""
    done = [job for job in run if job.state == "done"]
    failed = [job for job in run if job.state == "failed"]
    if not done and not failed:
        return None
    if len(done) + len(failed) == 1:
        (job,) = (*done, *failed)
        return (f"Export “{job.name}” failed", job.error) if failed else (f"Export “{job.name}” is done", _made(job))
    title = (
        f"{len(done):,} of {len(done) + len(failed):,} exports are done" if failed else f"{len(done)} exports are done"
    )
    return title, failed[-1].error if failed else ", ".join(job.name for job in done)


def _made(job: ExportRecord) -> str:
    what = "1 frame" if job.total == 1 else f"{job.total:,} frames"
    return f"{what} · {job.kind} · {job.folder}"


def is_program_active() -> bool:
    """Return whether a window of this program has the keyboard."""
    return QGuiApplication.applicationState() == Qt.ApplicationState.ApplicationActive


class DesktopNotifier(QObject):
    """Implements `Notifier`: on Linux by a program that sends to the desktop's notification server, else by Qt.

    Qt sends notifications only beside an icon in the tray, which many desktops of Linux do not have, and PySide's D-Bus
    cannot send the unsigned number that a notification begins with.
    """

    clicked = Signal()

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._tray: QSystemTrayIcon | None = None
        self._hiding = QTimer(self, interval=_SHOWN_MS, singleShot=True)
        self._hiding.timeout.connect(self._hide)

    def show(self, title: str, text: str) -> None:
        """Show a notification."""
        sender = sender_of(title, text) if sys.platform == "linux" else None
        if sender is not None and _started(*sender):
            return
        if QSystemTrayIcon.isSystemTrayAvailable() and QSystemTrayIcon.supportsMessages():
            if self._tray is None:
                self._tray = QSystemTrayIcon(self._window.windowIcon(), self)
                self._tray.setToolTip(_NAME)
                self._tray.messageClicked.connect(self.clicked)
            self._tray.show()
            self._tray.showMessage(title, text, self._window.windowIcon(), _SHOWN_MS)
            self._hiding.start()

    @Slot()
    def _hide(self) -> None:
        if self._tray is not None:
            self._tray.hide()


def _started(program: str, words: list[str]) -> bool:
    """Start a program without waiting for it or reading its output."""
    process = QProcess()
    process.setProgram(program)
    process.setArguments(words)
    process.setStandardOutputFile(QProcess.nullDevice())
    process.setStandardErrorFile(QProcess.nullDevice())
    started: object = process.startDetached()  # annotated as (bool, int), which only the static one returns
    return started is True


def sender_of(title: str, text: str) -> tuple[str, list[str]] | None:
    """Return a program that sends a notification to the desktop, and its arguments; None if there is none."""
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")  # servers read the body as markup
    if program := shutil.which("notify-send"):
        return program, [f"--app-name={_NAME}", f"--expire-time={_SHOWN_MS}", "--", title, plain]
    if program := shutil.which("gdbus"):
        server = "org.freedesktop.Notifications"
        call = ["call", "--session", "--dest", server, "--object-path", "/org/freedesktop/Notifications"]
        texts = _quoted(title), _quoted(plain)
        words = [_quoted(_NAME), "uint32 0", _quoted(""), *texts, "@as []", "@a{sv} {}", str(_SHOWN_MS)]
        return program, [*call, "--method", f"{server}.Notify", *words]
    return None


def _quoted(text: str) -> str:
    """Return a string in the text format of GVariant."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'

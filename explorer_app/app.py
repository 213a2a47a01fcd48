"""Builds the parts, connects them, closes them in reverse.

The story of a start::

    ProgramLog           in the command line: uncaught exceptions, stderr, the log file (logs.py)
    MessageLog           so that all that follows can be reported
    Settings             read field by field; cannot fail
    Preparation          a thread loads torch's libraries or a GPU's driver, beside the imports of the window
    RenderThread         made, not running; nothing heavy is imported
    Controller           joins them
    MainWindow           on the screen, at its last place, with a notice that the model is being read
    Collector            garbage is collected on the window's thread from here on
    Controller.start     the last session; a thread reads the model's file; the rendering thread imports what it
                         needs, makes the renderer, and the first picture comes

and of an end: the window closes, the controller waits for threads and writes what is to be kept, the message bridge is
removed. Every `close` may be called twice.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import platformdirs

import gpu_backend
from explorer_app import logs, start_times
from explorer_app.assets import BUNDLED_SEED, bundled_model
from explorer_app.collector import Collector
from explorer_app.exporting.formats.picture_format import PICTURE_ENDINGS
from explorer_app.interrupts import STOP_SIGNALS, ImmediateExit, handle_stops, restore, stop_status
from explorer_app.messages import MessageBridge, MessageLog, describe, write_to_log
from explorer_app.qt_import import import_qt
from explorer_app.settings import Settings
from explorer_app.version import __version__
from gpu_backend import PHOTO_SUFFIXES, LoomError, dataclass, printable, printable_lines, without_collections

if TYPE_CHECKING:
    from PySide6.QtCore import QMessageLogContext, QtMsgType
    from PySide6.QtWidgets import QApplication, QMessageBox

    from explorer_app.rendering.backend import BackendLike
    from explorer_app.rendering.device_choice import DeviceChoice
    from explorer_app.rendering.model_loader import ReadModel
    from explorer_app.session.direction_files import DirectionFiles
    from explorer_app.session.model_hashes import ModelHashes
    from gpu_backend import Frame, Model

_LATEST_BEGIN_MS = 400
"""A window that is not painted, since it is minimised or covered, begins its work at this time."""
_SAVE_EVERY_MS = 10_000
"""Time between two looks at whether preferences are to be written."""

_DOCUMENTS = (*PICTURE_ENDINGS, *PHOTO_SUFFIXES, ".loom", ".npz", ".npy", ".manifest.json")

_UNSEEN_PLATFORMS = ("offscreen", "minimal", "vnc")
"""Qt platforms without a display: a dialog would block forever."""

EXIT_BUG = 1
EXIT_NO_WINDOW = 2

_log = logging.getLogger(__name__)


class WindowError(LoomError):
    """The window cannot open on this machine."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where a user's files are: preferences, and the last session. None keeps nothing."""

    settings: Path | None
    state: Path | None

    @staticmethod
    def of_this_system() -> Places:
        """Return the places that this system prescribes; no folder is created."""
        return Places(Settings.default_path(), platformdirs.user_data_path("latentloom", appauthor=False))


def run_window(file: Path | None = None, *, device: str = "", precision: str = "", time_start: bool = False) -> int:
    """Open the window, stay until it is closed, and return the exit status.

    Parameters
    ----------
    file
        A model, a session or a picture to open.
    device, precision
        On which device to render this time, and how exactly, as for `gpu_backend.Renderer`; empty for what the
        preferences say.
    time_start
        Print when each step of the start was reached, then close the window.

    Raises
    ------
    WindowError
        If a library of the system is missing; the sentence names it.

    Returns
    -------
    0; 130 after a Ctrl-C, 143 after SIGTERM; EXIT_BUG if the window could not be built or an exception was not caught.
    """
    # A KeyboardInterrupt that is raised while Qt's bindings are imported aborts the process; nothing has begun yet.
    with without_collections(), ImmediateExit():
        _import_qt()
        return _open_window(file, device=device, precision=precision, time_start=time_start)


def _import_qt() -> None:
    try:
        import_qt()
    except ImportError as error:
        raise WindowError(
            f"The window needs a library that this system lacks ({error}); "
            "on Linux packaging/linux/system-libs.sh installs it, and latentloom render needs none.",
            str(error),
        ) from error


def _open_window(file: Path | None, *, device: str, precision: str, time_start: bool) -> int:
    """Do what `run_window` says, once Qt is imported."""
    from PySide6.QtCore import Qt
    from PySide6.QtWidgets import QApplication

    messages = MessageLog()
    messages.subscribe(write_to_log)
    log = logs.current()
    if log is not None and (crash := log.take_crash()):
        messages.warning("Latent Loom crashed the last time; the details show where.", crash)
    qt_messages = QtMessageHandler(messages)
    qt_messages.install()
    qt = QApplication.instance()
    if not isinstance(qt, QApplication):
        qt = QApplication(sys.argv[:1])
    start_times.mark(start_times.APPLICATION)
    qt_messages.is_open = True
    interrupt = Interrupt(lambda number: qt.exit(stop_status(number)))
    app: App | None = None
    try:
        try:
            app = App(qt, messages, Places.of_this_system(), device=device, precision=precision)
            app.collector.hold()
            shown_first = app.controller.engine.preview.frame_changed
            shown_first.connect(app.collector.release, Qt.ConnectionType.SingleShotConnection)
            if time_start:
                app.window.canvas.painted.connect(partial(_print_start_times, qt))
            app.start(file)
        except Exception as error:
            _log.error("The window could not be opened.", exc_info=error)
            if qt.platformName() not in _UNSEEN_PLATFORMS:
                failed_start_box(error, messages).exec()
            return EXIT_BUG
        status = qt.exec()
        return status or (EXIT_BUG if log is not None and log.uncaught else 0)
    finally:
        interrupt.close()
        if app is not None:
            app.close()
        qt_messages.remove()


def failed_start_box(error: Exception, messages: MessageLog) -> QMessageBox:
    """Return the dialog that says why the window could not be opened, with a report as its details."""
    from PySide6.QtCore import Qt
    from PySide6.QtWidgets import QMessageBox

    sentence, details = describe(error)
    said = [f"{message.sentence}\n{message.details}".rstrip() for message in messages.messages]
    box = QMessageBox(QMessageBox.Icon.Critical, "Latent Loom", "Latent Loom cannot open its window.")
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setInformativeText(f"{printable(sentence)}\n\nThe log file has more: {logs.log_path()}")
    box.setDetailedText("\n\n".join([f"Latent Loom {__version__}", printable_lines(details), *said]))
    box.setStandardButtons(QMessageBox.StandardButton.Close)
    return box


def _print_start_times(qt: QApplication, frame: Frame) -> None:
    """Print the times of the start once the full picture is on the screen, and quit."""
    if not frame.is_draft:
        note = start_times.bytecode_note()
        sys.stdout.write("\n\n".join([start_times.table(), *([note] if note else [])]) + "\n")
        qt.quit()


class App:
    """The parts of the program, from the first to the last.

    Parameters
    ----------
    qt
        The Qt application.
    messages
        Receives all messages.
    places
        Where files are kept.
    device, precision
        On which device to render, and how exactly; empty for what the preferences say.
    read, backend, bundled
        How models are read and rendered, and which one is bundled; for tests.
    """

    def __init__(
        self,
        qt: QApplication,
        messages: MessageLog,
        places: Places,
        *,
        device: str = "",
        precision: str = "",
        read: ReadModel | None = None,
        backend: BackendLike | None = None,
        bundled: Path | None = None,
    ) -> None:
        from explorer_app.rendering.backend import Backend
        from explorer_app.rendering.likely_device import preferred_choice
        from explorer_app.rendering.preparation import Preparation

        self._is_closed = self._has_begun = False
        self.messages = messages
        self._bridge = MessageBridge(messages)
        self._bridge.install()
        backend = backend or Backend()
        self._preparation = Preparation(backend)
        try:
            self.settings = Settings(places.settings, messages)
            choice = preferred_choice(self.settings, device, precision)
            self._preload(choice)
            self._build(qt, places.state, choice, backend, read, bundled)
            self.collector = Collector()
        except BaseException:
            self._preparation.close()  # a process that exits while it loads a library crashes
            self._bridge.remove()
            raise

    def _preload(self, choice: DeviceChoice) -> None:
        """Begin to load what renders, beside the imports of the window."""
        from explorer_app.rendering.likely_device import expects_gpu, may_need_processor, may_render_on_gpu

        if may_need_processor(self.settings, choice):
            self._preparation.preload_processor()
        if may_render_on_gpu(self.settings, choice):
            self._preparation.preload_gpu(choice)
        self._expects_gpu = partial(expects_gpu, self.settings, choice)

    def _build(
        self,
        qt: QApplication,
        state: Path | None,
        choice: DeviceChoice,
        backend: BackendLike,
        read: ReadModel | None,
        bundled: Path | None,
    ) -> None:
        """Import, create and connect the controller and the window."""
        from PySide6.QtCore import QTimer

        from explorer_app.controller import Controller
        from explorer_app.controller.file_worker import FileWorker
        from explorer_app.rendering.model_loader import ModelLoader
        from explorer_app.rendering.render_thread import RenderThread
        from explorer_app.session.direction_files import DirectionFiles
        from explorer_app.session.model_hashes import ModelHashes
        from explorer_app.window.look import appearance, fonts
        from explorer_app.window.shell.main_window import MainWindow

        start_times.mark(start_times.IMPORTS)
        qt.setApplicationName("latentloom")
        qt.setApplicationDisplayName("Latent Loom")
        qt.setApplicationVersion(__version__)
        qt.setDesktopFileName("latentloom")
        fonts.use(self.settings.values.font)
        appearance.apply(qt, self.settings.values.theme)
        self._renders = RenderThread(backend, choice)
        bundled_seed = 0 if bundled else BUNDLED_SEED
        bundled = bundled or _bundled(self.messages)
        own = None if state is None else state / "directions"
        hashes = ModelHashes(None if state is None else state / "model-hashes.json")
        self.controller = Controller(
            self._renders,
            ModelLoader(partial(_read_with_own, DirectionFiles(own, bundled), read or partial(_read_model, hashes))),
            self.settings,
            self.messages,
            state_folder=state,
            bundled_model=bundled,
            bundled_seed=bundled_seed,
            choice=choice,
        )
        self.window = MainWindow(self.controller, self.settings, self.messages)
        self.window.canvas.painted.connect(self._mark_picture)
        self._saver = FileWorker(self.messages, parent=self.window)
        self.saving = QTimer(self.window)
        self.saving.setInterval(_SAVE_EVERY_MS)
        self.saving.timeout.connect(self._save_preferences)
        start_times.mark(start_times.BUILT)

    def start(self, file: Path | None = None) -> None:
        """Show the window, then begin with everything that takes time."""
        from PySide6.QtCore import QTimer

        self.collector.start()
        self.saving.start()
        self.controller.restore_last(*_model_and_document(file))
        begin = partial(self._begin_once, file)
        # After the first paint: work that begins then competes for Python's lock.
        self.window.canvas.painted_first.connect(lambda: QTimer.singleShot(0, self.window, begin))
        self.window.show_restored()
        QTimer.singleShot(_LATEST_BEGIN_MS, self.window, begin)
        start_times.mark(start_times.SHOWN)

    def close(self) -> None:
        """Close the parts in reverse. May be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        self.saving.stop()
        self._saver.close()
        self.window.close_now()
        self._preparation.close()
        self.controller.close()
        self.settings.save()
        self._bridge.remove()
        self.collector.close()

    def _save_preferences(self) -> None:
        """Write what changed, so that a crash loses little."""
        self.window.remember_layout()
        if self.settings.has_changed:
            self._saver.submit(self.settings.save)

    def _mark_picture(self, frame: Frame) -> None:
        start_times.mark(start_times.LIVE_PICTURE)
        if not frame.is_draft:
            start_times.mark(start_times.FULL_PICTURE)
            self.window.canvas.painted.disconnect(self._mark_picture)

    def _begin_once(self, file: Path | None) -> None:
        if not self._has_begun:
            self._has_begun = True
            start_times.mark(start_times.PAINTED)
            self._begin(file)

    def _begin(self, file: Path | None) -> None:
        if self._is_closed:
            return
        if not self._expects_gpu():
            self._preparation.import_now()
        self.controller.start(*_model_and_document(file))


def _model_and_document(file: Path | None) -> tuple[Path | None, Path | None]:
    """Return (model, None) or (None, document) for the file of the command line, by its suffix."""
    is_document = file is not None and file.name.lower().endswith(_DOCUMENTS)
    return (None, file) if is_document else (file, None)


class QtMessageHandler:
    """Passes Qt's messages to the message log, as notes: they are for reports, not for the user.

    Attributes
    ----------
    is_open
        Whether Qt has found its display. Before that, a fatal message ends the program with a sentence instead of a
        crash.
    """

    def __init__(self, messages: MessageLog) -> None:
        self._messages = messages
        self._former: Any = None
        self._is_installed = False
        self.is_open = False

    def install(self) -> None:
        """Take over from Qt's own handler."""
        from PySide6.QtCore import qInstallMessageHandler

        if not self._is_installed:
            self._is_installed = True
            self._former = qInstallMessageHandler(self._take)

    def remove(self) -> None:
        """Restore the former handler. May be called twice."""
        from PySide6.QtCore import qInstallMessageHandler

        if self._is_installed:
            self._is_installed = False
            qInstallMessageHandler(self._former)

    def _take(self, kind: QtMsgType, context: QMessageLogContext, text: str) -> None:
        from PySide6.QtCore import QtMsgType

        if kind == QtMsgType.QtFatalMsg:
            if not self.is_open:
                sys.stderr.write(
                    "latentloom: The window cannot open because Qt found no display or lacks a system library; "
                    "on Linux packaging/linux/system-libs.sh installs those, and latentloom demo renders without.\n"
                    f"{text}\n"
                )
                sys.stderr.flush()
                os._exit(EXIT_NO_WINDOW)  # Qt would abort with a core dump next
            _log.critical("Qt: %s", text)
            if logs.current() is None and sys.stderr is not None:
                sys.stderr.write(f"{printable_lines(text)}\n")
        elif kind == QtMsgType.QtCriticalMsg:
            self._messages.warning("Qt, which draws the window, reported a problem; see the details.", text)
        else:
            self._messages.note(f"Qt: {text}", context.category or "")


class Interrupt:
    """Calls a function with the signal's number on SIGINT (Ctrl-C) and SIGTERM, unless the parent process ignores it.

    Python handles signals between two bytecode instructions, and none runs while Qt waits: each signal writes
    its number into a socket that Qt watches, so a signal that arrives before Qt waits is handled too.
    """

    def __init__(self, call: Callable[[int], object]) -> None:
        from PySide6.QtCore import QSocketNotifier

        self._call = call
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._notifier = QSocketNotifier(self._reader.fileno(), QSocketNotifier.Type.Read)
        self._notifier.activated.connect(self._hear)
        self._former_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._former = handle_stops(self._leave_to_qt)

    def close(self) -> None:
        """Restore the former signal handlers. May be called twice."""
        if self._reader.fileno() < 0:
            return
        restore(self._former)
        signal.set_wakeup_fd(self._former_fd)
        self._notifier.setEnabled(False)
        self._notifier.deleteLater()
        self._reader.close()
        self._writer.close()

    @staticmethod
    def _leave_to_qt(number: int, frame: FrameType | None) -> None:
        """Do nothing in place of Python's default: the socket has the signal's number."""

    def _hear(self) -> None:
        try:
            numbers = self._reader.recv(64)
        except OSError:
            return
        number = next((number for number in STOP_SIGNALS if number in numbers), None)
        if number is not None:
            self._call(number)


def _read_model(
    hashes: ModelHashes, path: Path, *, progress: Callable[[int, int], None], cancelled: Callable[[], bool]
) -> Model:
    """Read a model, without hashing a file whose SHA-256 was noted and that has not changed."""
    opened: list[os.stat_result] = []

    def known_digest(status: os.stat_result) -> str:
        opened.append(status)
        return hashes.find(path, status)

    model = gpu_backend.read_model(path, progress=progress, cancelled=cancelled, known_digest=known_digest)
    try:
        hashes.remember(path, opened[0], model.facts.model_id)
    except OSError as error:
        _log.info("The SHA-256 of a model could not be saved: %s", error)
    return model


def _bundled(messages: MessageLog) -> Path | None:
    try:
        return bundled_model()
    except LoomError as error:
        messages.note(error.sentence, error.details)  # opening it at the start, if no other model is, warns
        return None


def _read_with_own(
    files: DirectionFiles,
    read: ReadModel,
    path: Path,
    *,
    progress: Callable[[int, int], None],
    cancelled: Callable[[], bool],
) -> Model:
    """Read a model with the directions that the user found in it."""
    return files.with_own(read(path, progress=progress, cancelled=cancelled))

"""The whole program over fakes: start, messages, and an end at any moment."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from PySide6.QtCore import QCoreApplication, QEvent, qInfo, qWarning
from PySide6.QtWidgets import QApplication

from explorer_app.app import App, Interrupt, Places, QtMessageHandler, failed_start_box
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.logs import log_path
from explorer_app.messages import Level, MessageLog
from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.session.edits import GoToSeed
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Position
from explorer_app.session.storage import load_session
from explorer_app.window.dialogs.from_picture import FromPictureDialog
from tests.helpers.fake_renderer import GPU, OTHER_GPU, Engine, Library
from tests.helpers.own_process import run_python
from tests.helpers.patience import PATIENCE_MS


class Program:
    """An App over fakes, with a bundled model `cats` and another model `dogs`."""

    def __init__(self, qapp: QApplication, folder: Path, qtbot: Any) -> None:
        self.engine = Engine()
        self.library = Library()
        self.folder = folder
        self._qtbot = qtbot
        for name in ("cats.pkl", "dogs.pkl"):
            (folder / name).write_text("a model")
        self.messages = MessageLog()
        self.app = App(
            qapp,
            self.messages,
            Places(folder / "config" / "settings.json", folder / "state"),
            read=self.library,
            backend=self.engine,
            bundled=folder / "cats.pkl",
        )

    def start(self, file: Path | None = None) -> None:
        self.app.start(file)
        self.until(lambda: self.app.window.canvas.frame is not None)

    def until(self, is_so: Any) -> None:
        self._qtbot.waitUntil(lambda: bool(is_so()), timeout=PATIENCE_MS)

    def close(self) -> None:
        self.engine.gate.open()
        self.library.gate.open()
        self.app.close()
        self.app.window.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def program(qapp: QApplication, tmp_path: Path, qtbot: Any, quiet_qt: None) -> Iterator[Program]:
    program = Program(qapp, tmp_path, qtbot)
    yield program
    program.close()


def test_a_start_shows_the_window_with_a_picture_of_the_bundled_model(program: Program) -> None:
    program.start()
    assert program.app.window.isVisible()
    assert "cats" in program.app.window.windowTitle()
    assert [message for message in program.messages.messages if message.level > Level.NOTE] == []


def test_no_frame_is_marked_once_the_first_full_picture_was(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program.app.start()
    canvas = program.app.window.canvas
    program.until(lambda: canvas.frame is not None and not canvas.frame.is_draft)
    canvas.repaint()
    marked: list[str] = []
    monkeypatch.setattr("explorer_app.start_times.mark", marked.append)
    assert canvas.frame is not None
    canvas.painted.emit(canvas.frame)
    assert marked == []


def test_a_file_on_the_command_line_is_opened(program: Program) -> None:
    program.start(program.folder / "dogs.pkl")
    assert "dogs" in program.app.window.windowTitle()


def test_a_photo_on_the_command_line_opens_the_search_for_its_latent(program: Program) -> None:
    photo = program.folder / "Me.BMP"
    Image.new("RGB", (64, 64)).save(photo)
    program.start(photo)
    program.until(lambda: program.app.window.findChildren(FromPictureDialog))
    assert [message for message in program.messages.messages if message.level > Level.NOTE] == []


def test_preferences_and_the_session_are_written_at_the_end(program: Program) -> None:
    program.start()
    program.app.controller.editing.edit(GoToSeed(42))
    program.app.close()
    assert (program.folder / "config" / "settings.json").is_file()
    assert load_session(program.folder / "state" / "session.loom").position.x == 42.0


def test_preferences_and_the_layout_are_written_while_the_program_runs(program: Program) -> None:
    program.start()
    program.app.window.set_picture_alone(True)
    program.app.settings.change(theme="light", window_geometry="as it was")
    program.app.saving.timeout.emit()
    program.until(lambda: not program.app.settings.has_changed)
    path = program.folder / "config" / "settings.json"
    stored = json.loads(path.read_text())
    assert stored["theme"] == "light"
    assert stored["window_geometry"] == "as it was", "that of the picture alone is no place to return to"
    program.app.window.set_picture_alone(False)
    program.app.saving.timeout.emit()
    program.until(lambda: json.loads(path.read_text())["window_geometry"] != "as it was")
    assert program.app.saving.isActive()


def test_closing_before_the_first_event_is_clean(program: Program) -> None:
    program.app.start()
    program.app.close()
    program.app.close()


def test_closing_during_a_render_is_clean(program: Program) -> None:
    program.start()
    program.engine.gate.shut()
    program.app.controller.editing.edit(GoToSeed(42))
    program.engine.gate.wait_for_knock()
    program.engine.gate.let_through()
    program.app.close()
    program.app.close()


def test_closing_during_a_load_is_clean(program: Program) -> None:
    program.start()
    program.library.gate.shut()
    program.app.controller.files.open_model(program.folder / "dogs.pkl")
    program.until(
        lambda: program.app.controller.engine.model.loading and program.app.controller.engine.model.loading.done
    )
    program.app.close()


def test_closing_during_an_export_is_clean_and_leaves_no_half_file(program: Program) -> None:
    program.start()
    program.engine.gate.shut()
    session = program.app.controller.editing.session
    key = Keyframe.of(resolve(session))
    program.app.controller.export.start(
        SequenceSettings((key, key), program.folder / "out", "walk", session.model, "w-linear", 40, z_dim=8)
    )
    program.engine.gate.wait_for_knock()
    program.engine.gate.open()
    program.app.close()
    assert not list((program.folder / "out").glob(".*"))


def test_closing_the_window_by_hand_ends_everything(program: Program) -> None:
    program.start()
    program.app.window.close()
    assert not program.app.window.isVisible()
    program.app.close()


def test_messages_of_qt_are_logged_and_not_shown(qapp: QApplication, qtlog: Any) -> None:
    messages = MessageLog()
    handler = QtMessageHandler(messages)
    with qtlog.disabled():
        handler.install()
        handler.install()
        qWarning("odd")
        qInfo("told")
        handler.remove()
        handler.remove()
    assert [(message.level, message.sentence) for message in messages.messages] == [
        (Level.NOTE, "Qt: odd"),
        (Level.NOTE, "Qt: told"),
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT that a process can send to itself")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_program_while_qt_waits(qapp: QApplication, qtbot: Any, number: signal.Signals) -> None:
    heard: list[int] = []
    before = signal.getsignal(number)
    interrupt = Interrupt(heard.append)
    os.kill(os.getpid(), number)
    assert heard == [], "it is heard once Qt waits, so that one before the first event is not lost"
    qtbot.waitUntil(lambda: heard == [number])
    interrupt.close()
    interrupt.close()
    assert signal.getsignal(number) is before


def test_a_signal_that_the_parent_process_ignores_stays_ignored(qapp: QApplication) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        interrupt = Interrupt(lambda number: None)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        interrupt.close()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_with_its_kernels_in_the_cache_a_gpu_renders_and_torch_is_never_imported(tmp_path: Path) -> None:
    done = run_python(f"""
        import sys
        from pathlib import Path
        from PySide6.QtWidgets import QApplication
        from explorer_app.app import App, Places
        from explorer_app.messages import MessageLog
        from tests.helpers.fake_renderer import GPU, Engine
        engine = Engine(gpus=(GPU,))
        qt = QApplication([])
        messages = MessageLog()
        app = App(qt, messages, Places(None, Path({str(tmp_path)!r})), backend=engine)
        app.start()
        print("visible", app.window.isVisible(), "looked", bool(app.controller.engine.devices.state.devices))
        app.controller.engine.preview.frame_changed.connect(qt.quit)
        qt.exec()
        print(app.controller.engine.devices.state.device.name, "torch" in sys.modules, "cuda.bindings" in sys.modules)
        app.close()
        print([message.sentence for message in messages.messages])
    """)
    assert done.stdout.splitlines() == ["visible True looked False", "Loom 9000 False False", "[]"], done.stderr
    assert done.stderr == ""


def test_a_device_on_the_command_line_counts_for_this_time_only(
    qapp: QApplication, tmp_path: Path, quiet_qt: None
) -> None:
    engine = Engine(gpus=(GPU, OTHER_GPU))
    app = App(qapp, MessageLog(), Places(tmp_path / "settings.json", None), device="cuda:1", backend=engine)
    assert app.controller.engine.devices.state.choice == DeviceChoice("cuda:1", "fp16")
    assert app.settings.values.device == "auto"
    app.close()
    app.window.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.mark.parametrize("moment", ["compiling", "compiled"])
def test_closing_around_the_compiling_of_kernels_is_clean(program: Program, moment: str) -> None:
    program.engine.gpus = (GPU,)
    program.engine.missing = 3
    program.engine.compile_gate.shut()
    program.start()
    program.until(lambda: program.app.controller.engine.devices.state.compiling)
    if moment == "compiled":
        program.engine.compile_gate.open()
    program.app.close()
    assert all(renderer.closed for renderer in program.engine.made)


@pytest.mark.skipif(sys.platform != "linux", reason="only here a window needs a display server")
def test_a_display_that_does_not_answer_is_reported_in_a_sentence_and_not_by_a_crash() -> None:
    done = run_python(
        "import sys; from explorer_app.cli import main; sys.exit(main([]))",
        display=False,
        DISPLAY=":4711",
        QT_QPA_PLATFORM="xcb",
    )
    assert done.returncode == 2
    assert "The window cannot open because Qt found no display" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
def test_ctrl_c_while_qt_is_imported_ends_the_program_with_a_word_and_no_abort() -> None:
    done = run_python("""
        import os, signal, sys
        from explorer_app.app import run_window

        def interrupt(event, arguments):
            if event == "import" and arguments[0] == "PySide6.QtGui":
                os.kill(os.getpid(), signal.SIGINT)

        sys.addaudithook(interrupt)
        run_window()
    """)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Stopped.\n")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_closes_the_running_program_cleanly_and_keeps_what_was_set(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    # One of them with torch and all threads that it starts; without it, the other comes sooner.
    program = "explorer_app.app.App" if name == "SIGINT" else "tests.helpers.faked_app.FakedApp"
    done = run_python(f"""
        import gc, os, signal, threading
        import explorer_app.app, tests.helpers.faked_app
        from explorer_app.session.edits import GoToSeed

        counts = []

        class Watched({program}):
            def start(self, file=None):
                counts.append(gc.get_freeze_count())
                super().start(file)
                self.controller.engine.preview.frame_changed.connect(self.leave)

            def leave(self):
                counts.append(gc.get_freeze_count())
                self.controller.engine.preview.frame_changed.disconnect(self.leave)
                self.controller.editing.edit(GoToSeed(4242))
                os.kill(os.getpid(), signal.{name})

        explorer_app.app.App = Watched
        print(explorer_app.app.run_window())
        print(threading.active_count())
        print(counts[0], counts[1] > 50_000)
    """)
    status, threads, *frozen = done.stdout.split()
    assert (status, threads) == (str(128 + getattr(signal, name)), "1"), done.stderr
    assert frozen == ["0", "True"], "collections pass over what the start made once there is a picture, not before"
    assert done.stderr == ""
    (session,) = tmp_path.rglob("session.loom")
    assert load_session(session).position == Position(42.0, 42.0)
    assert list(tmp_path.rglob("settings.json"))


START = """
    import sys
    import explorer_app.app
    from explorer_app.cli import main
    {}
    sys.exit(main(["--log", "warning"]))
"""


def test_a_window_that_cannot_be_built_is_reported_on_stderr_and_in_the_log_and_by_the_status(
    own_folders: Path,
) -> None:
    done = run_python(
        START.format("""
    import explorer_app.window.shell.main_window
    def fail(*others): raise ValueError("no window today")
    explorer_app.window.shell.main_window.MainWindow = fail
    """)
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("ERROR explorer_app.app: The window could not be opened.\n    Traceback")
    assert "ValueError: no window today" in done.stderr
    assert "ValueError: no window today" in log_path().read_text()


def test_an_exception_in_a_slot_or_a_thread_is_reported_in_all_three_places(own_folders: Path) -> None:
    done = run_python(
        START.format("""
    import threading
    from PySide6.QtCore import QTimer
    from tests.helpers.faked_app import FakedApp

    class Watched(FakedApp):
        def start(self, file=None):
            super().start(file)
            self.messages.subscribe(lambda message: print(message.level.name, message.sentence))
            QTimer.singleShot(0, self.window, self.fail)
            self.controller.engine.preview.frame_changed.connect(self.window.close)

        def fail(self):
            thread = threading.Thread(target=lambda: 1 / 0, name="worker")
            thread.start()
            thread.join()
            raise ValueError("in a slot")

    explorer_app.app.App = Watched
    """)
    )
    text = log_path().read_text()
    for told in (done.stderr, text):
        assert "explorer_app.logs: Uncaught exception in thread worker.\n    Traceback" in told
        assert "explorer_app.logs: Uncaught exception.\n    Traceback" in told
    assert done.stdout.count("ERROR Something went wrong inside Latent Loom") == 2
    assert done.returncode == 1, "the window was closed by hand, but not all is well"


def test_the_dialog_of_a_failed_start_has_the_details(qtbot: Any) -> None:
    messages = MessageLog()
    messages.warning("The preferences cannot be read.", "byte 7")
    try:
        raise ValueError("no window\x1b today")
    except ValueError as error:
        box = failed_start_box(error, messages)
    qtbot.addWidget(box)
    assert "ValueError" in box.informativeText()
    assert str(log_path()) in box.informativeText()
    assert "ValueError: no window\\x1b today" in box.detailedText()
    assert "byte 7" in box.detailedText()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGSEGV that a process can send to itself")
def test_a_crash_leaves_the_stacks_of_all_threads(own_folders: Path) -> None:
    done = run_python(
        START.format("""
    import os, signal
    class Crashes(explorer_app.app.App):
        def start(self, file=None): os.kill(os.getpid(), signal.SIGSEGV)
    explorer_app.app.App = Crashes
    """)
    )
    assert done.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert "in start" in done.stderr


def test_a_model_that_was_read_before_is_not_hashed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gpu_backend
    from explorer_app.app import _read_model
    from explorer_app.session.model_hashes import ModelHashes

    path = tmp_path / "cats.pkl"
    path.write_bytes(b"cats")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    known: list[str] = []

    class Read:
        class facts:  # noqa: N801 - as the model's attribute
            model_id = "a" * 64

    def read(path: Path, *, progress: object, cancelled: object, known_digest: Callable[[os.stat_result], str]) -> Read:
        known.append(known_digest(path.stat()))
        return Read()

    monkeypatch.setattr(gpu_backend, "read_model", read)
    for _ in range(2):
        hashes = ModelHashes(tmp_path / "model-hashes.json")
        _read_model(hashes, path, progress=lambda done, total: None, cancelled=lambda: False)
    os.utime(path, (1_700_000_001, 1_700_000_001))
    _read_model(hashes, path, progress=lambda done, total: None, cancelled=lambda: False)
    assert known == ["", "a" * 64, ""]

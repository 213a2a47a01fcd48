"""The log of the process: what reaches the terminal and the file, and the hooks of uncaught exceptions."""

from __future__ import annotations

import io
import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from explorer_app import logs
from explorer_app.logs import ProgramLog, log_path


@pytest.fixture
def shown() -> list[str]:
    """What the terminal got, a record each."""
    return []


@pytest.fixture
def log(shown: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[ProgramLog]:
    with ProgramLog(shown.append, tmp_path / "logs" / "latentloom.log") as log:
        yield log
    caplog.get_records("call").clear()  # that they are logged is the point here


def written(log: ProgramLog) -> str:
    """Close the log and return its file."""
    log.__exit__()
    return log.path.read_text()


def test_warnings_reach_the_terminal_and_the_file_has_more(log: ProgramLog, shown: list[str]) -> None:
    logger = logging.getLogger("explorer_app.rendering")
    logger.debug("Detail.")
    logger.info("Note.")
    logger.warning("Odd: %s", 7)
    assert shown == ["WARNING explorer_app.rendering: Odd: 7"]
    lines = written(log).splitlines()
    assert [line.rpartition(": ")[0].split()[2] for line in lines] == ["INFO", "WARNING"]
    assert "MainThread] explorer_app.rendering: " in lines[0]


def test_the_level_is_that_of_both_packages_but_not_of_other_libraries(log: ProgramLog, shown: list[str]) -> None:
    log.set_level(logging.DEBUG)
    for name in ("explorer_app.session", "gpu_backend.model", "some.library"):
        logging.getLogger(name).debug("Detail.")
    assert shown == ["DEBUG explorer_app.session: Detail.", "DEBUG gpu_backend.model: Detail."]
    assert written(log).count("Detail.") == 2
    log.__exit__()
    assert logging.getLogger("gpu_backend").level == logging.NOTSET


def test_an_uncaught_exception_is_logged_with_its_traceback_and_counted(log: ProgramLog, shown: list[str]) -> None:
    def fail() -> None:
        raise ValueError("inside")

    thread = threading.Thread(target=fail, name="worker")
    thread.start()
    thread.join()
    try:
        fail()
    except ValueError as error:
        sys.excepthook(ValueError, error, error.__traceback__)
    assert log.uncaught == 2
    assert "Uncaught exception in thread worker.\n    Traceback" in shown[0]
    assert shown[1].endswith("\n    ValueError: inside")
    assert written(log).count("ValueError: inside") == 2


def test_ctrl_c_and_the_end_of_a_thread_are_no_errors(log: ProgramLog, shown: list[str]) -> None:
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    thread = threading.Thread(target=sys.exit)
    thread.start()
    thread.join()
    assert (log.uncaught, shown) == (0, [])


def test_an_exception_in_a_destructor_is_logged(log: ProgramLog, shown: list[str]) -> None:
    class Fails:
        def __del__(self) -> None:
            raise ValueError("at the end")

    Fails()
    assert "ValueError: at the end" in shown[0]


def test_text_from_a_file_can_neither_steer_a_terminal_nor_forge_a_record(log: ProgramLog, shown: list[str]) -> None:
    logging.getLogger("explorer_app").warning(
        "%s", "name\n2026-01-01 ERROR forged \x1b[2J", extra={"details": "a\nb\x07"}
    )
    assert shown == ["WARNING explorer_app: name\\n2026-01-01 ERROR forged \\x1b[2J\n    a\n    b\\x07"]
    assert "\x1b" not in written(log)


def test_hooks_are_given_back(tmp_path: Path) -> None:
    def hooks() -> tuple[object, ...]:
        return sys.excepthook, threading.excepthook, sys.unraisablehook, logging.getLogger().handlers[:], logs.current()

    before = hooks()
    log = ProgramLog(print, tmp_path / "latentloom.log")
    with log:
        assert logs.current() is log
        assert hooks() != before
    log.__exit__()
    assert hooks() == before
    assert not log.path.exists(), "a run that logs nothing leaves no file"


def test_a_log_that_cannot_be_written_disturbs_nothing(
    tmp_path: Path, shown: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "taken").write_text("a file where a folder is wanted")
    with ProgramLog(shown.append, tmp_path / "taken" / "latentloom.log"):
        logging.getLogger("explorer_app").warning("Odd.")
        logging.getLogger("explorer_app").warning("Odder.")
    assert len(shown) == 2
    caplog.clear()


def test_the_file_rotates(log: ProgramLog) -> None:
    for number in range(12):
        logging.getLogger("explorer_app").info("%d %s", number, "x" * 200_000)
    assert written(log).startswith("20")
    assert log.path.with_name("latentloom.log.1").stat().st_size <= 1 << 20


def test_a_crash_of_an_earlier_run_is_reported_once(log: ProgramLog) -> None:
    assert log.take_crash() == ""
    log.path.parent.mkdir(parents=True)
    log.path.with_name("latentloom.crash").write_text("Fatal Python error: Segmentation fault\n")
    assert "Segmentation fault" in log.take_crash()
    assert log.take_crash() == ""


def test_a_terminal_that_is_gone_stops_no_logging(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(text: str) -> None:
        raise BrokenPipeError

    with ProgramLog(refuse, tmp_path / "latentloom.log") as log:
        logging.getLogger("explorer_app").warning("Odd.")
    assert "Odd." in log.path.read_text()
    caplog.clear()


def test_only_a_stream_that_a_person_can_find_again_takes_a_crash(tmp_path: Path) -> None:
    with (tmp_path / "errors.txt").open("w") as file, Path("/dev/null").open("w") as nowhere:
        assert logs._kept_stream(file) is file
        assert logs._kept_stream(nowhere) is None
    assert logs._kept_stream(None) is None
    assert logs._kept_stream(io.StringIO()) is None


def test_the_file_is_where_the_system_keeps_logs(own_folders: Path) -> None:
    assert own_folders in log_path().parents


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_costs_records_and_no_more() -> None:
    file = logs._LogFile(Path("/dev/full"))
    file.handle(logging.makeLogRecord({"msg": "first", "levelno": logging.ERROR}))
    stream = file.stream = file._open()
    file.handle(logging.makeLogRecord({"msg": "second", "levelno": logging.ERROR}))
    assert file.stream is None
    assert stream.closed, "Python reports a file that it cannot close itself, which would be the next record"
    file.close()

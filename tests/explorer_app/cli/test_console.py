import io
import os
import sys

import pytest

from explorer_app.cli.console import Console, show_letters_of_names


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_one_line_that_is_written_over() -> None:
    stream = Terminal()
    console = Console(stream)
    console.progress("9 of 10 frames, 1 s left")
    console.progress("10 of 10 frames")
    console.status("Reading")
    console.note("Done.")
    assert stream.getvalue() == ("\r9 of 10 frames, 1 s left\r10 of 10 frames         \rReading        \nDone.\n")


def test_a_progress_line_is_never_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [40]
    monkeypatch.setattr(os, "get_terminal_size", lambda file: os.terminal_size((columns[0], 20)))
    stream = Terminal()
    monkeypatch.setattr(stream, "fileno", lambda: 2)
    console = Console(stream)
    for width, text in ((40, "Reading it: 1 %"), (20, f"Reading {'a' * 99}.pkl: 97 %"), (40, "7 of 9"), (10, "8 of 9")):
        columns[0] = width
        console.progress(text)
    assert stream.getvalue() == f"\rReading it: 1 %\rReading ...kl: 97 %\r7 of 9{13 * ' '}\r8 of 9"


def test_a_file_gets_a_line_each_and_no_passing_words() -> None:
    stream = io.StringIO()
    console = Console(stream)
    console.status("Reading")
    console.progress("1 of 2")
    console.progress("2 of 2")
    assert stream.getvalue() == "1 of 2\n2 of 2\n"


def test_a_warning_comes_once() -> None:
    stream = io.StringIO()
    console = Console(stream)
    for _ in range(3):
        console.warn("w_avg holds NaN.")
    assert stream.getvalue() == "Warning: w_avg holds NaN.\n"


def test_in_the_locale_c_names_are_written_as_files_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "ascii")
    written = []
    for name, errors in (("stdout", "surrogateescape"), ("stderr", "backslashreplace")):
        written.append(io.BytesIO())
        monkeypatch.setattr(sys, name, io.TextIOWrapper(written[-1], "ascii", errors))
    show_letters_of_names()
    console = Console()
    console.note("1 picture is in \udcc3\udca4.")
    console.results(["\udcc3\udca4"])
    sys.stderr.flush()
    assert [stream.getvalue().decode() for stream in written] == ["ä\n", "1 picture is in ä.\n"]


def test_elsewhere_letters_that_a_stream_lacks_are_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "ascii"))
    show_letters_of_names()
    Console().results(["ä"])
    assert written.getvalue() == b"\\xe4\n"

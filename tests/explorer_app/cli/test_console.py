import io

from explorer_app.cli.console import Console


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

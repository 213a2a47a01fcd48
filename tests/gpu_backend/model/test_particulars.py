"""What is told of a refused file on demand."""

from pathlib import Path

from gpu_backend.model.particulars import Particulars


def test_nothing_from_the_file_steers_a_terminal() -> None:
    known = Particulars(Path("a\x1b[2J.pkl"), 10, b"\x80\x04", "a pickle", {"os \x1b[2Jsystem\nFile: another"})
    text = known.text
    assert all(char.isprintable() or char == "\n" for char in text)
    assert len(text.splitlines()) == 5


def test_of_thousands_of_names_some_are_listed_and_the_rest_counted() -> None:
    text = Particulars(Path("a.pkl"), imports={f"module name{number}" for number in range(5000)}).text
    assert len(text.splitlines()) < 50
    assert text.endswith("and 4960 more")

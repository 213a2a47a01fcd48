import pytest

from gpu_backend import printable, printable_lines
from gpu_backend.plain_text import system_reason


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ψ × – ünïcödé 猫", "ψ × – ünïcödé 猫"),
        ("\x1b[2Jred", r"\x1b[2Jred"),
        ("a\nb\r", r"a\nb\r"),
        ("\x9b31m", r"\x9b31m"),
        ("abc\u202egnp.exe", r"abc\u202egnp.exe"),
        ("\u2028", r"\u2028"),
        ("\udcff", r"\udcff"),
        ("\udcc3\udca4 \udce7\udc8c\udcab", "ä 猫"),
        ("\udcc3\udca4\udcff", r"ä\udcff"),
        ("\udcc2\udc9b1m", r"\x9b1m"),
        ("\x00\x7f", r"\x00\x7f"),
    ],
)
def test_control_and_format_characters_become_escapes(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown


def test_line_breaks_of_several_lines_stay() -> None:
    assert printable_lines("a\x1b\r\n\tb\rc") == "a\\x1b\n    b\\rc"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device", "/a/b"), "No space left on device"),
        (OSError("the disk\nis gone."), "the disk is gone"),
        (ValueError("embedded null byte"), "embedded null byte"),
    ],
)
def test_what_the_system_says_ends_a_sentence(error: Exception, reason: str) -> None:
    assert system_reason(error) == reason

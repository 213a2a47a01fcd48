"""Exceptions of the readers, which do not know the name of the file."""

from __future__ import annotations

from gpu_backend.errors import ModelFileError, UnsupportedModelError

_SHOWN = 60
"""Longest piece of a file's own text that an error repeats, in characters."""


AGAIN = "download or copy it again"
"""What to do about a file that ends early."""


class Refusal(Exception):  # noqa: N818 - a decision about the file, not a failure of ours
    """The file is refused: what was expected, what was found and, if possible, what to do.

    Raised inside the readers, which do not know the file's name; `read_model` turns it into a `ModelFileError`.
    `facts` are lines about the content of the file, for the technical details.
    """

    error: type[ModelFileError] = ModelFileError

    def __init__(self, expected: str, found: str, todo: str = "", *, facts: tuple[str, ...] = ()) -> None:
        super().__init__(expected, found, todo)
        self.expected = expected
        self.found = found
        self.todo = todo
        self.facts = facts

    def sentence(self, name: str) -> str:
        """One sentence about the file of this name."""
        todo = f"; {self.todo}" if self.todo else ""
        return f"{name} was not opened: expected {self.expected}, but {self.found}{todo}."


class Unsupported(Refusal):
    """The file holds a network of a kind that this version recognises and does not run."""

    error = UnsupportedModelError


def shown(text: str) -> str:
    """A piece of a file's text, quoted and shortened, that can neither end a sentence nor steer a terminal."""
    short = (text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…").replace(". ", "._")
    return "'" + "".join(char if char.isprintable() else "�" for char in short) + "'"

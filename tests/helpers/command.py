"""A command line, run in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Outcome:
    """The result of a command."""

    status: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The single line of an error on stderr."""
        assert self.status == 2, self.err
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("latentloom")
        assert self.err.endswith(".\n")
        return self.err.split(": ", 1)[1].strip()


class Command:
    """Calls the entry point with arguments, as a shell does."""

    def __init__(self, main: Callable[[Sequence[str]], int], capsys: pytest.CaptureFixture[str]) -> None:
        self._main = main
        self._capsys = capsys

    def __call__(self, *words: object) -> Outcome:
        """Run, and return status and output."""
        self._capsys.readouterr()
        try:
            status = self._main([str(word) for word in words])
        except SystemExit as leaving:
            status = int(leaving.code or 0)
        captured = self._capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

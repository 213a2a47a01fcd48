"""Finds out which workers of a farm see a job's folder: they answer a token in one file by a file beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class FolderProbe:
    """The job's side.

    Parameters
    ----------
    job
        Hexadecimal digits that identify the job.
    """

    def __init__(self, folder: Path, job: str) -> None:
        self._question = probe_path(folder, job)
        self.token = os.urandom(16).hex()

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Have the token in the folder meanwhile; at the end it is removed, with the answers."""
        try:
            with suppress(OSError):
                self._question.write_text(self.token, encoding="ascii")
            yield
        finally:
            for path in self._question.parent.glob(self._question.name + "*"):
                with suppress(OSError):  # of a folder with the sticky bit, answers of another account stay
                    path.unlink()

    def is_answered(self, name: str) -> bool:
        """Return whether a file of this name is in the folder and answers the token."""
        try:
            return self._question.with_name(Path(name).name).read_text(encoding="ascii") == _answer_to(self.token)
        except (OSError, ValueError):
            return False


def answered(folder: Path, job: str, token: str) -> str:
    """Answer a job's token on a worker; return the name of the answer's file, empty if the folder is another one."""
    question = probe_path(folder, job)
    answer = question.with_name(f"{question.name}-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        if question.read_text(encoding="ascii") != token:
            return ""
        answer.write_text(_answer_to(token), encoding="ascii")
    except (OSError, ValueError):
        return ""
    return answer.name


def probe_path(folder: Path, job: str) -> Path:
    """Return the path of the token's file."""
    return folder / f".latentloom-probe-{job}"


def _answer_to(token: str) -> str:
    return token[::-1]

"""Sentences of errors that several readers and writers raise."""

import errno
import os
from pathlib import Path

import pytest

from gpu_backend.errors import not_written


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, "expected room for it, but the disk is full; make room and try again"),
        (errno.EDQUOT, "expected room for it, but the disk is full; make room and try again"),
        (errno.EACCES, "expected a place to write to, but the system says Permission denied; choose another place"),
    ],
)
def test_a_file_that_cannot_be_written_says_why_and_what_to_do(number: int, reason: str) -> None:
    error = not_written(Path("below") / "m.safetensors", OSError(number, os.strerror(number)))
    assert error.sentence == f"m.safetensors was not written: {reason}."
    assert os.strerror(number) in error.details

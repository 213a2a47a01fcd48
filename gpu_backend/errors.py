"""Exceptions of the public interface.

Every message is one sentence for the user: what was expected, what was found and, if possible, what to do. Technical
details go into `details`, which the window shows on demand.
"""

from __future__ import annotations

import errno
from pathlib import Path

from gpu_backend.plain_text import system_reason

FULL_DISK = frozenset({errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)})
"""Error numbers of a full disk and of a full quota."""


class LoomError(Exception):
    """Base of every error that this package raises on purpose.

    Parameters
    ----------
    sentence
        One sentence for the user.
    details
        Technical details for a report; may have several lines or be empty.
    """

    def __init__(self, sentence: str, details: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.details = details


class ModelFileError(LoomError):
    """The file is damaged, unsafe, or not a model."""


class UnsupportedModelError(ModelFileError):
    """The file is valid, but contains a network that this program does not run."""


class RequestError(LoomError):
    """The request is invalid, or does not fit the opened model."""


class DeviceError(LoomError):
    """The compute device is missing, too old, out of memory or lost."""


class DeviceMemoryError(DeviceError):
    """Device memory is too small for the request; smaller requests still work."""


class DeviceLostError(DeviceError):
    """The device was lost; this process can no longer use it."""


class CancelledError(LoomError):
    """The operation was cancelled on request."""


def not_written(path: Path, error: Exception) -> LoomError:
    """Return the error of a file that the system refuses to write."""
    if getattr(error, "errno", None) in FULL_DISK:
        what = "expected room for it, but the disk is full; make room and try again"
    else:
        what = f"expected a place to write to, but the system says {system_reason(error)}; choose another place"
    return LoomError(f"{path.name} was not written: {what}.", str(error))

"""Errors that cross the front door.

Every message is one sentence that a person can act on: what was expected, what came and, where there is
something to do about it, what to do. Technical particulars go into `details`, which the window shows on demand.
"""

from __future__ import annotations


class LoomError(Exception):
    """Base of every error that this package raises on purpose.

    Parameters
    ----------
    sentence
        One sentence for the person in front of the screen.
    details
        Particulars for a report; may have several lines, may be empty.
    """

    def __init__(self, sentence: str, details: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.details = details


class ModelFileError(LoomError):
    """The file is not a model this program can trust or understand."""


class UnsupportedModelError(ModelFileError):
    """The file is whole and harmless, but holds a network that this program does not run."""


class RequestError(LoomError):
    """A request asks for something that the opened model does not have."""


class DeviceError(LoomError):
    """The compute device is missing, too old, out of memory or lost."""


class DeviceMemoryError(DeviceError):
    """The device has not enough memory for what was asked; smaller things still work."""


class DeviceLostError(DeviceError):
    """The device stopped answering: nothing more can be computed on it by this process."""


class CancelledError(LoomError):
    """The person asked to stop; nothing went wrong."""

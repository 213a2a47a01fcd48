"""What can go wrong with a farm."""

from __future__ import annotations

import importlib.util

from gpu_backend import LoomError

INSTALL_COMMAND = "pip install distributed cryptography"
"""Adds what the extra `farm` does."""


class FarmError(LoomError):
    """The farm cannot be reached, started or used."""


class WorkerLostError(FarmError):
    """The worker of a call died or left.

    Parameters
    ----------
    has_died
        It ended while it worked on the call, without leaving first.
    """

    def __init__(self, sentence: str, details: str = "", *, has_died: bool = False) -> None:
        super().__init__(sentence, details)
        self.has_died = has_died


class ConnectionLostError(FarmError):
    """The scheduler went away; its workers may go on with what they have."""


class StationError(FarmError):
    """A call failed on a worker, which goes on.

    Parameters
    ----------
    is_cancelled
        The call was cancelled on request.
    """

    def __init__(self, sentence: str, details: str = "", *, is_cancelled: bool = False) -> None:
        super().__init__(sentence, details)
        self.is_cancelled = is_cancelled


def require_farm_extra() -> None:
    """Raise FarmError with the command that helps if the packages of the extra `farm` are missing."""
    if any(importlib.util.find_spec(name) is None for name in ("distributed", "cryptography")):
        raise FarmError(f"A farm needs two packages that are not installed; add them with: {INSTALL_COMMAND}")

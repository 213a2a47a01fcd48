"""What an input raises."""

from __future__ import annotations

from gpu_backend import LoomError

EXTRA_COMMAND = "pip install python-osc rtmidi2 mido pysdl2 pysdl2-dll"
"""Adds the libraries of live inputs."""


class InputError(LoomError):
    """An input or output cannot be opened."""


def missing_extra(subject: str) -> InputError:
    """Return the error that explains how to add a missing library; `subject` is "OSC", "MIDI"."""
    return InputError(f"{subject} needs libraries that are not installed: run {EXTRA_COMMAND} and start again.")


def reason_of(error: Exception) -> str:
    """Return what a library says of its error, for use inside a sentence."""
    return str(error).rstrip(".") or type(error).__name__

"""The entry point of ``latentloom`` and of ``python -m explorer_app``."""

import contextlib
import os
import signal
import sys
from types import FrameType

_STOPPED = 130


def main() -> int:
    """Import the command line, run it and return the exit status."""
    former = signal.signal(signal.SIGINT, _leave)
    # A Ctrl-C while modules are imported finds nothing to tidy up, and an import would turn it into other errors.
    from explorer_app.cli import main as run

    signal.signal(signal.SIGINT, former)
    try:
        return run()
    except KeyboardInterrupt:  # a second one, while the first was answered
        return _STOPPED


def _leave(number: int, frame: FrameType | None) -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"Stopped.\n")
    os._exit(_STOPPED)


if __name__ == "__main__":
    sys.exit(main())

"""The entry point of ``latentloom`` and of ``python -m explorer_app``."""

import os
import signal
import sys

_STOPPED = 130


def _leave(*_: object) -> None:
    """Answer a Ctrl-C while modules are imported: an import may swallow the exception, and nothing has begun."""
    try:
        os.write(2, b"Stopped.\n")
    finally:
        os._exit(_STOPPED)


_former = signal.signal(signal.SIGINT, _leave)


def main() -> int:
    """Import the command line, run it and return the exit status."""
    from explorer_app import start_times as start_times  # its import is the first step of a start
    from explorer_app.cli import main as run

    signal.signal(signal.SIGINT, _former)
    try:
        return run()
    except KeyboardInterrupt:  # a second one, while the first was answered
        return _STOPPED


if __name__ == "__main__":
    sys.exit(main())

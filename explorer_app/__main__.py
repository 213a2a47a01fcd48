"""The entry point of ``latentloom`` and of ``python -m explorer_app``."""

from explorer_app.interrupts import EXIT_STOPPED, handle_stops, leave, restore

_former = handle_stops(leave)


def main() -> int:
    """Import the command line, run it and return the exit status."""
    from explorer_app import start_times as start_times  # its import is the first step of a start
    from explorer_app.cli import main as run

    restore(_former)
    try:
        status = run()
    except KeyboardInterrupt:  # a second one, while the first was answered
        status = EXIT_STOPPED
    # Dataclasses and named tuples are made by exec. A KeyboardInterrupt in one marks the process as killed by SIGINT,
    # handled or not, and CPython then kills it by that signal at its end. The next exec removes the mark.
    exec("")
    return status


if __name__ == "__main__":
    raise SystemExit(main())

"""The entry point of ``latentloom`` and of ``python -m explorer_app``."""

from explorer_app.interrupts import EXIT_STOPPED, handle_stops, leave, restore

_former = handle_stops(leave)


def main() -> int:
    """Import the command line, run it and return the exit status."""
    from explorer_app import start_times as start_times  # its import is the first step of a start
    from explorer_app.cli import main as run

    restore(_former)
    try:
        return run()
    except KeyboardInterrupt:  # a second one, while the first was answered
        return EXIT_STOPPED


if __name__ == "__main__":
    raise SystemExit(main())

"""The command line: ``latentloom`` opens the window, its subcommands render and look into files without a display.

Arguments become options here and nothing more happens; importing this package loads neither Qt nor torch.
"""

from explorer_app.cli.main import main

__all__ = ["main"]

"""``latentloom directions``: named directions for a model, which the sliders panel shows first."""

from __future__ import annotations

from collections.abc import Sequence

from explorer_app.cli.arguments import Parser
from explorer_app.cli.console import Console
from gpu_backend import add_direction_options, direction_options_of, run_directions

_EXAMPLES = """examples:
  latentloom directions hills.safetensors --method pca
  latentloom directions hills.safetensors --method world --features features.safetensors
  latentloom directions faces.pkl --method labels --labels smiles --add"""


def parser() -> Parser:
    """Return the parser of this command."""
    made = Parser("latentloom directions", "Find directions in a model's w and keep them beside it.", _EXAMPLES)
    add_direction_options(made)
    return made


def run(words: Sequence[str], console: Console) -> int:
    """Find directions, write their file, print a table."""
    options = direction_options_of(parser().parse_args(words))
    lines = run_directions(options, console.note, console.status)
    console.results(lines)
    return 0

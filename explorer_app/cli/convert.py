"""``latentloom convert``: any model file once read becomes a safetensors file that anyone may open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from explorer_app.cli.arguments import Parser, UsageError
from explorer_app.cli.console import Console
from explorer_app.cli.network import read_network
from explorer_app.exporting.output_file import as_export_error, check_output_path
from gpu_backend import write_safetensors


def parser() -> Parser:
    """Return the parser of this command."""
    made = Parser("latentloom convert", "Convert a model file to safetensors, a format that cannot contain code.")
    made.add_argument("source", type=Path, metavar="IN", help="network pickle, torch file or safetensors")
    made.add_argument("target", type=Path, metavar="OUT", help="file to write, ending in .safetensors")
    made.add_argument(
        "--half", action="store_true", help="store weights in half precision: half the size, not bit-exact"
    )
    made.add_argument("--overwrite", action="store_true", help="replace an existing file")
    return made


def run(words: Sequence[str], console: Console) -> int:
    """Convert one file."""
    options = parser().parse_args(words)
    source, target = options.source, options.target
    if target.suffix.lower() != ".safetensors":
        raise UsageError(f"The output file should end in .safetensors, but {target.name} does not.")
    check_output_path(target)
    if source.exists() and target.exists() and source.samefile(target):
        raise UsageError("The output file is the input file; choose another name.")
    if target.exists() and not options.overwrite:
        raise UsageError(f"{target} already exists; choose another name, or replace it with --overwrite.")
    model = read_network(source, console)
    with as_export_error(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    write_safetensors(model, target, "float16" if options.half else "float32")
    console.conclude(f"{target} holds {model.facts.name}: {target.stat().st_size:,} bytes.")
    return 0

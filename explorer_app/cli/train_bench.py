"""``latentloom train-bench``: what a training step takes, one optimisation after the other."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from explorer_app.cli.arguments import Parser
from explorer_app.cli.console import Console
from gpu_backend import add_train_bench_options, run_train_bench, train_bench_options_of

_EXAMPLES = """examples:
  latentloom train-bench --out results
  latentloom train-bench --batch 32 --rows graph,loading,compile
  latentloom train-bench --device cpu --resolution 32 --channel-max 32 --steps 16"""


def parser() -> Parser:
    """Return the parser of this command."""
    made = Parser(
        "latentloom train-bench",
        "Measure a training step: first a plain implementation, then with one optimisation after the other.\n"
        "Ctrl-C keeps what was measured.",
        _EXAMPLES,
    )
    add_train_bench_options(made)
    return made


def run(words: Sequence[str], console: Console) -> int:
    """Measure, print a table, write files, also of what was measured before Ctrl-C."""
    made = parser()
    options = train_bench_options_of(made.parse_args(words), shlex.join((*made.prog.split(), *words)))
    if not run_train_bench(options, console.note, console.results):
        raise KeyboardInterrupt
    return 0

"""``latentloom bench``: what a frame costs here, beside what one would use instead."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from explorer_app.cli.arguments import Parser
from explorer_app.cli.console import Console
from gpu_backend import add_bench_options, bench_options_of, run_bench

_EXAMPLES = """examples:
  latentloom bench --shape ffhq1024 --out results
  latentloom bench ffhq.pkl --batch 1,8 --peers compiled --precision fp16
  latentloom bench --device cpu --quick"""


def parser() -> Parser:
    """Return the parser of this command."""
    what = "Measure this renderer beside the same network in plain PyTorch. Ctrl-C keeps what was measured."
    made = Parser("latentloom bench", what, _EXAMPLES)
    add_bench_options(made)
    return made


def run(words: Sequence[str], console: Console) -> int:
    """Measure, print a table, write files, also of what was measured before Ctrl-C."""
    made = parser()
    options = bench_options_of(made.parse_args(words), shlex.join((*made.prog.split(), *words)))
    if not run_bench(options, console.note, console.results):
        raise KeyboardInterrupt
    return 0

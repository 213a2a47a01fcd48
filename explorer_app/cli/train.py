"""``latentloom train``: a StyleGAN2 from pictures."""

from __future__ import annotations

from collections.abc import Sequence

from explorer_app.cli.arguments import Parser
from explorer_app.cli.console import Console
from explorer_app.cli.path_text import without_home
from gpu_backend import add_train_options, run_training, train_request_of

_EXAMPLES = """examples:
  latentloom train --out landscapes --kimg 2000
  latentloom train --out cats --data cats.zip --resolution 128 --mirror --augment
  latentloom train --out cats --resume --kimg 8000
  torchrun --nproc-per-node 2 -m explorer_app train --out cats --data cats.zip --batch 64

Ctrl-C saves and ends; --resume continues as if nothing had happened. The window opens the snapshots,
network-*.safetensors, also during the training."""


def parser() -> Parser:
    """Return the parser of this command."""
    made = Parser(
        "latentloom train", "Train a StyleGAN2 on a folder or zip of pictures, or on drawn landscapes.", _EXAMPLES
    )
    add_train_options(made)
    return made


def run(words: Sequence[str], console: Console) -> int:
    """Train; a signal to stop saves first and is then reported as in other commands."""
    request = train_request_of(parser().parse_args(words))
    outcome = run_training(request, console.note, console.progress)
    if outcome.snapshot is not None:
        console.conclude(
            f"{outcome.pictures_seen / 1000:,.1f} kimg; the network is {without_home(str(outcome.snapshot))}."
        )
    if outcome.was_stopped:
        if outcome.snapshot is not None:
            again = f"--out {request.out} --resume" + (
                f" --data {request.given['data']}" if "data" in request.given else ""
            )
            console.conclude(f"Continue with: latentloom train {without_home(again)}")
        console.stopped_by = outcome.stop_signal
        raise KeyboardInterrupt
    return 0

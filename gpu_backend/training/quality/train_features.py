"""``python -m gpu_backend.training.quality.train_features --out FILE``: train the network of features on the world."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gpu_backend.errors import LoomError
from gpu_backend.plain_text import printable
from gpu_backend.training.quality.feature_file import write_features
from gpu_backend.training.quality.feature_network import FeatureShape
from gpu_backend.training.quality.feature_training import FeatureTraining, train_on_world
from gpu_backend.training.quality.reading import torch_device
from gpu_backend.training.quality.world_source import ProceduralWorld, World


def parser() -> argparse.ArgumentParser:
    """Return the parser of this command."""
    usual = FeatureTraining()
    made = argparse.ArgumentParser(prog="python -m gpu_backend.training.quality.train_features", description=__doc__)
    add = made.add_argument
    add("--out", type=Path, required=True, metavar="FILE", help="the file to write, .safetensors")
    add("--steps", type=int, default=usual.steps, help=f"batches to learn from (default: {usual.steps})")
    add("--batch", type=int, default=usual.batch, help=f"pictures in each (default: {usual.batch})")
    add("--rate", type=float, default=usual.rate, help=f"highest learning rate (default: {usual.rate})")
    add("--side", type=int, default=usual.shape.side, help=f"pixels it looks at (default: {usual.shape.side})")
    add("--resolution", type=int, default=usual.resolution, help=f"pixels drawn (default: {usual.resolution})")
    add("--checked", type=int, default=usual.checked, help=f"fresh pictures to check on (default: {usual.checked})")
    add("--seed", type=int, default=usual.seed, help=f"of pictures and weights (default: {usual.seed})")
    add("--device", default="auto", help="auto, cpu, cuda or cuda:1 (default: auto)")
    return made


def run(words: Sequence[str] | None = None, world: World | None = None) -> int:
    """Train, write the file, print the skill of the network."""
    made = parser()
    options = made.parse_args(words)
    usual = FeatureShape()
    if options.side < 8 or options.side % (1 << (len(usual.widths) - 1)):
        made.error(f"--side must be a multiple of {1 << (len(usual.widths) - 1)}, not {options.side}")
    if min(options.steps, options.batch, options.checked, options.resolution) < 1 or options.seed < 0:
        made.error("--steps, --batch, --checked and --resolution are at least 1, --seed at least 0")
    training = FeatureTraining(
        shape=FeatureShape(side=options.side),
        steps=options.steps,
        batch=options.batch,
        rate=options.rate,
        resolution=options.resolution,
        checked=options.checked,
        seed=options.seed,
    )
    start = time.monotonic()

    def progress(step: int, error: float) -> None:
        left = (time.monotonic() - start) / step * (training.steps - step)
        sys.stderr.write(f"step {step} of {training.steps}, squared error {error:.4f}, {left:.0f} s left\n")

    try:
        network, skill = train_on_world(world or ProceduralWorld(), training, torch_device(options.device), progress)
        write_features(network, skill, options.out)
    except LoomError as error:
        sys.stderr.write(printable(f"{made.prog}: {error.sentence}") + "\n")
        return 2
    sys.stdout.write("".join(f"{name:<20}{share:>7.3f} of its variance explained\n" for name, share in skill.items()))
    return 0


if __name__ == "__main__":
    sys.exit(run())

"""``python -m gpu_backend.training.quality.report MODEL --features FILE``: how good a model of the world is."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from gpu_backend.plan.plan import Precision
from gpu_backend.renderer import open_renderer
from gpu_backend.training.quality.feature_file import read_features
from gpu_backend.training.quality.figures import tell_figures
from gpu_backend.training.quality.metrics import quality_of
from gpu_backend.training.quality.precision_recall import NEIGHBOURS
from gpu_backend.training.quality.reading import FeatureReader, torch_device
from gpu_backend.training.quality.set_progress import SetProgress
from gpu_backend.training.quality.world_source import World, world_for


def parser() -> argparse.ArgumentParser:
    """Return the parser of this command."""
    made = argparse.ArgumentParser(prog="python -m gpu_backend.training.quality.report", description=__doc__)
    add = made.add_argument
    add("model", type=Path, metavar="MODEL", help="the model file")
    add("--features", type=Path, required=True, metavar="FILE", help="from train_features")
    add("--count", type=int, default=10000, help="pictures in each set (default: 10000)")
    add("--seed", type=int, default=0, help="another one gives other pictures (default: 0)")
    add("--psi", type=float, default=1.0, help="truncation (default: 1, none)")
    add("--batch", type=int, default=64, help="pictures at a time (default: 64)")
    add("--device", default="auto", help="auto, cpu, cuda or cuda:1 (default: auto)")
    precisions = get_args(Precision)
    add("--precision", choices=precisions, default="fp16", help="of the model's pictures on a GPU (default: fp16)")
    add("--out", type=Path, metavar="FILE", help="write the metrics there as JSON")
    return made


def run(words: Sequence[str] | None = None, world: World | None = None) -> int:
    """Measure, print a table, write JSON."""
    made = parser()
    options = made.parse_args(words)
    if options.count <= NEIGHBOURS or options.batch < 1 or options.seed < 0:
        made.error(f"--count is more than {NEIGHBOURS}, --batch at least 1, --seed at least 0")
    return tell_figures(made.prog, options.out, lambda: _measured(options, world))


def _measured(options: argparse.Namespace, world: World | None) -> tuple[list[str], dict[str, Any]]:
    network, _ = read_features(options.features)
    device = torch_device(options.device)
    with contextlib.ExitStack() as stack:
        renderer = open_renderer(options.model, options.device, precision=options.precision)
        stack.callback(renderer.close)
        metrics = quality_of(
            renderer,
            world or stack.enter_context(world_for(2 * options.count, device)),
            FeatureReader(network, device),
            count=options.count,
            seed=options.seed,
            psi=options.psi,
            batch=options.batch,
            device=device,
            told=SetProgress(options.count).tell,
        )
    said = {
        "model": renderer.facts.name,
        "sha256": renderer.facts.model_id,
        "precision": renderer.device.precision,
        **metrics.to_json(),
    }
    return list(metrics.table()), said


if __name__ == "__main__":
    sys.exit(run())

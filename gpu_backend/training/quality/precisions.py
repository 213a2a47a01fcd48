"""``python -m gpu_backend.training.quality.precisions MODEL --features FILE``: a model's Frechet distance in fp8 etc.

The distance is that of `gpu_backend.training.quality.report`, with the same latents and real pictures for each.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from gpu_backend.argument_types import names_of
from gpu_backend.errors import LoomError
from gpu_backend.model import Model, read_model
from gpu_backend.plain_text import printable
from gpu_backend.plan.plan import Precision
from gpu_backend.renderer import Renderer
from gpu_backend.training.quality.feature_file import read_features
from gpu_backend.training.quality.figures import tell_figures
from gpu_backend.training.quality.frechet import Gaussian, gaussian_of
from gpu_backend.training.quality.generated import generated_batches
from gpu_backend.training.quality.metrics import features_of, real_pictures
from gpu_backend.training.quality.precision_comparison import compare_precisions, precision_table
from gpu_backend.training.quality.reading import FeatureReader, torch_device
from gpu_backend.training.quality.reference_file import ReferenceFacts, file_digest, read_reference, write_reference
from gpu_backend.training.quality.set_progress import SetProgress
from gpu_backend.training.quality.world_source import ProceduralWorld, World, world_for

_LEAST = 20
"""Pictures that the jackknife's groups need."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of this command."""
    made = argparse.ArgumentParser(prog="python -m gpu_backend.training.quality.precisions", description=__doc__)
    add = made.add_argument
    add("model", type=Path, metavar="MODEL", help="the model file")
    add("--features", type=Path, required=True, metavar="FILE", help="from train_features")
    add(
        "--reference",
        type=Path,
        metavar="FILE",
        help="statistics of the real pictures: read, or written if there is no such file (default: drawn, not kept)",
    )
    add(
        "--precision",
        type=names_of(get_args(Precision)),
        default=("fp32", "fp16", "fp8"),
        metavar="LIST",
        help="the first is what the others are compared with (default: fp32,fp16,fp8; the processor has fp32 only)",
    )
    add("--count", type=int, default=10000, help="pictures of each precision, and real ones (default: 10000)")
    add("--seed", type=int, default=0, help="another one gives other pictures (default: 0)")
    add("--psi", type=float, default=1.0, help="truncation (default: 1, none)")
    add("--batch", type=int, default=64, help="pictures at a time (default: 64)")
    add("--device", default="auto", help="auto, cpu, cuda or cuda:1 (default: auto)")
    add("--out", type=Path, metavar="FILE", help="write the figures there as JSON")
    return made


def run(words: Sequence[str] | None = None, world: World | None = None) -> int:
    """Measure, print a table, write JSON."""
    made = parser()
    options = made.parse_args(words)
    if options.count < _LEAST or options.batch < 1 or options.seed < 0:
        made.error(f"--count is at least {_LEAST}, --batch at least 1, --seed at least 0")
    return tell_figures(made.prog, options.out, _Measurement(options, world).run)


class _Measurement:
    """One run of the command."""

    def __init__(self, options: argparse.Namespace, world: World | None) -> None:
        self._options, self._world = options, world
        self._seconds: dict[str, float] = {}

    def run(self) -> tuple[list[str], dict[str, Any]]:
        """Return the table, and the same as JSON-able data."""
        options = self._options
        network, _ = read_features(options.features)
        device = torch_device(options.device)
        reader = FeatureReader(network, device)
        model = read_model(options.model)
        with self._timed("real pictures"):
            real = self._real(reader, model.facts.resolution, device)
        features: list[tuple[str, NDArray[np.float64]]] = []
        for precision in options.precision:
            with self._timed(precision):
                found = self._features(reader, model, precision)
            if found is not None:
                features.append((precision, found))
        if not features:
            raise LoomError(f"No picture was rendered: this device has none of {', '.join(options.precision)}.")
        rows = compare_precisions(real, features)
        said = {
            "model": model.facts.name,
            "sha256": model.facts.model_id,
            "device": self._device_name,
            "count": options.count,
            "seed": options.seed,
            "psi": options.psi,
            "precisions": [row.to_json() for row in rows],
            "seconds": self._seconds,
        }
        first = options.seed * options.count
        head = (
            f"{model.facts.name} on {self._device_name}: {options.count} pictures of the seeds {first} to "
            f"{first + options.count - 1}, psi {options.psi:g}, against {options.count} real ones"
        )
        times = ", ".join(f"{name} {seconds:.1f}" for name, seconds in self._seconds.items())
        return [head, "", *precision_table(rows), "", f"seconds: {times}"], said

    def _real(self, reader: FeatureReader, resolution: int, device: torch.device) -> Gaussian:
        """Read the statistics of the real pictures, or draw these."""
        options = self._options
        facts = ReferenceFacts(
            network=file_digest(options.features),
            world=type(self._world).__name__ if self._world is not None else ProceduralWorld.__name__,
            count=options.count,
            seed=2 * options.seed + 1,
            batch=options.batch,
            resolution=resolution,
        )
        if options.reference is not None and options.reference.exists():
            return read_reference(options.reference, facts)
        with contextlib.ExitStack() as stack:
            world = self._world or stack.enter_context(world_for(options.count, device))
            pictures = real_pictures(world, facts.count, facts.batch, facts.seed, resolution, device)
            gaussian = gaussian_of(features_of(reader, pictures, "real", SetProgress(options.count).tell))
        if options.reference is not None:
            write_reference(gaussian, facts, options.reference)
        return gaussian

    def _features(self, reader: FeatureReader, model: Model, precision: Precision) -> NDArray[np.float64] | None:
        """Return the features of the generated pictures; None where the device renders in another precision."""
        options = self._options
        with contextlib.closing(Renderer(model, options.device, precision=precision)) as renderer:
            self._device_name = renderer.device.name
            if renderer.device.precision != precision:
                other = f"{renderer.device.name} renders this model in {renderer.device.precision} instead"
                sys.stderr.write(printable(f"{precision} left out: {other}") + "\n")
                return None
            pictures = generated_batches(
                renderer, options.count, options.batch, options.seed * options.count, options.psi
            )
            return features_of(reader, pictures, precision, SetProgress(options.count).tell)

    @contextlib.contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        self._seconds[name] = round(time.monotonic() - start, 1)


if __name__ == "__main__":
    sys.exit(run())

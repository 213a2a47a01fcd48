"""Fit draft readouts to a model: ``python -m gpu_backend.training.draft_readouts MODEL [--latents 64]``.

For each useful draft side S: ridge regression from the features of block S to the full picture, box-filtered to
S x S pixels::

    minimise over W, b    sum over pixels |W x + b - y|^2 + ridge |W|^2

Then channels are left out, the one whose loss costs least first (optimal brain surgeon: Hassibi and Stork 1993), until
CHANNELS are left: a draft then computes only these. With A the sums of the features' products plus the ridge, leaving
out channel i costs |W_i|^2 / (A^-1)_ii.

`gpu_backend.model.draft_file` writes the result beside the model, where `read_model` finds it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpu_backend.device import make_executor
from gpu_backend.errors import LoomError
from gpu_backend.model import Model, read_model
from gpu_backend.model.draft_file import Readout, Readouts, draft_path, readout_channels, write_readouts
from gpu_backend.model_runner import ModelRunner
from gpu_backend.recipe import Noise
from gpu_backend.renderer.renderer import PLAN_BUDGET_NBYTES, Renderer

LEAST_PX = 64
"""Minimum side; smaller drafts are never shown."""

CHANNELS = 96
"""Channels that a readout reads at most. Of the bundled model's 256 at 64 px these cost 0.3 dB, and 64 cost 0.7 dB."""

_DROPPED_AT_ONCE = 1 / 32
"""Part of the channels that is left out between two solutions."""

_RIDGE = 1e-5
"""Ridge, relative to the mean square of the features."""

_PSI = (0.5, 1.0)
"""Range of truncation psi for the random latents, as in interactive use."""


class _Regression:
    """Normal equations of one side: sums over pixels of features (with an appended 1) and the target."""

    def __init__(self, channels: int, outputs: int) -> None:
        self._squares = np.zeros((channels + 1, channels + 1))
        self._products = np.zeros((channels + 1, outputs))

    def add(self, features: NDArray[np.float32], picture: NDArray[np.float32]) -> None:
        """Accumulate (channels, S, S) features and the (outputs, R, R) picture."""
        side, outputs = features.shape[1], picture.shape[0]
        step = picture.shape[1] // side
        x = features.reshape(len(features), -1).astype(np.float64)
        x = np.vstack([x, np.ones(x.shape[1])])
        y = picture.reshape(outputs, side, step, side, step).mean((2, 4)).reshape(outputs, -1).astype(np.float64)
        self._squares += x @ x.T
        self._products += x @ y.T

    def solve(self, most: int) -> Readout:
        """Return the readout of `most` channels at most."""
        count = len(self._squares)
        ridge = _RIDGE * np.trace(self._squares) / count * np.eye(count)
        ridge[-1, -1] = 0.0
        squares = self._squares + ridge
        kept = np.arange(count)  # the appended 1 is the last, and stays
        while True:
            part = squares[np.ix_(kept, kept)]
            solved = np.linalg.solve(part, self._products[kept])
            surplus = len(kept) - 1 - most
            if surplus <= 0:
                break
            losses = np.square(solved[:-1]).sum(1) / np.diag(np.linalg.inv(part))[:-1]
            dropped = np.argsort(losses)[: min(surplus, max(1, int(len(kept) * _DROPPED_AT_ONCE)))]
            kept = np.delete(kept, dropped)
        weights = solved.astype(np.float32)
        return Readout(kept[:-1].astype(np.int32), weights[:-1].T, weights[-1])


def fit_readouts(model: Model, latents: int, *, seed: int = 0, device: str = "cpu") -> Readouts:
    """Return readouts that are fitted to `latents` random latents.

    Raises
    ------
    LoomError
        If the network has no drafts, or the device cannot be used.
    """
    sides = [side for side in readout_channels(model.spec) if LEAST_PX <= side < model.spec.resolution]
    if not sides:
        raise LoomError(f"{model.facts.name} was not fitted: expected a network that gives drafts, but it has none.")
    channels = readout_channels(model.spec)
    sums = {side: _Regression(channels[side], model.spec.img_channels) for side in sides}
    random = np.random.default_rng(seed)
    executor, _ = make_executor(model, device, "fp32")
    runner, renderer = ModelRunner(model, executor, PLAN_BUDGET_NBYTES), Renderer(model, device, precision="fp32")
    try:
        for number in range(latents):
            z = random.standard_normal((1, model.spec.mapping.z_dim)).astype(np.float32)
            ws = renderer.map(z, psi=float(random.uniform(*_PSI)))
            layers: Mapping[str, NDArray[np.float32]] = runner.observe(ws, Noise())
            picture = np.clip(renderer.synthesize(ws)[0], -1.0, 1.0)
            for side in sides:
                sums[side].add(layers[f"synthesis.b{side}.conv1"][0], picture)
            sys.stdout.write(f"\r{number + 1} of {latents}")
            sys.stdout.flush()
        sys.stdout.write("\n")
    finally:
        renderer.close()
        runner.close()
    return {side: regression.solve(CHANNELS) for side, regression in sums.items()}


def main(words: Sequence[str] | None = None) -> int:
    """Fit readouts to the model of the command line and write them beside it; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m gpu_backend.training.draft_readouts", description=__doc__)
    parser.add_argument("model", type=Path, help="a StyleGAN2 model of the skip architecture")
    parser.add_argument("--latents", type=int, default=64, help="random pictures to fit to (64)")
    parser.add_argument("--device", default="cpu", help="what renders them (cpu)")
    arguments = parser.parse_args(words)
    try:
        model = read_model(arguments.model)
        fitted = fit_readouts(model, max(1, arguments.latents), device=arguments.device)
        target = draft_path(arguments.model)
        write_readouts(fitted, target, model.facts.model_id, model.spec)
    except LoomError as error:
        sys.stderr.write(f"{error.sentence}\n")
        return 1
    sys.stdout.write(f"{target}: drafts of {', '.join(f'{side} px' for side in sorted(fitted))}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Measure projections of the bundled model: ``python packaging/projection_benchmark.py [--known 4] [--unseen 4]``.

Known pictures are the model's own, of seeds from 100 on at psi 0.8. Unseen ones are drawings of the world that it
learnt from, of seeds beyond those of training. The table goes to ``assets/results/projection``, and medians to the
standard output; times are those of this machine.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from explorer_app.assets import bundled_model
from gpu_backend import (
    DifferentiableNetwork,
    PictureEncoder,
    Projection,
    ProjectionSettings,
    open_encoder,
    open_gradients,
    read_model,
)
from gpu_backend.training.world import draw, sample_factors

RESULTS = Path(__file__).resolve().parents[1] / "assets" / "results" / "projection"
PSI = 0.8
_FIRST_SEED = 100
_DRAWN_FROM = 2**33
"""Seeds of drawings; those of training are below."""
_WELL_DB = 28.0


def known_pictures(network: DifferentiableNetwork, count: int) -> Iterator[Tensor]:
    """Yield pictures (3, side, side) of the model itself."""
    for seed in range(_FIRST_SEED, _FIRST_SEED + count):
        z = torch.from_numpy(np.random.RandomState(seed).randn(1, network.spec.mapping.z_dim)).float()
        with torch.no_grad():
            w = network.mean_w + PSI * (network.map(z) - network.mean_w)
            picture = network.picture(w.expand(1, network.spec.num_ws, -1))[0].cpu()
        yield picture


def unseen_pictures(side: int, count: int) -> Iterator[Tensor]:
    """Yield drawings (3, side, side)."""
    factors = sample_factors(count, torch.Generator().manual_seed(5))
    yield from draw(factors, torch.arange(count) + _DRAWN_FROM, side, device="cpu").float()


def project(
    network: DifferentiableNetwork, encoder: PictureEncoder | None, target: Tensor, settings: ProjectionSettings
) -> dict[str, Any]:
    """Project a picture; return its PSNR in dB after each stage, and the time."""
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    projection = Projection(network, target.clamp(-1, 1).numpy(), settings, encoder)
    after: dict[str, float] = {}
    while not projection.report.is_done:
        before = projection.report.stage
        if projection.step().stage != before:
            after[f"{before}_db"] = round(projection.psnr(), 2)
    return {
        **after,
        "psnr_db": round(projection.psnr(), 2),
        "cpu_s": round(time.process_time() - began_cpu_s, 1),
        "wall_s": round(time.perf_counter() - began_s, 1),
    }


def main(words: Sequence[str] | None = None) -> None:
    """Project pictures of both kinds, and write the table after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--known", type=int, default=4, help="pictures of the model itself")
    parser.add_argument("--unseen", type=int, default=4, help="drawings that the model never saw")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--candidates", type=int, default=100, help="random latents to begin with")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--no-encoder", action="store_true", help="begin with random latents alone")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args(words)
    torch.set_num_threads(options.threads)
    model = read_model(bundled_model())
    network = open_gradients(model, device=options.device)
    encoder = None if options.no_encoder else open_encoder(model, network)
    settings = ProjectionSettings(options.steps, options.candidates)
    pictures = {
        "known": known_pictures(network, options.known),
        "unseen": unseen_pictures(network.spec.resolution, options.unseen) if options.unseen else iter(()),
    }
    table: list[dict[str, Any]] = []
    for kind, targets in pictures.items():
        for number, target in enumerate(targets):
            said = {"kind": kind, "number": number, "steps": options.steps, "candidates": options.candidates}
            table.append(said | {"encoder": encoder is not None} | project(network, encoder, target, settings))
            write_table(table)
        found = [row["psnr_db"] for row in table if row["kind"] == kind]
        if found:
            share = sum(value >= _WELL_DB for value in found) / len(found)
            _say(f"{kind}: median {statistics.median(found):.2f} dB, {share:.0%} from {_WELL_DB:.0f} dB on")


def write_table(rows: list[dict[str, Any]]) -> None:
    """Write rows as CSV, and print the last."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "projection.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, rows[0], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    _say("  ".join(f"{key} {value}" for key, value in rows[-1].items()))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

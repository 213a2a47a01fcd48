"""Measure projections of the bundled model: ``python packaging/projection_benchmark.py [--known 4] [--unseen 4]``.

Known pictures are the model's own, of seeds from 100 on at psi 0.8. Unseen ones are drawings of the world that it
learnt from, of seeds beyond those of training. Searches compare features as those of the window do. The table goes to
``assets/results/projection``, and medians to the standard output; times are those of this machine.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from explorer_app.assets import bundled_model
from gpu_backend import (
    DifferentiableNetwork,
    PhotoTuning,
    PictureEncoder,
    PictureFeatures,
    Projection,
    ProjectionSettings,
    open_encoder,
    open_features,
    open_gradients,
    read_model,
)
from gpu_backend.gradients.picture_loss import psnr
from gpu_backend.gradients.row_scales import RowScales
from gpu_backend.model.search_scales import SearchScales
from gpu_backend.training.world import draw, sample_factors

RESULTS = Path(__file__).resolve().parents[1] / "assets" / "results" / "projection"
PSI = 0.8
_FIRST_SEED = 100
_DRAWN_FROM = 2**33
"""Seeds of drawings; those of training are below."""
_WELL_DB = 28.0


def known_pictures(network: DifferentiableNetwork, number: int) -> Iterator[Tensor]:
    """Yield pictures (3, side, side) of the model itself."""
    for seed in range(_FIRST_SEED, _FIRST_SEED + number):
        z = torch.from_numpy(np.random.RandomState(seed).randn(1, network.spec.mapping.z_dim)).float()
        with torch.no_grad():
            w = network.mean_w + PSI * (network.map(z) - network.mean_w)
            picture = network.picture(w.expand(1, network.spec.num_ws, -1))[0].cpu()
        yield picture


def unseen_pictures(side: int, number: int) -> Iterator[Tensor]:
    """Yield drawings (3, side, side)."""
    factors = sample_factors(number, torch.Generator().manual_seed(5))
    yield from draw(factors, torch.arange(number) + _DRAWN_FROM, side, device="cpu").float()


class _WithScales(Projection):
    """A search from random latents alone, with the scales that an encoder brings."""

    def __init__(
        self,
        network: DifferentiableNetwork,
        targets: ArrayLike,
        settings: ProjectionSettings,
        features: PictureFeatures | None,
        scales: SearchScales,
    ) -> None:
        super().__init__(network, targets, settings, None, features)
        self._axes = network.tensor(scales.axes)
        self._scales = RowScales(network, self._axes, scales)


def project(
    network: DifferentiableNetwork,
    encoder: PictureEncoder | SearchScales | None,
    targets: Tensor,
    features: PictureFeatures | None,
    settings: ProjectionSettings,
    tuning_steps: int = 0,
    at_cpu_s: Sequence[float] = (),
) -> list[dict[str, Any]]:
    """Project pictures (count, 3, side, side) together; return for each its PSNR in dB after each stage, and times.

    With scales instead of an encoder the search begins with random latents. The PSNR is also that of the best so far
    after `at_cpu_s` seconds of processor time, of all pictures together.
    """
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    given = targets.clamp(-1, 1).numpy()
    if isinstance(encoder, SearchScales):
        projection: Projection = _WithScales(network, given, settings, features, encoder)
    else:
        projection = Projection(network, given, settings, encoder, features)
    after: list[dict[str, Any]] = [{f"at_{seconds:g}s_db": "" for seconds in at_cpu_s} for _ in targets]
    measuring_s, measuring_cpu_s, stages_s = 0.0, 0.0, time.perf_counter()
    due = sorted(at_cpu_s)

    def measure(column: str) -> None:
        nonlocal measuring_s, measuring_cpu_s
        now_s, now_cpu_s = time.perf_counter(), time.process_time()
        for row, value in zip(after, projection.psnr(), strict=True):
            row[column] = round(value, 2)
        measuring_s += time.perf_counter() - now_s
        measuring_cpu_s += time.process_time() - now_cpu_s

    while not projection.report.is_done:
        before = projection.report.stage
        if projection.step().stage != before and before != "drafts":
            if before != "scales":
                measure(f"{before}_db")
            if before in ("random", "scales"):
                stages_s = time.perf_counter()
        while due and time.process_time() - began_cpu_s - measuring_cpu_s >= due[0]:
            measure(f"at_{due.pop(0):g}s_db")
    ended_s, cpu_s = time.perf_counter(), time.process_time() - began_cpu_s - measuring_cpu_s
    for row, value in zip(after, projection.psnr(), strict=True):
        row |= {
            "psnr_db": round(value, 2),
            "cpu_s": round(cpu_s / len(targets), 2),
            "wall_s": round((ended_s - began_s - measuring_s) / len(targets), 3),
            "ms_a_step": round((ended_s - stages_s - measuring_s) / settings.steps / len(targets) * 1e3, 3),
        }
    if tuning_steps:
        for row, rows, target in zip(after, projection.rows, targets, strict=True):
            row |= tuned(network, rows, target, tuning_steps, features)
    return after


def tuned(
    network: DifferentiableNetwork,
    rows: NDArray[np.float32],
    target: Tensor,
    steps: int,
    features: PictureFeatures | None,
) -> dict[str, Any]:
    """Tune the weights to a picture (3, side, side); return its PSNR in dB and the time."""
    began_s = time.perf_counter()
    tuning = PhotoTuning(network, rows, target.clamp(-1, 1).numpy(), steps, features)
    while not tuning.step().is_done:
        pass
    return {"tuned_db": round(tuning.psnr, 2), "tuning_s": round(time.perf_counter() - began_s, 2)}


def alone(network: DifferentiableNetwork, encoder: PictureEncoder, targets: Tensor) -> list[float]:
    """Return the PSNR in dB of an encoder's answers to pictures (count, 3, side, side)."""
    pictures = targets.clamp(-1, 1).to(network.mean_w)
    with torch.no_grad():
        rows = encoder.encode(pictures)[:, None].expand(-1, network.spec.num_ws, -1)
        return [psnr(network.picture(one[None]), picture[None]) for one, picture in zip(rows, pictures, strict=True)]


def main(words: Sequence[str] | None = None) -> None:
    """Project pictures of both kinds, and write the table after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--known", type=int, default=4, help="pictures of the model itself")
    parser.add_argument("--unseen", type=int, default=4, help="drawings that the model never saw")
    parser.add_argument(
        "--network", type=Path, help="model whose encoder, beside it, is used (default: the bundled one)"
    )
    parser.add_argument("--out", type=Path, help="folder of the table")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--candidates", type=int, default=100, help="random latents to begin with")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--tune", type=int, default=0, metavar="N", help="also tune the weights to each in N steps")
    parser.add_argument("--batch", type=int, default=1, help="pictures that are searched together")
    parser.add_argument("--no-encoder", action="store_true", help="begin with random latents alone")
    parser.add_argument("--no-features", action="store_true", help="compare pixels and structure alone")
    parser.add_argument(
        "--at-cpu-s",
        type=float,
        nargs="*",
        default=[],
        metavar="S",
        help="also the PSNR after so many seconds of processor time",
    )
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args(words)
    torch.set_num_threads(options.threads)
    model = read_model(options.network or bundled_model())
    network = open_gradients(model, device=options.device)
    encoder = None if options.no_encoder else open_encoder(model, network)
    features = None if options.no_features else open_features(model, network, encoder)
    settings = ProjectionSettings(options.steps, options.candidates)
    pictures = {
        "known": known_pictures(network, options.known),
        "unseen": unseen_pictures(network.spec.resolution, options.unseen) if options.unseen else iter(()),
    }
    table: list[dict[str, Any]] = []
    for kind, targets in pictures.items():
        numbers = count(0)
        while some := list(islice(targets, options.batch)):
            together = torch.stack(some)
            found = project(network, encoder, together, features, settings, options.tune, options.at_cpu_s)
            answers = [math.nan] * len(some) if encoder is None else alone(network, encoder, together)
            for row, answer, number in zip(found, answers, numbers, strict=False):
                said = {"kind": kind, "number": number, "batch": len(some), "steps": options.steps}
                said |= {
                    "candidates": options.candidates,
                    "encoder": encoder is not None,
                    "features": features is not None,
                }
                table.append(said | {"encoder_db": round(answer, 2)} | row)
                write_table(table, options.out or RESULTS)
        rows = [row for row in table if row["kind"] == kind]
        if rows:
            share = sum(row["psnr_db"] >= _WELL_DB for row in rows) / len(rows)
            medians = ", ".join(
                f"{key} {statistics.median(row[key] for row in rows):.2f}"
                for key in ("encoder_db", "random_db", "w_db", "psnr_db", "tuned_db", "wall_s", "ms_a_step")
                if key in rows[0]
            )
            say(f"{kind}: medians {medians}; {share:.0%} from {_WELL_DB:.0f} dB on")


def write_table(rows: list[dict[str, Any]], folder: Path, name: str = "projection") -> None:
    """Write rows as CSV, and print the last."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, rows[0], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    say("  ".join(f"{key} {value}" for key, value in rows[-1].items()))


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

"""Measure searches against what is expected of them: ``python packaging/projection_goals.py --device cuda``.

``sizes``     seconds of whole searches, one picture after another: networks of public sizes with random weights,
              without features and with those of a discriminator of random weights, and the bundled model with and
              without its encoder
``starts``    PSNR of pictures of the bundled model (known) and of drawings (unseen), 16 that are searched together,
              after few steps from random latents, with and without the encoder's scales, and from the encoder
``drawings``  PSNR of drawings after w, after rows of w, and with weights that are tuned to them

Tables go to ``assets/results/projection``: ``whole_searches.csv``, ``starts.csv`` and ``drawings.csv``.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from encoder_benchmark import searched
from projection_benchmark import RESULTS, known_pictures, project, say, unseen_pictures, write_table

from explorer_app.assets import bundled_model
from gpu_backend import (
    DifferentiableNetwork,
    Model,
    PictureEncoder,
    ProjectionSettings,
    open_encoder,
    open_features,
    open_gradients,
    random_model,
    read_model,
)
from gpu_backend.bench.random_discriminator import discriminator_of
from gpu_backend.bench.shapes import SHAPES
from gpu_backend.gradients.picture_features import PictureFeatures
from gpu_backend.model.search_scales import SearchScales

PARTS = ("sizes", "starts", "drawings")


def whole_searches(
    name: str,
    network: DifferentiableNetwork,
    encoder: PictureEncoder | None,
    features: PictureFeatures | None,
    settings: ProjectionSettings,
    count: int,
    features_of: str = "none",
) -> list[dict[str, Any]]:
    """Return a row for each of `count` pictures of the network: the first holds what only a process's first needs."""
    table = []
    for number, target in enumerate(known_pictures(network, count)):
        (found,) = project(network, encoder, target[None], features, settings)
        row: dict[str, Any] = {"network": name, "side": network.spec.resolution, "encoder": encoder is not None}
        row |= {"features": features_of, "number": number, "steps": settings.steps}
        table.append(row | {key: found[key] for key in ("psnr_db", "wall_s", "ms_a_step")})
    return table


def time_sizes(names: Sequence[str], device: str, settings: ProjectionSettings, count: int, folder: Path) -> None:
    """Write the times of whole searches, of the bundled model last."""
    table: list[dict[str, Any]] = []
    for name in names:
        network = open_gradients(random_model(SHAPES[name]), device=device)
        for with_discriminator in (False, True):
            features, features_of = None, "none"
            if with_discriminator:
                stored = discriminator_of(SHAPES[name])
                features, features_of = PictureFeatures.of_discriminator(stored, network.mean_w), "discriminator"
            table += whole_searches(name, network, None, features, settings, count, features_of)
            write_table(table, folder, "whole_searches")
        del network
    model = read_model(bundled_model())
    network = open_gradients(model, device=device)
    shipped = open_encoder(model, network)
    features = open_features(model, network, shipped)
    # The bundled file has no discriminator.
    features_of = "none" if features is None else "encoder"
    for encoder in (None, shipped) if shipped is not None else (None,):
        table += whole_searches("bundled", network, encoder, features, settings, count, features_of)
        write_table(table, folder, "whole_searches")
    columns = ("network", "encoder", "features")
    for key in dict.fromkeys(tuple(row[column] for column in columns) for row in table):
        first, *later = (row["wall_s"] for row in table if tuple(row[column] for column in columns) == key)
        start = "from the encoder" if key[1] else "from random latents"
        if key[2] == "discriminator":
            start += " with a discriminator's features"
        median = f", later ones {statistics.median(later):.2f} s" if later else ""
        say(f"{key[0]}, {settings.steps} steps {start}: the first {first:.2f} s{median}")


def compare_starts(
    model: Model, network: DifferentiableNetwork, pictures: int, steps: Sequence[int], folder: Path
) -> None:
    """Write the PSNR after few steps from each start."""
    encoders: dict[str, PictureEncoder | SearchScales | None] = {"random latents": None}
    if (shipped := open_encoder(model, network)) is not None:
        if shipped.scales is not None:
            encoders["random latents, the encoder's scales"] = shipped.scales
        encoders["the shipped encoder"] = shipped
    targets = {
        "known": torch.stack(list(known_pictures(network, pictures))),
        "unseen": torch.stack(list(unseen_pictures(network.spec.resolution, pictures))),
    }
    searched(model, network, targets, encoders, steps, folder, "starts")


def project_drawings(
    model: Model, network: DifferentiableNetwork, settings: ProjectionSettings, tuning: int, count: int, folder: Path
) -> None:
    """Write the PSNR of drawings after each stage, one after another."""
    encoder = open_encoder(model, network)
    features = open_features(model, network, encoder)
    table: list[dict[str, Any]] = []
    for number, target in enumerate(unseen_pictures(network.spec.resolution, count)):
        (found,) = project(network, encoder, target[None], features, settings, tuning)
        table.append({"number": number, "steps": settings.steps, "tuning_steps": tuning} | found)
        write_table(table, folder, "drawings")
    medians = {key: statistics.median(row[key] for row in table) for key in ("psnr_db", "tuned_db", "tuning_s")}
    say(
        f"drawings, medians: rows of w {medians['psnr_db']:.2f} dB, tuned {medians['tuned_db']:.2f} dB"
        f" in {medians['tuning_s']:.2f} s more"
    )


def main(words: Sequence[str] | None = None) -> None:
    """Run the parts that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--shapes", nargs="*", default=["ffhq1024", "ffhq256"], choices=SHAPES, metavar="SHAPE")
    parser.add_argument("--steps", type=int, default=1000, help="of whole searches")
    parser.add_argument("--candidates", type=int, default=500, help="random latents of whole searches and of drawings")
    parser.add_argument("--count", type=int, default=3, help="whole searches of each network")
    parser.add_argument("--pictures", type=int, default=16, help="of each kind, from each start")
    parser.add_argument("--few-steps", type=int, nargs="+", default=[40, 80], metavar="STEPS", help="from each start")
    parser.add_argument("--drawings", type=int, default=4)
    parser.add_argument("--drawing-steps", type=int, default=300)
    parser.add_argument("--tuning-steps", type=int, default=150)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the tables")
    options = parser.parse_args(words)
    began_s = time.perf_counter()
    if "sizes" in options.parts:
        settings = ProjectionSettings(options.steps, options.candidates)
        time_sizes(options.shapes, options.device, settings, options.count, options.out)
        say(f"sizes took {time.perf_counter() - began_s:.0f} s")
    model = read_model(bundled_model())
    network = open_gradients(model, device=options.device)
    if "starts" in options.parts:
        compare_starts(model, network, options.pictures, options.few_steps, options.out)
        say(f"starts, too: {time.perf_counter() - began_s:.0f} s")
    if "drawings" in options.parts:
        settings = ProjectionSettings(options.drawing_steps, options.candidates)
        project_drawings(model, network, settings, options.tuning_steps, options.drawings, options.out)
        say(f"drawings, too: {time.perf_counter() - began_s:.0f} s")


if __name__ == "__main__":
    main()

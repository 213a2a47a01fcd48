"""Measure what an encoder is worth on the bundled model: ``python packaging/encoder_benchmark.py --device cuda``.

``training``  PSNR of the answers of an encoder after some seconds of training, on pictures of the model (known) and on
              drawings that it never saw (unseen), without a search. The encoder is kept beside the table
``searches``  PSNR after searches of some steps from random latents alone, from the shipped encoder, and from that one
``late``      PSNR, SSIM and distance by features after searches of some steps from the shipped encoder's answer, one
              picture after another, that compare features in all steps, in a last share of them, or in none

Tables go to ``assets/results/projection``; times are those of this machine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent))

from projection_benchmark import RESULTS, alone, known_pictures, project, unseen_pictures, write_table

from explorer_app.assets import bundled_model
from gpu_backend import (
    DifferentiableNetwork,
    EncoderFile,
    EncoderSettings,
    Model,
    PictureEncoder,
    PictureFeatures,
    Projection,
    ProjectionSettings,
    Renderer,
    RendersSamples,
    open_encoder,
    open_encoder_training,
    open_features,
    open_gradients,
    read_encoder,
    read_model,
    write_encoder,
)
from gpu_backend.gradients.picture_loss import psnr, ssim
from gpu_backend.model.search_scales import SearchScales

_FILE = "trained.encoder.safetensors"
_CANDIDATES = 500
"""Random latents that a search compares; an eighth of them with an encoder."""
_LATE_SHARES = (0.5, 0.3, 0.2)
"""Last shares of the steps that compare features."""


def trained(
    model: Model,
    network: DifferentiableNetwork,
    pictures: Mapping[str, Tensor],
    settings: EncoderSettings,
    at_s: Sequence[float],
    folder: Path,
) -> EncoderFile:
    """Train an encoder, and write the table and the encoder; `at_s` are seconds after which its answers are judged."""
    device = network.device.type
    training = open_encoder_training(model, settings, device=device)
    table: list[dict[str, Any]] = []
    due = sorted(at_s)
    judging_s = 0.0
    with Renderer(model, device) as renderer:
        began_s = time.perf_counter()
        while not training.report.is_done:
            report = training.step(cast("RendersSamples", renderer))
            took_s = time.perf_counter() - began_s - judging_s
            if training.found is None or not (report.is_done or (due and took_s >= due[0])):
                continue
            due = [seconds for seconds in due if seconds > took_s]
            row: dict[str, Any] = {"seconds": round(took_s, 1), "steps": report.step, "pictures": report.pictures}
            row["error_of_w"] = round(training.found.error, 4)
            for kind, targets in pictures.items():
                values = alone(network, PictureEncoder.from_file(training.found, network.mean_w), targets)
                row |= {f"{kind}_db": round(statistics.median(values), 2), f"{kind}_least_db": round(min(values), 2)}
            table.append(row)
            write_table(table, folder, "training")
            judging_s = time.perf_counter() - began_s - took_s
    assert training.found is not None
    write_encoder(training.found, folder / _FILE, model.facts.model_id, model.spec.w_dim, model.spec.num_ws)
    return training.found


def searched(
    model: Model,
    network: DifferentiableNetwork,
    pictures: Mapping[str, Tensor],
    encoders: Mapping[str, PictureEncoder | SearchScales | None],
    steps: Sequence[int],
    folder: Path,
    table_name: str = "searches",
) -> None:
    """Write the table of searches, those of a kind of pictures together; of scales, from random latents."""
    features = open_features(model, network, open_encoder(model, network))
    table: list[dict[str, Any]] = []
    for kind, targets in pictures.items():
        for count in steps:
            for name, encoder in encoders.items():
                found = project(network, encoder, targets, features, ProjectionSettings(count, _CANDIDATES))
                values = [row["psnr_db"] for row in found]
                table.append(
                    {
                        "kind": kind,
                        "pictures": len(targets),
                        "steps": count,
                        "from": name,
                        "median_db": round(statistics.median(values), 2),
                        "least_db": round(min(values), 2),
                        "wall_s": found[0]["wall_s"],
                    }
                )
                write_table(table, folder, table_name)


class _Descents(Projection):
    """Descents of all rows of w to one picture (1, 3, side, side)."""

    def __init__(self, network: DifferentiableNetwork, target: Tensor, encoder: PictureEncoder) -> None:
        super().__init__(network, target.numpy(), ProjectionSettings(candidates=1), encoder)
        for _ in self._scales.measure(passes=self._passes):
            pass

    @property
    def answer(self) -> Tensor:
        """The encoder's, (1, num_ws, w_dim)."""
        return self._shared(self._guesses()[:, None])

    def best_after(
        self, rows: Tensor, features: PictureFeatures | None, numbers: Sequence[int]
    ) -> Iterator[tuple[int, Tensor, float]]:
        """Descend from rows (1, num_ws, w_dim), with a new L-BFGS.

        Yields numbers of steps, the best rows after them by the loss of this descent, and seconds of processor time.
        """
        self._features, self._loss, self._best_side = features, None, 0
        began_s = time.process_time()
        for done in self._descend("rows", self._coordinates(rows)[:, None], self._full, 0, max(numbers)):
            if done.step in numbers:
                yield done.step, self._best.clone(), time.process_time() - began_s


def searched_late(
    network: DifferentiableNetwork,
    pictures: Mapping[str, Tensor],
    encoder: PictureEncoder,
    features: PictureFeatures,
    steps: Sequence[int],
    folder: Path,
) -> None:
    """Write the table of searches that compare features in all steps, in a last share of them, or in none."""
    table: list[dict[str, Any]] = []
    for kind, targets in pictures.items():
        for number, picture in enumerate(targets.clamp(-1, 1)):
            target = picture[None].to(network.mean_w)
            wanted = features.wanted(target)
            descents = _Descents(network, picture[None], encoder)
            switches = {(count, share): round(count * (1.0 - share)) for count in steps for share in _LATE_SHARES}
            # One descent without features begins all that compare them late.
            marks = sorted({*steps, *switches.values()})
            plain = {done: (rows, s) for done, rows, s in descents.best_after(descents.answer, None, marks)}
            found = {(count, 0.0): plain[count] for count in steps}
            for count, rows, spent_s in descents.best_after(descents.answer, features, steps):
                found[count, 1.0] = rows, spent_s
            for (count, share), first in switches.items():
                before, before_s = plain[first]
                for _, rows, spent_s in descents.best_after(before, features, [count - first]):
                    found[count, share] = rows, before_s + spent_s
            for (count, share), (rows, spent_s) in sorted(found.items(), key=lambda item: (item[0][0], -item[0][1])):
                with torch.no_grad():
                    shown = network.picture(rows)
                    row: dict[str, Any] = {"kind": kind, "number": number, "steps": count, "features_share": share}
                    row |= {"psnr_db": round(psnr(shown, target), 2), "ssim": round(float(ssim(shown, target)), 4)}
                    row |= {"distance": f"{float(features.distance(shown, wanted)):.3g}", "cpu_s": round(spent_s, 1)}
                table.append(row)
                write_table(table, folder, "late_features")


def main(words: Sequence[str] | None = None) -> None:
    """Run the parts that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--parts", nargs="+", default=["training", "searches"], choices=("training", "searches", "late")
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--pictures", type=int, default=16, help="of each kind")
    parser.add_argument("--steps", type=int, default=5600, help="of the training")
    parser.add_argument("--at", type=float, nargs="*", default=[60.0, 120.0, 180.0], metavar="S")
    parser.add_argument("--searches", type=int, nargs="+", default=[40, 100, 200, 500, 1000], metavar="STEPS")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the tables")
    options = parser.parse_args(words)
    model = read_model(bundled_model())
    network = open_gradients(model, device=options.device)
    pictures = {
        "known": torch.stack(list(known_pictures(network, options.pictures))),
        "unseen": torch.stack(list(unseen_pictures(network.spec.resolution, options.pictures))),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    if "training" in options.parts:
        trained(model, network, pictures, EncoderSettings(options.steps), options.at, options.out)
    if "searches" in options.parts:
        encoders: dict[str, PictureEncoder | SearchScales | None] = {"random latents": None}
        if (shipped := open_encoder(model, network)) is not None:
            encoders["the shipped encoder"] = shipped
        if (options.out / _FILE).is_file():
            stored = read_encoder(options.out / _FILE, model.facts.model_id, model.spec.w_dim, model.spec.num_ws)
            encoders["the trained encoder"] = PictureEncoder.from_file(stored, network.mean_w)
        searched(model, network, pictures, encoders, options.searches, options.out)
    if "late" in options.parts:
        encoder = open_encoder(model, network)
        features = open_features(model, network, encoder)
        if encoder is None or features is None:
            raise SystemExit("Late features are measured from an encoder's answer, and this model has no encoder.")
        searched_late(network, pictures, encoder, features, options.searches, options.out)


if __name__ == "__main__":
    main()

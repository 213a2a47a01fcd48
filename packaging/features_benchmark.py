"""Time features of a discriminator on a GPU: ``python packaging/features_benchmark.py``.

Maps of a picture, the distance from those of another one, and the gradient of the picture, as a step of a search has
them, in one CUDA graph, with random weights. The table ``feature_times.csv`` has milliseconds, medians, of

``fp32``    torch, grouped convolutions for filters, fp32 or TF32 as torch is set
``fp16``    torch, fp16 with channels last, filters that are part of the weights
``kernels`` own kernels

and with ``--kernels`` ``feature_kernels.csv`` has microseconds of each kernel of a step, as the profiler of torch sees
them without a graph. Tables go to ``assets/results/projection``.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent))

from projection_benchmark import RESULTS, say, write_table

from gpu_backend import DifferentiableNetwork, open_gradients, random_model
from gpu_backend.bench.random_discriminator import discriminator_of
from gpu_backend.bench.shapes import SHAPES, Shape
from gpu_backend.gradients.discriminator_layers import DiscriminatorLayers
from gpu_backend.gradients.picture_features import PictureFeatures
from gpu_backend.gradients.picture_terms import PictureTerms
from gpu_backend.gradients.step_graph import StepGraph

WAYS = ("fp32", "fp16", "kernels")
_CALLS = 20
"""Between two events, so that the host's time between replays is not measured."""


def opened(network: DifferentiableNetwork, shape: Shape) -> dict[str, tuple[PictureFeatures, PictureTerms | None]]:
    """Return features by each way with what compares their maps; raises SystemExit if own kernels refuse."""
    stored = discriminator_of(shape)
    in_fp32 = PictureFeatures(DiscriminatorLayers(stored, network.mean_w, in_half=False, folded=False))
    in_fp16 = PictureFeatures.of_discriminator(stored, network.mean_w)
    own = network.own_kernels
    passes = None if own is None else own.passes(network, 1, draft_side=0, draft_samples=1)
    if own is None or passes is None:
        raise SystemExit(f"Own kernels do not run here: {network.kernels_refusal or 'the log says why'}.")
    by_kernels = own.features(network, in_fp16, 1)
    if by_kernels is in_fp16:
        raise SystemExit("Own kernels do not compute features here: the log says why.")
    terms = passes.terms
    return {"fp32": (in_fp32, terms), "fp16": (in_fp16, terms), "kernels": (by_kernels, terms)}


def step_of(
    features: PictureFeatures, terms: PictureTerms | None, picture: Tensor, wanted: Tensor
) -> Callable[[], Tensor]:
    """Return what computes the gradient of a picture."""
    maps = features.wanted(wanted)

    def gradient() -> Tensor:
        free = picture.detach().requires_grad_()
        (found,) = torch.autograd.grad(features.distance(free, maps, terms).sum(), free)
        return found

    return gradient


def milliseconds(function: Callable[[], Tensor], repeats: int) -> list[float]:
    """Return the time of a call, several times."""
    found = []
    for _ in range(repeats):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(_CALLS):
            function()
        last.record()
        last.synchronize()
        found.append(first.elapsed_time(last) / _CALLS)
    return found


def kernel_times(function: Callable[[], Tensor], calls: int = 10) -> list[tuple[str, float, float]]:
    """Return names of kernels with their launches and microseconds a call, the longest first."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(calls):
            function()
        torch.cuda.synchronize()
    rows = [(event.key, event.count / calls, event.self_device_time_total / calls) for event in profile.key_averages()]
    return sorted((row for row in rows if row[2] > 0.0), key=lambda row: -row[2])


def main(words: Sequence[str] | None = None) -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", default=["ffhq1024", "ffhq256"], choices=SHAPES, metavar="SHAPE")
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--kernels", action="store_true", help="also the time of each kernel")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the tables")
    options = parser.parse_args(words)
    table: list[dict[str, Any]] = []
    kernels: list[dict[str, Any]] = []
    for name in options.shapes:
        network = open_gradients(random_model(SHAPES[name]), device="cuda")
        side = SHAPES[name].resolution
        picture, wanted = (torch.rand((1, 3, side, side), device="cuda") * 2 - 1 for _ in range(2))
        exact: Tensor | None = None
        for way, (features, terms) in opened(network, SHAPES[name]).items():
            if way not in options.ways:
                continue
            step = step_of(features, terms, picture, wanted)
            captured = StepGraph(step, captured=True, measured=way != "kernels")
            for _ in range(5):
                found = captured()
            exact = found.clone() if exact is None else exact
            cosine = float(torch.nn.functional.cosine_similarity(found.flatten(), exact.flatten(), 0))
            times = milliseconds(captured, options.repeats)
            row = {
                "network": name,
                "by": way,
                "ms": round(statistics.median(times), 4),
                "least_ms": round(min(times), 4),
            }
            table.append(row | {"cosine_with_first": round(cosine, 6)})
            say(f"{name}, {way}: {row['ms']:.3f} ms, cosine of the gradient {cosine:.5f}")
            write_table(table, options.out, "feature_times")
            if options.kernels:
                for key, count, us in kernel_times(step):
                    kernels.append(
                        {"network": name, "by": way, "kernel": key[:80], "launches": count, "us": round(us, 2)}
                    )
                write_table(kernels, options.out, "feature_kernels")
            del captured, step
        del network


if __name__ == "__main__":
    main()

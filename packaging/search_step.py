"""Time a step of a search for a picture on a GPU by own kernels: ``python packaging/search_step.py``.

Random weights, one picture. The table ``search_step.csv`` has milliseconds of CUDA graphs, medians, of

``network``  a pass to the picture and its way back to the rows of w
``pixels``   with the mean square and the structural similarity
``all``      with features of a discriminator, too

without L-BFGS and what the host does, and ``search_step_launches.csv`` every launch of ``all`` in order with its grid,
and microseconds, medians as the profiler of torch sees them without a graph. Tables go to
``assets/results/projection``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent))

from features_benchmark import milliseconds, opened
from projection_benchmark import RESULTS, say, write_table

from gpu_backend import DifferentiableNetwork, open_gradients, random_model
from gpu_backend.bench.shapes import SHAPES, Shape
from gpu_backend.gradients.network import NetworkPasses
from gpu_backend.gradients.picture_features import PictureFeatures
from gpu_backend.gradients.picture_loss import PictureLoss
from gpu_backend.gradients.step_graph import StepGraph

PARTS = ("network", "pixels", "all")
_CALLS = 6
"""That the profiler sees."""
_ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")


def steps_of(
    network: DifferentiableNetwork, passes: NetworkPasses, features: PictureFeatures, shape: Shape
) -> dict[str, Callable[[], Tensor]]:
    """Return what computes the gradient of rows of w, for each of `PARTS`."""
    generator = torch.Generator().manual_seed(0)
    size = 1, network.spec.num_ws, network.spec.w_dim
    ws = network.mean_w + (0.3 * torch.randn(size, generator=generator)).to(network.device)
    target = network.tensor(torch.rand((1, 3, shape.resolution, shape.resolution), generator=generator).numpy() * 2 - 1)

    def step_of(loss: PictureLoss | None) -> Callable[[], Tensor]:
        def gradient() -> Tensor:
            free = ws.detach().requires_grad_()
            picture = passes.picture(free)
            along = target if loss is None else loss.with_gradient(picture.detach())[1]
            (found,) = torch.autograd.grad(picture, free, along)
            return found

        return gradient

    return {
        "network": step_of(None),
        "pixels": step_of(PictureLoss(target, None, passes.terms)),
        "all": step_of(PictureLoss(target, features, passes.terms)),
    }


def launches_of(events: Sequence[dict[str, Any]], calls: int) -> list[dict[str, Any]]:
    """Return a row for each launch of a call, in order, from the profiler's events of so many calls.

    Raises ValueError if calls differ.
    """
    ours = sorted((event for event in events if event.get("cat") in _ON_GPU), key=lambda event: float(event["ts"]))
    count, rest = divmod(len(ours), calls)
    table = []
    for number in range(count):
        same = ours[number::count]
        names = {event["name"] for event in same}
        if rest or len(names) > 1:
            raise ValueError("the calls did not launch the same kernels")
        grid = same[0].get("args", {}).get("grid", ())
        row = {"number": number, "kernel": names.pop()[:80], "grid": " ".join(map(str, grid))}
        table.append(row | {"us": round(statistics.median(event["dur"] for event in same), 2)})
    return table


def profiled(step: Callable[[], Tensor]) -> list[dict[str, Any]]:
    """Return the launches of a step."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(_CALLS):
            step()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        return launches_of(json.loads(path.read_text(encoding="utf-8"))["traceEvents"], _CALLS)


def main(words: Sequence[str] | None = None) -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", default=["ffhq1024", "ffhq256"], choices=SHAPES, metavar="SHAPE")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the tables")
    options = parser.parse_args(words)
    times: list[dict[str, Any]] = []
    launches: list[dict[str, Any]] = []
    for name in options.shapes:
        network = open_gradients(random_model(SHAPES[name]), device="cuda")
        features, _ = opened(network, SHAPES[name])["kernels"]
        own = network.own_kernels
        passes = None if own is None else own.passes(network, 1, draft_side=0, draft_samples=1)
        if passes is None:
            raise SystemExit("Own kernels do not run here: the log says why.")
        for part, step in steps_of(network, passes, features, SHAPES[name]).items():
            captured = StepGraph(step, captured=True, measured=False)
            for _ in range(5):
                captured()
            found = milliseconds(captured, options.repeats)
            row = {"network": name, "part": part, "ms": round(statistics.median(found), 4)}
            times.append(row | {"least_ms": round(min(found), 4)})
            say(f"{name}, {part}: {row['ms']:.3f} ms")
            write_table(times, options.out, "search_step")
            if part == "all":
                launches += [{"network": name} | launch for launch in profiled(step)]
                write_table(launches, options.out, "search_step_launches")
            del captured
        del network


if __name__ == "__main__":
    main()

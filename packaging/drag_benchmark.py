"""Measure dragging on the bundled model: ``python packaging/drag_benchmark.py``.

The bundled model draws a world whose sun is a bright disc, so a drag of the sun has an exact answer: the sun is dragged
by a number of pixels, and a reader that knows nothing of the drag says where it is. A second judge is tracking through
pictures between the two latents. Tables and numbers go to ``assets/results/drag``; times are those of this machine.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import avg_pool2d

from explorer_app.assets import bundled_model
from gpu_backend import (
    DifferentiableNetwork,
    DragOptimizer,
    DragSettings,
    Handle,
    LatentStatistics,
    Model,
    latent_statistics,
    open_gradients,
    read_model,
)
from gpu_backend.gradients.picture_loss import psnr, ssim
from gpu_backend.gradients.tracking import track_through

RESULTS = Path(__file__).resolve().parents[1] / "assets" / "results" / "drag"
PSI = 0.8
LEAST_SUN = 0.3
"""Brightness of the sun above its surroundings, -1..1, from which its place can be read."""
_LEAST_LIGHT = 0.5
"""Brightness of the sun itself, -1..1: snow in the sun is darker."""
EDGES = {"crest": range(24, 112), "shore": range(136, 232)}
"""Rows in which the edges are that are dragged: of mountains against the sky, and of land against water."""
LEAST_EDGE = 0.25
"""Change of light, -1..1, from which an edge is clear."""
_FREE_PX = 48
"""A drag that freezes the rest leaves this much around the way of its point free."""
SUN_MARGIN = 40
HORIZON = 100
BETWEEN = 32
"""Pictures between the two latents that the judge sees."""
JUDGED_SIDE = 128
_AT_ONCE = 17
"""Pictures that are rendered together."""


def find_sun(picture: Tensor) -> tuple[float, float, float]:
    """Return x, y in pixels and the brightness above the surroundings of the sun in (1, 3, 256, 256).

    The disc is where a mean over 5 x 5 pixels exceeds one over 25 x 25 most; its place is the centroid of what exceeds
    half of that, within six pixels.
    """
    light = picture.mean(1, keepdim=True)
    near, around = (avg_pool2d(light, side, 1, side // 2, count_include_pad=False) for side in (5, 25))
    excess = near - around
    sky = torch.where(near >= _LEAST_LIGHT, excess, 0.0)[0, 0, :HORIZON]
    place = int(sky.argmax())
    y, x = divmod(place, sky.shape[1])
    top, left = max(0, y - 6), max(0, x - 6)
    window = excess[0, 0, top : y + 7, left : x + 7]
    weight = (window - 0.5 * float(sky.max())).clamp(min=0)
    rows = torch.arange(top, top + window.shape[0]).float()
    columns = torch.arange(left, left + window.shape[1]).float()
    total = max(float(weight.sum()), 1e-12)
    return (
        float((weight.sum(0) * columns).sum()) / total,
        float((weight.sum(1) * rows).sum()) / total,
        float(sky.max()),
    )


def rows_of(network: DifferentiableNetwork, seed: int) -> Tensor:
    """Return the rows (num_ws, w_dim) of a seed, truncated."""
    z = torch.from_numpy(np.random.RandomState(seed).randn(1, network.spec.mapping.z_dim)).float()
    with torch.no_grad():
        w = network.mean_w + PSI * (network.map(z) - network.mean_w)
    return w.expand(network.spec.num_ws, -1).cpu()


@torch.no_grad()
def picture_of(network: DifferentiableNetwork, rows: Tensor, side: int | None = None) -> Tensor:
    """Return the picture (1, 3, side, side), on the processor; None is the full side."""
    return network.picture(rows[None].to(network.device), side).cpu()


@torch.no_grad()
def pictures_between(network: DifferentiableNetwork, start: Tensor, end: Tensor) -> list[Tensor]:
    """Return the pictures that the judge sees, from the first to the last, each (1, 3, `JUDGED_SIDE`, ...)."""
    shares = torch.linspace(0, 1, BETWEEN + 2)[:, None, None]
    rows = (start + shares * (end - start)).to(network.device)
    return [picture for some in rows.split(_AT_ONCE) for picture in network.picture(some, JUDGED_SIDE).cpu().split(1)]


def find_edge(picture: Tensor, column: int, rows: range) -> tuple[float, float]:
    """Return the row of the strongest change of light along a column of (1, 3, 256, 256), and how strong it is, 0..2.

    The light of five columns; a change is the difference of the means of four pixels below and four above.
    """
    light = picture[0, :, :, column - 2 : column + 3].mean((0, 2))
    total = torch.cat([light.new_zeros(1), light.cumsum(0)])
    below, above = total[8:] - total[4:-4], total[4:-4] - total[:-8]
    change = ((below - above) / 4).abs()  # of the border below row index + 3
    place = int(change[rows.start : rows.stop].argmax()) + rows.start
    near = change[place - 2 : place + 3]
    weight = (near - near.min()).clamp(min=1e-6)
    centre = float((weight * torch.arange(place - 2, place + 3)).sum() / weight.sum())
    return centre + 3.5, float(change[place])


def drag_sun(
    model: Model,
    network: DifferentiableNetwork,
    known: LatentStatistics,
    seed: int,
    pixels: int,
    *,
    most_steps: int,
    is_frozen: bool = False,
) -> dict[str, Any] | None:
    """Drag a seed's sun sideways and return what came of it; None if the picture has no sun that can be read."""
    start = rows_of(network, seed)
    before = picture_of(network, start)
    x, y, brightness = find_sun(before)
    side = network.spec.resolution
    if brightness < LEAST_SUN or not SUN_MARGIN <= x < side - SUN_MARGIN or y > HORIZON - 10:
        return None
    target = (x + pixels if x < side / 2 else x - pixels, y)
    after, found = _dragged(model, network, known, (start, before), (x, y), target, most_steps, is_frozen)
    sun_x, sun_y, _ = find_sun(after)
    error = round(math.hypot(sun_x - target[0], sun_y - target[1]), 2)
    return {"seed": seed, "pixels": pixels, "sun_error_px": error} | found


def drag_edge(
    model: Model,
    network: DifferentiableNetwork,
    known: LatentStatistics,
    kind: str,
    seed: int,
    pixels: int,
    *,
    most_steps: int,
    is_frozen: bool = False,
) -> dict[str, Any] | None:
    """Drag the strongest edge of a seed's picture up, a crest's or a shore's; None if none is clear."""
    start = rows_of(network, seed)
    before = picture_of(network, start)
    rows = EDGES[kind]
    (y, strength), column = max(
        ((find_edge(before, x, rows), x) for x in range(64, 200, 8)), key=lambda item: item[0][1]
    )
    if strength < LEAST_EDGE or y - pixels < rows.start:
        return None
    point, target = (float(column), y), (float(column), y - pixels)
    after, found = _dragged(model, network, known, (start, before), point, target, most_steps, is_frozen)
    error = round(abs(find_edge(after, column, rows)[0] - target[1]), 2)
    return {"seed": seed, "pixels": pixels, f"{kind}_error_px": error} | found


def _dragged(
    model: Model,
    network: DifferentiableNetwork,
    known: LatentStatistics,
    begun: tuple[Tensor, Tensor],
    point: tuple[float, float],
    target: tuple[float, float],
    most_steps: int,
    is_frozen: bool,
) -> tuple[Tensor, dict[str, Any]]:
    """Drag a point from rows and their picture; return the picture afterwards, and what holds for any drag."""
    start, before = begun
    mask = _far_from(point, target, network.spec.resolution) if is_frozen else None
    drag = DragOptimizer(
        network, known, start.numpy(), model.facts.row_resolutions, [Handle(point, target)], DragSettings(mask=mask)
    )
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    report = drag.report
    while not report.is_settled and report.step < most_steps:
        report = drag.step()
    wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    end = torch.from_numpy(drag.rows)
    after = picture_of(network, end)
    judged, is_kept = _judge(network, start, end, point)
    handle = report.handles[0]
    kept = {}
    if mask is not None:
        frozen = torch.from_numpy(mask > 0)
        kept = {"frozen_db": round(psnr(after[..., frozen], before[..., frozen].clamp(-1, 1)), 2)}
    return after, kept | {
        "settled": report.is_settled,
        "lost": handle.is_lost,
        "steps": report.step,
        "cpu_s": round(cpu_s, 2),
        "wall_s": round(wall_s, 3),
        "judge_error_px": round(math.hypot(*(judged[0] - torch.tensor(target)).tolist()), 2),
        "judge_kept": bool(is_kept[0]),
        "own_tracker_error_px": round(math.hypot(handle.tracked[0] - target[0], handle.tracked[1] - target[1]), 2),
        "mse": round(float((after - before).square().mean()), 5),
        "ssim": round(float(ssim(after, before)[0]), 4),
    }


def _far_from(point: tuple[float, float], target: tuple[float, float], side: int) -> NDArray[np.float32]:
    """Return a mask (side, side): 0 within `_FREE_PX` of the way from a point to its target, 1 elsewhere."""
    y, x = np.mgrid[:side, :side].astype(np.float32)
    way = np.subtract(target, point).astype(np.float32)
    along = ((x - point[0]) * way[0] + (y - point[1]) * way[1]) / max(float(way @ way), 1e-9)
    along = np.clip(along, 0.0, 1.0)
    distance = np.hypot(x - point[0] - along * way[0], y - point[1] - along * way[1])
    return (distance > _FREE_PX).astype(np.float32)


@torch.no_grad()
def _judge(
    network: DifferentiableNetwork, start: Tensor, end: Tensor, point: tuple[float, float]
) -> tuple[Tensor, Tensor]:
    """Follow a point through pictures between two latents; return where it ends, in pixels, and whether it was kept."""
    scale = JUDGED_SIDE / network.spec.resolution
    pictures = pictures_between(network, start, end)
    points, is_kept = track_through(pictures, (torch.tensor([point]) + 0.5) * scale - 0.5)
    return (points + 0.5) / scale - 0.5, is_kept


def step_times(network: DifferentiableNetwork, rows: Tensor) -> None:
    """Write the processor time of a pass forward and backward to each block, on one thread and on all."""
    table: list[dict[str, Any]] = []
    for threads in sorted({1, torch.get_num_threads()}):
        torch.set_num_threads(threads)
        for block in (32, 64, 128):
            times, walls = [], []
            for _ in range(6):
                free = rows[None].clone().requires_grad_()
                began_s, began_cpu_s = time.perf_counter(), time.process_time()
                torch.autograd.grad(network.features(free, block).square().mean(), free)
                walls.append(time.perf_counter() - began_s)
                times.append(time.process_time() - began_cpu_s)
            table.append(
                {
                    "threads": threads,
                    "block": block,
                    "cpu_ms": round(1e3 * min(times), 1),
                    "wall_ms": round(1e3 * min(walls), 1),
                    "steps_a_second": round(1 / min(walls), 2),
                }
            )
            write_table("step_times", table)


def gpu_step_times(model: Model, network: DifferentiableNetwork) -> None:
    """Write the steps a second of a drag on the GPU, by own kernels and by torch, with nothing else in between."""
    known, rows, own = latent_statistics(network), rows_of(network, 0).numpy(), network.own_kernels
    table: list[dict[str, Any]] = []
    for block in (32, 64, 128):
        for kernels in (own, None):
            network.own_kernels = kernels
            drag = DragOptimizer(
                *(network, known, rows, model.facts.row_resolutions),
                [Handle((94, 68), (118, 68))],
                DragSettings(block=block, check_every=0),
            )
            count, walls = 200 if kernels else 40, []
            for _ in range(4):
                began_s, before = time.perf_counter(), drag.count
                while drag.count < before + count:
                    drag.step()
                walls.append((time.perf_counter() - began_s) / (drag.count - before))
            table.append(
                {
                    "by": "own kernels" if kernels else f"torch {torch.__version__}",
                    "block": block,
                    "wall_ms": round(1e3 * min(walls), 3),
                    "steps_a_second": round(1 / min(walls)),
                }
            )
            write_table("gpu_step_times", table)
    network.own_kernels = own


def write_table(name: str, rows: list[dict[str, Any]]) -> None:
    """Write rows as CSV, and print the last."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    say(f"{name}: " + "  ".join(f"{key} {value}" for key, value in rows[-1].items()))


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(words: Sequence[str] | None = None) -> None:
    """Run the parts that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=["steps", "sun"], choices=("steps", "sun", *EDGES))
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--suns", type=int, default=8, help="pictures whose sun, crest or shore is dragged, each")
    parser.add_argument("--pixels", type=int, default=24, help="of a sun; edges are dragged half as far")
    parser.add_argument("--most-steps", type=int, default=60)
    parser.add_argument("--frozen", action="store_true", help="freeze all that is far from the way of the point")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args(words)
    torch.set_num_threads(options.threads)
    model = read_model(bundled_model())
    network = open_gradients(model, device=options.device)
    if "steps" in options.parts and options.device == "cuda":
        gpu_step_times(model, network)
    elif "steps" in options.parts:
        step_times(network, rows_of(network, 0))
        torch.set_num_threads(options.threads)
    if {"sun", *EDGES} & {*options.parts}:
        known = latent_statistics(network)
    for kind in ("sun", *EDGES):
        found: list[dict[str, Any]] = []
        for seed in range(1000) if kind in options.parts else ():
            limits = {"most_steps": options.most_steps, "is_frozen": options.frozen}
            if kind == "sun":
                row = drag_sun(model, network, known, seed, options.pixels, **limits)
            else:
                row = drag_edge(model, network, known, kind, seed, options.pixels // 2, **limits)
            if row is not None:
                found.append(row)
                name = f"{kind}_frozen" if options.frozen else kind
                write_table(name if options.device == "cpu" else f"gpu_{name}", found)
            if len(found) == options.suns:
                break
        for key in (f"{kind}_error_px", "judge_error_px", "own_tracker_error_px", "frozen_db", "wall_s"):
            values = [row[key] for row in found if key in row]
            if not values:
                continue
            say(f"  {key}: median {statistics.median(values):.2f}, mean {statistics.mean(values):.2f}")


if __name__ == "__main__":
    main()

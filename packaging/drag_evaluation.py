"""Evaluate drags on the bundled model: ``python packaging/drag_evaluation.py [--device cuda]``.

``sun``, ``crest``, ``shore``
              exact labels of the drawn world: a sun is dragged 24 px sideways, an edge 12 px up, and a reader says
              where it is (`drag_benchmark`)
``pairs``     two latents whose dense flow is known by tracking through 32 pictures between them, forward and backward.
              32 points are dragged at once from the first picture to where they are in the second
``back``      a sun is dragged there and back again: what is left of the difference
``found``     random points of pictures that a search found for drawings are dragged 24 px anywhere: how many are lost
``frechet``   Frechet distance of pictures with a dragged crest from other pictures of the model, beside that of the
              pictures before
``flow``      the tracking itself, on a StyleGAN3 whose transform gives the exact flow; random weights

Features are those of a network that reads factors off drawings, and of the shipped encoder; no drag's loss contains
either. The tables go to ``assets/results/drag``, a row for each drag, and ``evaluation.csv`` with medians and means.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import statistics
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drag_benchmark import (
    BETWEEN,
    EDGES,
    HORIZON,
    JUDGED_SIDE,
    LEAST_EDGE,
    LEAST_SUN,
    SUN_MARGIN,
    drag_edge,
    drag_sun,
    find_edge,
    find_sun,
    picture_of,
    pictures_between,
    rows_of,
    write_table,
)
from projection_benchmark import unseen_pictures

from explorer_app.assets import bundled_model
from gpu_backend import (
    DifferentiableNetwork,
    DragOptimizer,
    DragReport,
    Handle,
    Latent,
    LatentStatistics,
    Model,
    Point,
    Projection,
    ProjectionSettings,
    Recipe,
    Renderer,
    RenderRequest,
    Transform,
    latent_statistics,
    open_gradients,
    read_model,
)
from gpu_backend.bench.random_model import random_model
from gpu_backend.bench.shapes import Shape
from gpu_backend.gradients.drag_settings import default_drag_rows
from gpu_backend.gradients.opening import open_encoder, open_features
from gpu_backend.gradients.picture_features import PictureFeatures
from gpu_backend.gradients.picture_loss import psnr, ssim
from gpu_backend.gradients.tracking import track_through
from gpu_backend.training.quality.feature_file import read_features
from gpu_backend.training.quality.frechet import frechet_distance, gaussian_of
from gpu_backend.training.quality.reading import FeatureReader

_FEATURES = (
    Path(__file__).resolve().parents[1] / "assets" / "results" / "2026-11-21-h200" / "landscape-features.safetensors"
)
_POINTS, _LEAST_POINTS = 32, 8
"""Points of a pair that are dragged, and fewer than which it is left out."""
_GRID, _MARGIN = 14, 12
"""Points along an axis that are followed, and how far they stay from the border of the judged picture."""
_RETURNED_PX = 1.0
"""Error of the way back, in pixels of the judged picture, up to which a point's flow counts."""
_SHARE = 0.3
"""Of the way to another latent that a pair lies apart."""
_DRAGGING = threading.Lock()
"""A GPU's network serves one drag at a time."""
_READ_AT_ONCE = 16


def drag_to(
    model: Model,
    network: DifferentiableNetwork,
    known: LatentStatistics,
    start: Tensor,
    handles: Sequence[Handle],
    most_steps: int,
) -> tuple[Tensor, DragReport]:
    """Drag from rows (num_ws, w_dim) until it settles; return the rows afterwards and the last report."""
    with _DRAGGING:
        drag = DragOptimizer(network, known, start.numpy(), model.facts.row_resolutions, handles)
        report = drag.report
        while not report.is_settled and report.step < most_steps:
            report = drag.step()
        return torch.from_numpy(drag.rows), report


class Judges:
    """Track points through pictures, each drag in a process of its own."""

    def __init__(self, processes: int) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would inherit threads and the GPU's context
        self._pool = ProcessPoolExecutor(processes, context, torch.set_num_threads, (1,)) if processes > 1 else None

    def flow(self, pictures: Sequence[Tensor], points: Tensor) -> tuple[Tensor, Tensor]:
        """Return what `checked_flow` returns."""
        return self._run(_checked_flow_of_array, pictures, points)

    def follow(self, pictures: Sequence[Tensor], points: Tensor) -> Tensor:
        """Return where points (n, 2) are in the last picture."""
        return self._run(_ends_in_array, pictures, points)[0]

    def __enter__(self) -> Judges:
        """Begin; processes start with their first work."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown()

    def _run(
        self,
        work: Callable[[NDArray[np.float32], NDArray[np.float64]], tuple[NDArray[Any], NDArray[np.bool_]]],
        pictures: Sequence[Tensor],
        points: Tensor,
    ) -> tuple[Tensor, Tensor]:
        arrays = torch.cat(list(pictures)).numpy(), points.double().numpy()
        found = work(*arrays) if self._pool is None else self._pool.submit(work, *arrays).result()
        return torch.from_numpy(found[0]).to(points), torch.from_numpy(found[1])


def _checked_flow_of_array(
    pictures: NDArray[np.float32], points: NDArray[np.float64]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    ends, is_kept = checked_flow(list(torch.from_numpy(pictures).split(1)), torch.from_numpy(points))
    return ends.numpy(), is_kept.numpy()


def _ends_in_array(
    pictures: NDArray[np.float32], points: NDArray[np.float64]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    ends, is_kept = track_through(torch.from_numpy(pictures).split(1), torch.from_numpy(points))
    return ends.numpy(), is_kept.numpy()


def checked_flow(pictures: Sequence[Tensor], points: Tensor) -> tuple[Tensor, Tensor]:
    """Follow points (n, 2) to the last picture and back; return where they end, and which of them came back (n,)."""
    ends, is_kept = track_through(pictures, points)
    returned, is_back = track_through(reversed(pictures), ends)
    return ends, is_kept & is_back & ((returned - points).norm(dim=1) <= _RETURNED_PX)


def in_picture(points: Tensor, side: int) -> Tensor:
    """Return positions in a picture of `side` of positions in the judged one."""
    return (points + 0.5) * (side / JUDGED_SIDE) - 0.5


def grid_of_points() -> Tensor:
    """Return the points whose flow is measured, (n, 2) in pixels of the judged picture."""
    line = torch.linspace(_MARGIN, JUDGED_SIDE - 1 - _MARGIN, _GRID)
    y, x = torch.meshgrid(line, line, indexing="ij")
    return torch.stack([x.flatten(), y.flatten()], 1)


def pair(
    model: Model,
    network: DifferentiableNetwork,
    known: LatentStatistics,
    judges: Judges,
    features: PictureFeatures,
    seed: int,
    most_steps: int,
) -> dict[str, Any] | None:
    """Drag the points of a seed's picture to where a second latent has them; None if too few can be followed."""
    start, other = rows_of(network, seed), rows_of(network, 1000 + seed)
    last = default_drag_rows(model.facts.row_resolutions).last
    assert last is not None
    wanted = start.clone()
    wanted[: last + 1] += _SHARE * (other - start)[: last + 1]
    side = network.spec.resolution
    points = grid_of_points()
    ends, is_kept = judges.flow(pictures_between(network, start, wanted), points)
    candidates = is_kept.nonzero()[:, 0]
    if len(candidates) < _LEAST_POINTS:
        return None
    chosen = candidates[torch.linspace(0, len(candidates) - 1, min(_POINTS, len(candidates))).round().long()]
    sources, targets = points[chosen], ends[chosen]
    handles = [
        Handle((float(x), float(y)), (float(u), float(v)))
        for (x, y), (u, v) in zip(in_picture(sources, side), in_picture(targets, side), strict=True)
    ]
    end, report = drag_to(model, network, known, start, handles, most_steps)
    found = judges.follow(pictures_between(network, start, end), sources)
    own = [math.dist(state.tracked, handle.target) for state, handle in zip(report.handles, handles, strict=True)]
    before, after, goal = (picture_of(network, rows).clamp(-1, 1) for rows in (start, end, wanted))
    scale = side / JUDGED_SIDE
    maps = features.maps(goal.to(network.device))

    def apart(picture: Tensor) -> float:
        return float(features.distance(picture.to(network.device), maps)[0])

    return {
        "seed": seed,
        "points": len(chosen),
        "steps": report.step,
        "lost": sum(state.is_lost for state in report.handles),
        "own_tracker_px": round(statistics.mean(own), 3),
        "distance_px": round(scale * float((found - targets).norm(dim=1).mean()), 3),
        "distance_before_px": round(scale * float((sources - targets).norm(dim=1).mean()), 3),
        "mse": round(float((after - goal).square().mean()), 5),
        "mse_before": round(float((before - goal).square().mean()), 5),
        "ssim": round(float(ssim(after, goal)[0]), 4),
        "ssim_before": round(float(ssim(before, goal)[0]), 4),
        "features": round(apart(after), 5),
        "features_before": round(apart(before), 5),
    }


def there_and_back(
    model: Model,
    network: DifferentiableNetwork,
    known: LatentStatistics,
    judges: Judges,
    seed: int,
    pixels: int,
    most_steps: int,
) -> dict[str, Any] | None:
    """Drag a seed's sun sideways and back; None if the picture has no sun that can be read."""
    start = rows_of(network, seed)
    before = picture_of(network, start).clamp(-1, 1)
    x, y, brightness = find_sun(before)
    side = network.spec.resolution
    if brightness < LEAST_SUN or not SUN_MARGIN <= x < side - SUN_MARGIN or y > HORIZON - 10:
        return None
    target = (x + pixels if x < side / 2 else x - pixels, y)
    there, report = drag_to(model, network, known, start, [Handle((x, y), target)], most_steps)
    point = (torch.tensor([[x, y]]) + 0.5) * (JUDGED_SIDE / side) - 0.5
    reached = judges.follow(pictures_between(network, start, there), point)
    at = tuple(in_picture(reached, side)[0].tolist())
    back, report_back = drag_to(model, network, known, there, [Handle((at[0], at[1]), (x, y))], most_steps)
    returned = judges.follow(pictures_between(network, there, back), reached)
    middle, after = (picture_of(network, rows).clamp(-1, 1) for rows in (there, back))
    return {
        "seed": seed,
        "steps": report.step + report_back.step,
        "there_px": round(math.hypot(at[0] - target[0], at[1] - target[1]), 2),
        "back_px": round(float((in_picture(returned, side)[0] - torch.tensor([x, y])).norm()), 2),
        "db_there": round(psnr(middle, before), 2),
        "db_back": round(psnr(after, before), 2),
        "ssim_there": round(float(ssim(middle, before)[0]), 4),
        "ssim_back": round(float(ssim(after, before)[0]), 4),
    }


def crest_drag(network: DifferentiableNetwork, seed: int, pixels: int) -> Handle | None:
    """Return the drag of the strongest crest of a seed's picture by some pixels up; None if none is clear."""
    picture = picture_of(network, rows_of(network, seed))
    (y, strength), column = max(
        ((find_edge(picture, x, EDGES["crest"]), x) for x in range(64, 200, 8)), key=lambda item: item[0][1]
    )
    if strength < LEAST_EDGE or y - pixels < EDGES["crest"].start:
        return None
    return Handle((float(column), y), (float(column), y - pixels))


def found_pictures(model: Model, network: DifferentiableNetwork, steps: int) -> NDArray[np.float32]:
    """Return the rows (count, num_ws, w_dim) of pictures that a search finds for drawings."""
    encoder = open_encoder(model, network)
    targets = torch.stack(list(unseen_pictures(network.spec.resolution, _FOUND)))
    settings = ProjectionSettings(steps, _FOUND_CANDIDATES)
    features = open_features(model, network, encoder)
    search = Projection(network, targets.clamp(-1, 1).numpy(), settings, encoder, features)
    while not search.report.is_done:
        search.step()
    return search.rows


def found_drag(
    model: Model,
    network: DifferentiableNetwork,
    known: LatentStatistics,
    pictures: NDArray[np.float32],
    most_steps: int,
    seed: int,
) -> dict[str, Any] | None:
    """Drag a random point of one of the pictures; None if there is nothing to hold on to."""
    side, random, number = network.spec.resolution, np.random.default_rng(seed), seed % len(pictures)
    source, angle = random.uniform(0.12, 0.88, 2) * side, random.uniform(0, 2 * math.pi)
    target = source + _SUN_PX * np.array([math.cos(angle), math.sin(angle)])
    points = [(float(x), float(y)) for x, y in (source, target)]
    _, report = drag_to(model, network, known, torch.from_numpy(pictures[number]), [Handle(*points)], most_steps)
    (handle,) = report.handles
    if handle.is_weak:
        return None
    left = math.dist(handle.tracked, points[1]) / _SUN_PX
    return {"seed": seed, "picture": number, "steps": report.step, "lost": int(handle.is_lost), "left": round(left, 3)}


def frechet(
    model: Model, network: DifferentiableNetwork, known: LatentStatistics, count: int, others: int, most_steps: int
) -> dict[str, Any]:
    """Return Frechet distances from `others` pictures of the model: of `count` edited ones, and of these before."""
    reader = FeatureReader(read_features(_FEATURES)[0], network.device)
    before: list[Tensor] = []
    after: list[Tensor] = []
    for seed in range(5000, 5000 + 20 * count):
        handle = crest_drag(network, seed, 12)
        if handle is None:
            continue
        before.append(rows_of(network, seed))
        after.append(drag_to(model, network, known, before[-1], [handle], most_steps)[0])
        if len(after) == count:
            break
    rest = features_of(reader, network, [rows_of(network, seed) for seed in range(others)])
    of_rest = gaussian_of(rest)
    return {
        "drags": len(after),
        "others": others,
        "frechet_before": round(frechet_distance(of_rest, gaussian_of(features_of(reader, network, before))), 3),
        "frechet_after": round(frechet_distance(of_rest, gaussian_of(features_of(reader, network, after))), 3),
    }


@torch.no_grad()
def features_of(
    reader: FeatureReader, network: DifferentiableNetwork, latents: Sequence[Tensor]
) -> NDArray[np.float64]:
    """Return the features (n, d) of the pictures of rows."""
    rows = torch.stack(list(latents)).to(network.device)
    return np.concatenate([reader.features(network.picture(some).clamp(-1, 1)) for some in rows.split(_READ_AT_ONCE)])


def exact_flow(config: Literal["T", "R"], transform: Transform, seed: int, side: int = JUDGED_SIDE) -> dict[str, Any]:
    """Follow points through the pictures between no transform and one, in a StyleGAN3 with random weights.

    Configuration T follows translations exactly, configuration R rotations too.
    """
    model = random_model(Shape(f"{config}{side}", side, 32 * side, 64, w_dim=64, config=config), seed=seed)
    with Renderer(model, "cpu") as renderer:
        pictures = []
        for share in np.linspace(0.0, 1.0, BETWEEN + 2):
            moved = _part_of(transform, float(share))
            blend = ((Recipe(Latent(Point(((seed, 1.0),)))), 1.0),)
            frame = renderer.render(
                RenderRequest(model.facts.model_id, blend, transform=moved.matrix, wants_image=True)
            )
            assert frame.image is not None
            image = torch.from_numpy(np.array(frame.image))
            pictures.append(image.permute(2, 0, 1)[None])
    scale = max(float(pictures[0].std()), 1e-6)
    pictures = [picture / scale for picture in pictures]
    points = grid_of_points() * (side / JUDGED_SIDE)
    inverse = np.array(transform.matrix).reshape(3, 3)
    centred = (points.double().numpy() + 0.5) / side - 0.5
    exact = np.concatenate([centred, np.ones((len(points), 1))], 1) @ np.linalg.inv(inverse).T
    wanted = torch.from_numpy((exact[:, :2] + 0.5) * side - 0.5)
    is_inside = ((wanted > _MARGIN) & (wanted < side - 1 - _MARGIN)).all(1)
    ends, is_kept = checked_flow(pictures, points)
    error = (ends - wanted).norm(dim=1)[is_kept & is_inside]
    return {
        "config": config,
        "transform": " ".join(f"{key}={value:g}" for key, value in _named(transform).items()),
        "points": int(is_inside.sum()),
        "kept": len(error),
        "moved_px": round(float((wanted - points).norm(dim=1)[is_inside].mean()), 2),
        "error_px": round(float(error.median()), 3) if len(error) else math.nan,
        "error_p90_px": round(float(error.quantile(0.9)), 3) if len(error) else math.nan,
    }


def _part_of(transform: Transform, share: float) -> Transform:
    return Transform(share * transform.x, share * transform.y, share * transform.degrees)


def _named(transform: Transform) -> dict[str, float]:
    return {"x": transform.x, "y": transform.y, "degrees": transform.degrees}


def labelled(
    model: Model, network: DifferentiableNetwork, known: LatentStatistics, kind: str, most_steps: int, seed: int
) -> dict[str, Any] | None:
    """Drag a seed's sun, crest or shore, and read where it is; None if the picture has none that can be read."""
    if kind == "sun":
        return drag_sun(model, network, known, seed, _SUN_PX, most_steps=most_steps)
    return drag_edge(model, network, known, kind, seed, _EDGE_PX, most_steps=most_steps)


def summary(name: str, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return median and mean of every column of numbers."""
    found = []
    for key in rows[0]:
        values = [row[key] for row in rows if isinstance(row[key], (int, float)) and key != "seed"]
        if values:
            median, mean = round(statistics.median(values), 4), round(statistics.mean(values), 4)
            found.append({"part": name, "measure": key, "drags": len(values), "median": median, "mean": mean})
    return found


def _rows(name: str, count: int, make: Callable[[int], dict[str, Any] | None], at_once: int) -> list[dict[str, Any]]:
    """Make rows of seeds from 0 on until there are enough, some at once, and write them."""
    found: list[dict[str, Any]] = []
    with ThreadPoolExecutor(at_once) as pool:
        for first in range(0, 1000, at_once):
            for row in pool.map(make, range(first, first + at_once)):
                if row is not None and len(found) < count:
                    found.append(row)
                    write_table(name, found)
            if len(found) == count:
                break
    return found


_LABELS = ("sun", *EDGES)
_PARTS = (*_LABELS, "pairs", "back", "found", "frechet", "flow")
_SUN_PX, _EDGE_PX = 24, 12
_FOUND, _FOUND_CANDIDATES = 2, 100
"""Drawings, and random latents that a search for them begins with."""

_TRANSFORMS: tuple[tuple[Literal["T", "R"], Transform], ...] = (
    ("T", Transform(0.1, 0.05)),
    ("T", Transform(-0.15, 0.1)),
    ("R", Transform(degrees=20.0)),
    ("R", Transform(0.05, -0.05, -12.0)),
)


def main(words: Sequence[str] | None = None) -> None:
    """Run the parts that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=_PARTS, choices=_PARTS)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--drags", type=int, default=8, help="of each label, of pairs, and there and back")
    parser.add_argument("--edited", type=int, default=16, help="pictures for the Frechet distance")
    parser.add_argument("--others", type=int, default=256, help="pictures that these are compared with")
    parser.add_argument("--most-steps", type=int, default=60)
    parser.add_argument("--search-steps", type=int, default=200, help="of searches for drawings")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--judges", type=int, default=1, help="processes that track; with more than one, drags overlap")
    options = parser.parse_args(words)
    torch.set_num_threads(options.threads)
    table: list[dict[str, Any]] = []
    most = options.most_steps
    if {*options.parts} - {"flow"}:
        model = read_model(bundled_model())
        network = open_gradients(model, device=options.device)
        known = latent_statistics(network)
    for kind in _LABELS:
        if kind in options.parts:
            name = kind if options.device == "cpu" else f"gpu_{kind}"
            rows = _rows(name, options.drags, partial(labelled, model, network, known, kind, most), 1)
            table += summary(kind, rows)
            write_table("evaluation", table)
    with Judges(options.judges) as judges:
        if "pairs" in options.parts:
            encoder = open_encoder(model, network)
            if encoder is None:
                raise SystemExit("The features of pairs are those of the model's encoder, but there is none.")
            features = PictureFeatures.of_encoder(encoder)
            rows = _rows(
                *("pairs", options.drags),
                lambda seed: pair(model, network, known, judges, features, seed, most),
                options.judges,
            )
            table += summary("pairs", rows)
            write_table("evaluation", table)
        if "back" in options.parts:
            rows = _rows(
                *("back", options.drags),
                lambda seed: there_and_back(model, network, known, judges, seed, 24, most),
                options.judges,
            )
            table += summary("back", rows)
            write_table("evaluation", table)
    if "found" in options.parts:
        pictures = found_pictures(model, network, options.search_steps)
        rows = _rows("found", options.drags, partial(found_drag, model, network, known, pictures, most), 1)
        table += summary("found", rows)
        write_table("evaluation", table)
    if "frechet" in options.parts:
        found = frechet(model, network, known, options.edited, options.others, most)
        write_table("frechet", [found])
        table += summary("frechet", [found])
        write_table("evaluation", table)
    if "flow" in options.parts:
        rows = [exact_flow(config, transform, seed) for seed, (config, transform) in enumerate(_TRANSFORMS)]
        write_table("flow", rows)
        table += summary("flow", rows)
        write_table("evaluation", table)


if __name__ == "__main__":
    main()

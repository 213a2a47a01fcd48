"""Take the pictures of docs/editing.md again: ``python packaging/editing_pictures.py [drag] [photo] [blend]``.

The strip of a drag: the sun of the bundled model is dragged, and five pictures on its way stand side by side, with the
handle and its target until it is there. The photo: a drawing of the world that the model was trained on, which the
model never saw, the nearest picture that is found for it, and that of tuned weights. Takes minutes on a processor. The
blend: two landscapes, and one with the ground of the first and the sky of the second, in all layers and in the coarse
ones.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from drag_benchmark import find_sun
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from explorer_app.assets import bundled_model
from gpu_backend import (
    MASK_SIDE,
    TORCH_DEVICES,
    DragOptimizer,
    DragReport,
    DragSettings,
    Handle,
    Latent,
    LocalEdits,
    MaskedBlend,
    PhotoTuning,
    PictureMask,
    Point,
    Projection,
    ProjectionSettings,
    Recipe,
    RenderRequest,
    RowRange,
    Truncation,
    latent_statistics,
    open_encoder,
    open_features,
    open_gradients,
    open_renderer,
    read_model,
)
from gpu_backend.training.world import draw, sample_factors

PICTURES = Path(__file__).resolve().parents[1] / "assets" / "pictures"
SEED = 38
PSI = 0.7
WAY = (-56.0, 26.0)
"""From the sun to its target, in pixels."""
SHOWN = 5
SIDE_PX = 208
GAP_PX = 6
DRAWING = 11
BLEND_SEEDS = (20, 31)
BLEND_EDGE = 0.48
"""Where the sky ends, in heights of the picture."""
_SCALE = 3
"""Marks are drawn at so many times their size."""


def as_picture(values: torch.Tensor) -> Image.Image:
    """Return (1, 3, side, side) in -1..1 as a picture."""
    pixels = ((values[0].clamp(-1, 1) + 1) * 127.5).round().byte().permute(1, 2, 0).numpy()
    return Image.fromarray(np.ascontiguousarray(pixels))


def marked(picture: Image.Image, report: DragReport, target: tuple[float, float]) -> Image.Image:
    """Return a picture of the strip: a ring where the handle is, a disc at its target, and a line between them."""
    side = SIDE_PX * _SCALE
    scale = side / picture.width
    large = picture.resize((side, side), Image.Resampling.LANCZOS)
    pen = ImageDraw.Draw(large)
    (x, y), (goal_x, goal_y) = report.handles[0].position, target
    place, goal = ((x + 0.5) * scale, (y + 0.5) * scale), ((goal_x + 0.5) * scale, (goal_y + 0.5) * scale)
    pen.line((*place, *goal), "#131518", 6)
    pen.line((*place, *goal), "white", 3)
    for centre, fill in ((place, None), (goal, "#e8a33d")):
        for radius, ink in ((12, "#131518"), (9, "white")):
            box = (centre[0] - radius, centre[1] - radius, centre[0] + radius, centre[1] + radius)
            pen.ellipse(box, fill=fill if radius == 9 else None, outline=ink, width=4)
    return large.resize((SIDE_PX, SIDE_PX), Image.Resampling.LANCZOS)


def side_by_side(pictures: list[Image.Image]) -> Image.Image:
    """Return pictures in a row."""
    width = len(pictures) * (SIDE_PX + GAP_PX) - GAP_PX
    strip = Image.new("RGB", (width, SIDE_PX), "#131518")
    for place, picture in enumerate(pictures):
        strip.paste(picture.resize((SIDE_PX, SIDE_PX), Image.Resampling.LANCZOS), (place * (SIDE_PX + GAP_PX), 0))
    return strip


def drag() -> None:
    """Drag the sun, and write the strip."""
    model = read_model(bundled_model())
    network = open_gradients(model, device="cpu")
    z = np.random.RandomState(SEED).randn(1, network.spec.mapping.z_dim).astype(np.float32)
    with torch.no_grad():
        w = network.map(network.tensor(z))
        rows = (network.mean_w + PSI * (w - network.mean_w)).expand(network.spec.num_ws, -1)
        x, y, _ = find_sun(network.picture(rows[None]))
    target = (x + WAY[0], y + WAY[1])
    start: NDArray[np.float32] = rows.contiguous().numpy()
    optimizer = DragOptimizer(
        network,
        latent_statistics(network),
        start,
        model.facts.row_resolutions,
        [Handle((x, y), target)],
        DragSettings(block=64),
    )
    report, frames = optimizer.report, []
    for share in np.linspace(0.0, 1.0, SHOWN):
        left = float(np.hypot(*WAY)) * (1.0 - float(share))
        while not report.is_settled and (report.handles[0].distance > left + 0.5 or share == 1.0):
            report = optimizer.step()
        with torch.no_grad():
            picture = network.picture(network.tensor(optimizer.rows)[None])
        shown = as_picture(picture)
        frames.append(marked(shown, report, target) if share < 1.0 else shown)
        found = find_sun(picture)
        place = f"the sun is at {found[0]:.1f}, {found[1]:.1f}; target {target[0]:.1f}, {target[1]:.1f}"
        sys.stdout.write(f"step {report.step}: {place}\n")
    side_by_side(frames).save(PICTURES / "drag.jpg", quality=90)


def photo(steps: int, candidates: int, tuning_steps: int, device: str) -> None:
    """Find the latent of a drawing, tune the weights to it, and write all three pictures."""
    model = read_model(bundled_model())
    network = open_gradients(model, device=device)
    generator = torch.Generator().manual_seed(DRAWING)
    target = draw(sample_factors(1, generator), torch.tensor([DRAWING]), network.spec.resolution, device="cpu")
    wanted = target.float().clamp(-1, 1).numpy()
    encoder = open_encoder(model, network)
    features = open_features(model, network, encoder)
    projection = Projection(network, wanted, ProjectionSettings(steps, candidates), encoder, features)
    while not projection.report.is_done:
        projection.step()
    tuning = PhotoTuning(network, projection.rows[0], wanted[0], tuning_steps, features)
    while not tuning.step().is_done:
        pass
    changes = tuning.changes()
    weights = {name: array + changes.get(name, 0.0) for name, array in model.weights.items()}
    pictures = [as_picture(target)]
    for each in (model, replace(model, weights=weights)):
        other = open_gradients(each, device=device)
        with torch.no_grad():
            pictures.append(as_picture(other.picture(other.tensor(projection.rows)).cpu()))
    found, tuned = projection.psnr()[0], tuning.psnr
    sys.stdout.write(f"PSNR {found:.1f} dB after {steps} steps, {tuned:.1f} dB with weights tuned in {tuning_steps}\n")
    side_by_side(pictures).save(PICTURES / "from-picture.jpg", quality=90)


def blend() -> None:
    """Blend the sky of a landscape into another one, and write the strip."""
    edge = np.clip((BLEND_EDGE - (np.arange(MASK_SIDE) + 0.5) / MASK_SIDE) * MASK_SIDE + 0.5, 0.0, 1.0)
    mask = PictureMask(np.repeat((edge * 255).astype(np.uint8)[:, None], MASK_SIDE, 1).tobytes())
    ground, sky = (Recipe(Latent(Point(((seed, 1.0),))), Truncation(0.8)) for seed in BLEND_SEEDS)
    with open_renderer(bundled_model(), "cpu") as renderer:

        def picture(recipe: Recipe, *rows: RowRange) -> Image.Image:
            edits = LocalEdits(blends=tuple(MaskedBlend(sky, mask, part, 1.0, 0.1) for part in rows))
            request = RenderRequest(renderer.facts.model_id, ((recipe, 1.0),), edits=edits)
            return Image.fromarray(renderer.render(request).to_rgb())

        pictures = [picture(ground), picture(sky)]
        pictures += [picture(ground, rows) for rows in (RowRange(), RowRange(0, 5))]
    side_by_side(pictures).save(PICTURES / "blends.jpg", quality=90)


def main() -> None:
    """Read the command line and write the pictures."""
    parser = argparse.ArgumentParser(description="Take the pictures of docs/editing.md.")
    parser.add_argument("which", nargs="*", default=["drag", "photo", "blend"], choices=("drag", "photo", "blend"))
    parser.add_argument("--steps", type=int, default=300, help="steps of the search for the drawing")
    parser.add_argument("--candidates", type=int, default=500, help="random latents to begin with")
    parser.add_argument("--tuning-steps", type=int, default=150, help="steps of the tuning to the drawing")
    parser.add_argument("--device", default="cpu", choices=TORCH_DEVICES, help="where the search for the drawing runs")
    calls = parser.parse_args()
    if "drag" in calls.which:
        drag()
    if "photo" in calls.which:
        photo(calls.steps, calls.candidates, calls.tuning_steps, calls.device)
    if "blend" in calls.which:
        blend()


if __name__ == "__main__":
    main()

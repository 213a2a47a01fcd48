"""Time masked blends on a device: a frame without one, and with one or two in all or in the coarse layers.

The first latent changes in every frame; in two ways the second one does so, too.

    python packaging/blend_benchmark.py --device cuda --side 1024

The network has random weights and the usual widths. Prints a table: milliseconds of the device, or of the clock on the
CPU, median of `--frames`. Ways take turns of three frames, the first of which does not count: ways of one plan take
each other's place in what it keeps.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from gpu_backend import (
    MASK_SIDE,
    NO_EDITS,
    Latent,
    LocalEdits,
    MaskedBlend,
    PictureMask,
    Point,
    Recipe,
    Renderer,
    RenderRequest,
    RowRange,
)

_COUNTED = 2
"""Frames of a turn that count."""


def ways(num_ws: int, frame: int) -> dict[str, LocalEdits]:
    """Return the edits that are timed, by name, in a frame."""
    top = PictureMask(bytes([255]) * (MASK_SIDE**2 // 2) + bytes(MASK_SIDE**2 // 2))
    others = [_seed(2), _seed(3)]
    moving = [MaskedBlend(_seed(30 + place + frame % 8), top, RowRange(), 1.0, 0.1) for place in (0, 8)]
    whole = [MaskedBlend(recipe, top, RowRange(), 1.0, 0.1) for recipe in others]
    coarse = MaskedBlend(others[0], top, RowRange(0, num_ws // 2), 1.0, 0.1)
    return {
        "no blend": NO_EDITS,
        f"one, rows 0 to {num_ws // 2}": LocalEdits(blends=(coarse,)),
        "one, all rows": LocalEdits(blends=(whole[0],)),
        "two, all rows": LocalEdits(blends=(whole[0], whole[1])),
        "one, second changes": LocalEdits(blends=(moving[0],)),
        "two, both second change": LocalEdits(blends=(moving[0], moving[1])),
    }


def _seed(seed: int) -> Recipe:
    return Recipe(Latent(Point(((seed, 1.0),))))


def main() -> None:
    """Time and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--frames", type=int, default=30)
    options = parser.parse_args()
    from tests.helpers.networks import make_stylegan2

    model = make_stylegan2(
        resolution=options.side, channel_base=32768, channel_max=512, w_dim=512, z_dim=512, mapping_layers=8
    )
    with Renderer(model, options.device) as renderer:
        num_ws = renderer.facts.num_ws
        chosen = ways(num_ws, 0)
        times: dict[str, list[float]] = {name: [] for name in chosen}
        steps: dict[str, float] = {}
        for turn in range(options.frames // _COUNTED + 1):
            for name in chosen:
                for frame in range(turn * (_COUNTED + 1), (turn + 1) * (_COUNTED + 1)):
                    edits, blend = ways(num_ws, frame)[name], ((_seed(10 + frame % 8), 1.0),)
                    start = time.perf_counter()
                    taken = renderer.render(RenderRequest(renderer.facts.model_id, blend, edits=edits)).timings
                    clock_ms = (time.perf_counter() - start) * 1e3
                    if turn and frame % (_COUNTED + 1):
                        times[name].append(clock_ms if taken.device_ms is None else taken.device_ms)
        for name, edits in chosen.items():
            request = RenderRequest(renderer.facts.model_id, edits=edits, measure_steps=True)
            measured = [renderer.render(request).timings.steps for _ in range(3)][-1]
            steps[name] = sum(step.time_us for step in measured if "blend" in step.layer)
        sys.stdout.write(f"{renderer.device.name}, {options.side} x {options.side}, {options.frames} frames\n")
        first = statistics.median(next(iter(times.values())))
        for name, values in times.items():
            median = statistics.median(values)
            sys.stdout.write(f"{name:24} {median:9.3f} ms  {median / first:5.2f} x   blending {steps[name]:8.1f} us\n")


if __name__ == "__main__":
    main()

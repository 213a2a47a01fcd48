"""``python -m gpu_backend.training.world.sheet``: a contact sheet of pictures of the world."""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import torch
from PIL import Image

from gpu_backend.training.world.drawer import to_bytes
from gpu_backend.training.world.factors import FACTORS, sample_factors
from gpu_backend.training.world.picture import draw
from gpu_backend.whole_file import write_whole


def contact_sheet(count: int, resolution: int, seed: int, device: str) -> torch.Tensor:
    """Draw ``count`` sampled pictures; ``(count, 3, resolution, resolution) float32``."""
    factors = sample_factors(count, torch.Generator().manual_seed(seed))
    return _drawn(factors, torch.arange(count) + seed * 100_003, resolution, device)


def strip(name: str, count: int, resolution: int, seed: int, device: str) -> torch.Tensor:
    """Draw one landscape ``count`` times while one factor sweeps its range."""
    index = [factor.name for factor in FACTORS].index(name)
    factors = sample_factors(1, torch.Generator().manual_seed(seed)).repeat(count, 1)
    factors[:, index] = torch.linspace(FACTORS[index].low, FACTORS[index].high, count)
    return _drawn(factors, torch.full((count,), seed * 100_003), resolution, device)


def _drawn(factors: torch.Tensor, seeds: torch.Tensor, resolution: int, device: str) -> torch.Tensor:
    parts = [
        draw(some, own, resolution, device=device).cpu()
        for some, own in zip(torch.split(factors, 4), torch.split(seeds, 4), strict=True)
    ]
    return torch.cat(parts)


def tiled(pictures: torch.Tensor, columns: int) -> Image.Image:
    """Tile pictures ``(n, 3, R, R)`` in -1..1, ``columns`` in a row."""
    count, _, size, _ = pictures.shape
    sheet = Image.new("RGB", (columns * size, math.ceil(count / columns) * size))
    values = to_bytes(pictures).permute(0, 2, 3, 1).contiguous().numpy()
    for index, value in enumerate(values):
        sheet.paste(Image.fromarray(value), (index % columns * size, index // columns * size))
    return sheet


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a sheet of sampled pictures, or a strip for each factor named."""
    parser = argparse.ArgumentParser(prog="python -m gpu_backend.training.world.sheet", description=__doc__)
    parser.add_argument("--count", type=int, default=64, help="pictures, of a strip too")
    parser.add_argument("--resolution", type=int, default=256, help="width and height of each")
    parser.add_argument("--seed", type=int, default=0, help="which pictures")
    parser.add_argument("--device", default="cpu", help="where to draw: cpu or cuda")
    parser.add_argument("--strips", nargs="+", metavar="FACTOR", choices=[factor.name for factor in FACTORS],
                        default=[], help="one row for each factor named, in which it alone moves")  # fmt: skip
    parser.add_argument("--out", type=Path, required=True, help="the PNG file")
    options = parser.parse_args(arguments)
    count, resolution, seed, device = options.count, options.resolution, options.seed, options.device
    if options.strips:
        rows = [strip(name, count, resolution, seed, device) for name in options.strips]
        pictures, columns = torch.cat(rows), count
    else:
        pictures = contact_sheet(count, resolution, seed, device)
        columns = math.ceil(math.sqrt(count * 1.5)) if count < 36 else math.ceil(math.sqrt(count))
    write_whole(options.out, tiled(pictures, columns).save)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

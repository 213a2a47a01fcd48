from collections.abc import Sequence

import pytest
import torch

from gpu_backend.training.world import FACTORS, draw, sample_factors
from gpu_backend.training.world.picture import Scene, scene

NAMES = [factor.name for factor in FACTORS]
SEEDS = torch.tensor([3, 2**40 + 5])
# A clear day over a lake with snow on the mountains: a landscape in which every factor has something to move.
DAY = {
    "sun_height": 0.4, "sun_side": -0.4, "sky_hue": 0.0, "cloud_cover": 0.3, "haze": 0.2, "ruggedness": 0.5,
    "mountain_height": 0.5, "snow_line": 0.4, "water_level": 0.5, "season": 0.6, "foreground": 0.4,
    "tree_density": 0.5, "warmth": 0.0, "exposure": 0.0,
}  # fmt: skip


def factors(**changed: float) -> torch.Tensor:
    return torch.tensor([[{**DAY, **changed}[name] for name in NAMES]]).repeat(len(SEEDS), 1)


def at_shares(names: Sequence[str], shares: Sequence[float], seeds: torch.Tensor) -> Scene:
    """Landscapes at 32 x 32 with each factor at each share of its range, of each seed: one call for all of them."""
    ranges = {factor.name: factor for factor in FACTORS}
    rows = [
        factors(**{name: ranges[name].low + share * (ranges[name].high - ranges[name].low)})[:1]
        for name in names
        for share in shares
    ]
    return scene(torch.cat(rows).repeat_interleave(len(seeds), 0), seeds.repeat(len(rows)), 32)


def test_the_same_arguments_give_the_same_pictures() -> None:
    given = sample_factors(2, torch.Generator().manual_seed(1))
    assert torch.equal(draw(given, SEEDS, 16, device="cpu"), draw(given, SEEDS, 16, device="cpu"))


@pytest.mark.parametrize("resolution", [16, 32, 128])
def test_pictures_have_the_requested_shape_and_stay_in_range(resolution: int) -> None:
    pictures = draw(sample_factors(2, torch.Generator().manual_seed(2)), SEEDS, resolution, device="cpu")
    assert pictures.shape == (2, 3, resolution, resolution)
    assert pictures.dtype == torch.float32
    assert pictures.is_contiguous()
    assert pictures.isfinite().all()
    assert pictures.abs().max() <= 1.0 + 1e-5


def test_every_sampled_picture_shows_something() -> None:
    pictures = draw(sample_factors(12, torch.Generator().manual_seed(3)), torch.arange(12), 16, device="cpu")
    assert pictures.flatten(1).std(1).min() > 0.05


@pytest.mark.parametrize("corner", [0.0, 1.0])
def test_the_corners_of_the_factors_range_are_finite(corner: float) -> None:
    ends = torch.tensor([[factor.low + corner * (factor.high - factor.low) for factor in FACTORS]])
    assert draw(ends, SEEDS[:1], 16, device="cpu").isfinite().all()


def test_a_picture_does_not_depend_on_its_neighbours_in_the_batch() -> None:
    given = sample_factors(3, torch.Generator().manual_seed(4))
    together = draw(given, torch.arange(3), 16, device="cpu")
    alone = draw(given[1:2], torch.arange(3)[1:2], 16, device="cpu")
    # Vector and scalar loops round exponentials differently, hence not bit for bit.
    torch.testing.assert_close(together[1:2], alone, atol=2e-3, rtol=0.0)


def test_another_seed_is_another_landscape() -> None:
    first, second = draw(factors(), SEEDS, 16, device="cpu")
    assert (first - second).abs().mean() > 0.03


def test_every_factor_changes_the_picture() -> None:
    pictures = at_shares(NAMES, (0.0, 1.0), SEEDS[:1]).picture.unflatten(0, (len(NAMES), 2))
    changes = (pictures[:, 1] - pictures[:, 0]).abs().mean((1, 2, 3))
    assert {name: change for name, change in zip(NAMES, changes.tolist(), strict=True) if change <= 0.02} == {}


def test_the_brightest_column_of_the_sky_follows_the_sun() -> None:
    columns = []
    for share in (0.1, 0.5, 0.9):
        pictures = scene(factors(sun_height=0.25, cloud_cover=0.0, sun_side=2.0 * share - 1.0), SEEDS, 32).picture
        columns.append(pictures[:, :, :16].mean((1, 2)).argmax(1))
    assert (columns[0] < columns[1]).all()
    assert (columns[1] < columns[2]).all()


def test_shares_of_the_picture_follow_their_factor() -> None:
    signs = {"snow_line": -1.0, "water_level": 1.0, "mountain_height": 1.0}
    found = at_shares(list(signs), (0.0, 0.5, 1.0), SEEDS)
    masks = {"snow_line": found.snow, "water_level": found.water, "mountain_height": found.land}
    for index, (name, sign) in enumerate(signs.items()):
        low, middle, high = masks[name].mean((1, 2)).unflatten(0, (len(signs), 3, len(SEEDS)))[index]
        assert ((middle - low) * sign >= 0.0).all(), name
        assert ((high - middle) * sign >= 0.0).all(), name
        assert ((high - low) * sign > 0.02).all(), name

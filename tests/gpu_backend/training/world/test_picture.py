from dataclasses import fields
from functools import cache

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


SHARES = (0.0, 0.5, 1.0)


@cache
def all_shown() -> Scene:
    """Both landscapes with each factor at each share, one after the other: in one call, a fifth of the time of many."""
    rows = [
        factors(**{factor.name: factor.low + share * (factor.high - factor.low)})
        for factor in FACTORS
        for share in SHARES
    ]
    return scene(torch.cat(rows), SEEDS.repeat(len(rows)), 32)


def shown(name: str, share: float) -> Scene:
    """The two landscapes at 32 x 32 with one factor at a share of its range, one of `SHARES`."""
    first = (NAMES.index(name) * len(SHARES) + SHARES.index(share)) * len(SEEDS)
    whole = all_shown()
    return Scene(*(getattr(whole, part.name)[first : first + len(SEEDS)] for part in fields(Scene)))


def test_the_same_arguments_give_the_same_pictures() -> None:
    given = sample_factors(2, torch.Generator().manual_seed(1))
    assert torch.equal(draw(given, SEEDS, 16, device="cpu"), draw(given, SEEDS, 16, device="cpu"))


@pytest.mark.parametrize("resolution", [16, 32, 128])
def test_pictures_have_the_asked_shape_and_stay_in_range(resolution: int) -> None:
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


@pytest.mark.parametrize("name", NAMES)
def test_every_factor_changes_the_picture(name: str) -> None:
    low, high = shown(name, 0.0).picture, shown(name, 1.0).picture
    assert (high - low).abs().mean() > 0.02


def test_the_brightest_column_of_the_sky_follows_the_sun() -> None:
    columns = []
    for share in (0.1, 0.5, 0.9):
        pictures = scene(factors(sun_height=0.25, cloud_cover=0.0, sun_side=2.0 * share - 1.0), SEEDS, 32).picture
        columns.append(pictures[:, :, :16].mean((1, 2)).argmax(1))
    assert (columns[0] < columns[1]).all()
    assert (columns[1] < columns[2]).all()


@pytest.mark.parametrize(("name", "sign"), [("snow_line", -1.0), ("water_level", 1.0), ("mountain_height", 1.0)])
def test_shares_of_the_picture_follow_their_factor(name: str, sign: float) -> None:
    def share(at: float) -> torch.Tensor:
        found = shown(name, at)
        masks = {"snow_line": found.snow, "water_level": found.water, "mountain_height": found.land}
        return masks[name].mean((1, 2))

    low, middle, high = share(0.0), share(0.5), share(1.0)
    assert ((middle - low) * sign >= 0.0).all()
    assert ((high - middle) * sign >= 0.0).all()
    assert ((high - low) * sign > 0.02).all()


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("sun_height", (1.0, 1.0, 1.0)),
        ("exposure", (1.0, 1.0, 1.0)),
        ("warmth", (1.0, 0.0, -1.0)),
        ("sky_hue", (0.5, -1.0, 0.5)),
        ("season", (1.0, 0.0, -1.0)),
    ],
)
def test_colours_follow_their_factor(name: str, weights: tuple[float, float, float]) -> None:
    def value(at: float) -> torch.Tensor:
        return (shown(name, at).picture.mean((2, 3)) * torch.tensor(weights)).sum(1)

    assert (value(0.5) > value(0.0)).all()
    assert (value(1.0) > value(0.5)).all()


def test_a_large_picture_made_small_is_the_small_picture() -> None:
    large, small = (draw(factors()[:1], SEEDS[:1], size, device="cpu") for size in (256, 128))
    difference = torch.nn.functional.avg_pool2d(large, 2) - small
    assert difference.abs().mean() < 0.03


def test_factors_of_the_wrong_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="Expected factors"):
        draw(torch.zeros(2, 3), SEEDS, 16, device="cpu")

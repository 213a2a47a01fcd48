import torch

from gpu_backend.training.world.noise import chance, fractal, gradient_noise, hashed

KEYS = torch.arange(3000, dtype=torch.int32)[:, None, None]


def test_chances_are_even_over_seeds_and_differ_by_salt() -> None:
    one, other = chance(KEYS, 1).flatten(), chance(KEYS, 2).flatten()
    for drawn in (one, other):
        shares = torch.histc(drawn, 10, 0.0, 1.0) / len(drawn)
        assert (shares - 0.1).abs().max() < 0.03
    assert torch.corrcoef(torch.stack((one, other)))[0, 1].abs() < 0.08


def test_neighbouring_cells_have_unrelated_hashes() -> None:
    cells = torch.arange(3000, dtype=torch.int32)[None, :, None]
    drawn = hashed(cells, KEYS[:1], 4).flatten()
    assert torch.corrcoef(torch.stack((drawn[1:], drawn[:-1])))[0, 1].abs() < 0.08


def test_noise_is_balanced_and_zero_on_its_lattice() -> None:
    places = torch.rand((50, 20, 20), generator=torch.Generator().manual_seed(0)) * 40.0
    noise = gradient_noise(places, places.flip(1) * 1.3, KEYS[:50], 3)
    assert noise.mean().abs() < 0.03
    assert 0.2 < noise.std() < 0.4
    whole = places.floor()
    assert gradient_noise(whole, whole.flip(1), KEYS[:50], 3).abs().max() == 0.0


def test_noise_is_continuous_across_cells() -> None:
    x = torch.linspace(-3.0, 3.0, 6001)[None, :, None]
    noise = gradient_noise(x, torch.full_like(x, 0.37), KEYS[:1], 9)
    assert noise.diff(dim=1).abs().max() < 0.01


def test_octaves_too_fine_to_see_are_left_out() -> None:
    x = torch.linspace(0.0, 3.0, 500)[None, :, None]
    full = fractal(x, x, KEYS[:1], 5, 5)
    smooth = fractal(x, x, KEYS[:1], 5, 5, torch.full_like(x, 0.3))
    assert smooth.diff(dim=1).abs().mean() < 0.7 * full.diff(dim=1).abs().mean()

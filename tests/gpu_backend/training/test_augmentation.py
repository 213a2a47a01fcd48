"""Augmentation: nothing at p = 0, what it does at p = 1, and where p goes."""

import pytest
import torch

from gpu_backend.training import augmentation
from gpu_backend.training.augmentation import AdaptiveChance, augmented

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def fixed_random_numbers() -> None:
    torch.manual_seed(3)


def test_at_p_zero_pictures_stay_as_they_are() -> None:
    pictures = torch.rand(4, 3, 16, 16) * 2 - 1
    torch.testing.assert_close(augmented(pictures, torch.tensor(0.0)), pictures, atol=1e-5, rtol=0)


def test_at_p_one_every_picture_changes_and_gradients_come_back() -> None:
    pictures = (torch.rand(4, 3, 16, 16) * 2 - 1).requires_grad_(True)
    changed = augmented(pictures, torch.tensor(1.0))
    assert changed.shape == pictures.shape
    assert ((changed - pictures).abs().amax((1, 2, 3)) > 0.05).all()
    (gradient,) = torch.autograd.grad(changed.square().sum(), pictures)
    assert gradient.isfinite().all()
    assert (gradient.abs().amax((1, 2, 3)) > 0).all()


def test_mirroring_and_translation_keep_pixel_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(augmentation, "_colours", lambda n, p, d: (torch.eye(3).expand(n, 3, 3), torch.zeros(n, 3)))
    monkeypatch.setattr(augmentation, "_where", lambda p, drawn, otherwise: torch.full_like(drawn, otherwise))
    pictures = torch.rand(16, 1, 16, 16).expand(-1, 3, -1, -1)
    changed = augmented(pictures, torch.tensor(1.0))
    mirrored = 0
    for before, after in zip(pictures[:, 0], changed[:, 0], strict=True):
        # Away from the edges every row of the result is a row of the picture, shifted, maybe turned around.
        middle = after[8, 4:12]
        rows = before.unfold(1, 8, 1).reshape(-1, 8)
        distance = (rows - middle).abs().amax(1).min()
        turned = (rows - middle.flip(0)).abs().amax(1).min()
        assert min(distance, turned) < 1e-4
        mirrored += int(turned < distance)
    assert 0 < mirrored < 16


def test_colours_keep_grey_grey_and_turn_and_scale_the_rest() -> None:
    matrix, offset = augmentation._colours(64, torch.tensor(1.0), CPU)
    grey = matrix @ torch.full((3,), 0.5) + offset
    torch.testing.assert_close(grey, grey[:, :1].expand(-1, 3), atol=1e-5, rtol=1e-5)
    scales = (matrix @ torch.tensor([1.0, -1.0, 0.0])).norm(dim=1)
    assert scales.std() > 0.3


@pytest.mark.parametrize(("mean_sign", "moved"), [(0.9, 0.01), (0.2, -0.01)])
def test_p_grows_when_the_discriminator_is_too_sure_and_shrinks_otherwise(mean_sign: float, moved: float) -> None:
    chance = AdaptiveChance(0.6, 1.0, CPU)
    chance.p.fill_(0.5)
    positive = round(50 * (1 + mean_sign))
    chance.see(torch.cat([torch.ones(positive), -torch.ones(100 - positive)]))
    chance.change(10)
    assert chance.p.item() == pytest.approx(0.5 + moved)
    assert chance.signs.tolist() == [0.0, 0.0]


def test_p_stays_between_zero_and_one() -> None:
    chance = AdaptiveChance(0.6, 0.001, CPU)
    for sign, end in ((1.0, 1.0), (-1.0, 0.0)):
        chance.see(torch.full((4,), sign))
        chance.change(1000)
        assert chance.p.item() == end

"""Points followed through pictures that move by known amounts."""

import pytest
import torch

from gpu_backend.gradients.tracking import track, track_through
from tests.helpers.moving_picture import NUM_WS, W_DIM, MovingPicture


def moved(network: MovingPicture, x: float, y: float) -> torch.Tensor:
    ws = torch.zeros(1, NUM_WS, W_DIM)
    ws[0, 0, 0], ws[0, 0, 1] = x, y
    return network.picture(ws)


POINTS = torch.tensor([[24.0, 24.0], [40.0, 30.0]])


@pytest.mark.parametrize(("x", "y"), [(0.0, 0.0), (1.3, -0.6), (5.0, 4.0)])
def test_points_follow_a_picture_that_moves(x: float, y: float) -> None:
    network = MovingPicture()
    found = track(moved(network, 0, 0), moved(network, x, y), POINTS)
    torch.testing.assert_close(found.points, POINTS + torch.tensor([x, y]), atol=0.35, rtol=0)
    assert float(found.error.max()) < 0.5
    assert float(found.likeness.min()) > 0.9


def test_a_long_way_is_followed_through_the_pictures_between() -> None:
    network = MovingPicture()
    pictures = (moved(network, 16.0 * k / 8, -8.0 * k / 8) for k in range(9))
    points, is_kept = track_through(pictures, POINTS)
    torch.testing.assert_close(points, POINTS + torch.tensor([16.0, -8.0]), atol=0.8, rtol=0)
    assert is_kept.all()


def test_another_picture_is_unlike_the_one_before() -> None:
    network = MovingPicture()
    picture = moved(network, 0, 0)
    found = track(picture, picture.flip(3), POINTS)
    assert float(found.likeness.min()) < 0.5 or float(found.error.max()) > 2.0

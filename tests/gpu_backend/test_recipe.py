"""What a transform means: from handles to the matrix that a network takes, and back."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from gpu_backend import Transform
from tests.helpers.strategies import tries


def forward(transform: Transform) -> np.ndarray:
    """Where a place of the picture goes, as official tools write it, with a scale: y points down."""
    turn = math.radians(transform.degrees)
    cos, sin = transform.scale * math.cos(turn), transform.scale * math.sin(turn)
    return np.array([[cos, sin, transform.x], [-sin, cos, transform.y], [0, 0, 1]])


transforms = st.builds(
    Transform,
    st.floats(-10, 10),
    st.floats(-10, 10),
    st.floats(-179, 180),
    st.floats(0.05, 20),
)


@tries(40)
@given(transforms)
def test_the_matrix_is_the_inverse_of_what_happens_to_the_picture(transform: Transform) -> None:
    assert np.reshape(transform.matrix, (3, 3)) @ forward(transform) == pytest.approx(np.eye(3), abs=1e-9)


@tries(40)
@given(transforms)
def test_it_is_found_again_from_its_matrix(transform: Transform) -> None:
    found = Transform.of_matrix(transform.matrix)
    assert found is not None
    assert (found.x, found.y, found.scale) == pytest.approx((transform.x, transform.y, transform.scale), abs=1e-6)
    assert math.remainder(found.degrees - transform.degrees, 360) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    "matrix",
    [
        (0.0,) * 9,
        (1.0, 0, 0, 0, 2.0, 0, 0, 0, 1.0),
        (1.0, 0.5, 0, 0, 1.0, 0, 0, 0, 1.0),
        (-1.0, 0, 0, 0, 1.0, 0, 0, 0, 1.0),
        (1.0, 0, 0, 0, 1.0, 0, 0.1, 0, 1.0),
        (math.inf, 0, 0, 0, 1.0, 0, 0, 0, 1.0),
    ],
)
def test_a_matrix_that_shears_mirrors_or_collapses_is_no_transform(matrix: tuple[float, ...]) -> None:
    assert Transform.of_matrix(matrix) is None


def test_at_rest_it_is_the_identity() -> None:
    assert np.reshape(Transform().matrix, (3, 3)).tolist() == np.eye(3).tolist()
    assert Transform.of_matrix(Transform().matrix) == Transform()


def test_a_matrix_whose_scale_rounds_to_nothing_is_that_of_no_transform() -> None:
    assert Transform.of_matrix((1e12, 0.0, 0.0, 0.0, 1e12, 0.0, 0.0, 0.0, 1.0)) is None

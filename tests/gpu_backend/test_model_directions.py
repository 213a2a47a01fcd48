"""Named directions beside a model reach requests."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from gpu_backend import DirectionAmount, Latent, NamedDirections, Recipe, Renderer, RequestError, RowRange
from gpu_backend.model import Model
from gpu_backend.model_directions import model_directions, named_part
from tests.helpers.networks import make_stylegan2
from tests.helpers.requests import request_for


@pytest.fixture
def model() -> Model:
    plain = make_stylegan2()
    vectors = np.random.default_rng(1).normal(size=(2, plain.spec.w_dim)).astype(np.float32)
    named = NamedDirections(
        ("world/sun", "world/haze"), vectors, (RowRange(1, 2), RowRange(0, 4)), (3.0, 2.0), (0.5, 0.0), ({}, {})
    )
    return replace(plain, directions=named)


@pytest.fixture
def renderer(model: Model) -> Iterator[Renderer]:
    renderer = Renderer(model, "cpu")
    yield renderer
    renderer.close()


def test_the_named_ones_of_a_renderer_are_those_of_the_file(model: Model) -> None:
    named, kept = named_part(model_directions(model)), model.directions
    assert named is not None
    assert kept is not None
    assert (named.names, named.rows, named.reach, named.centre) == (kept.names, kept.rows, kept.reach, kept.centre)
    assert np.array_equal(named.vectors, kept.vectors)
    assert named_part(model_directions(make_stylegan2())) is None


def test_named_directions_come_before_those_of_the_weights(model: Model) -> None:
    found = model_directions(model)
    assert found.names == ("world/sun", "world/haze", *(f"sefa/{index}" for index in range(8)))
    assert found.rows[:3] == (RowRange(1, 2), RowRange(0, 4), RowRange())
    assert found.reach[:2] == (3.0, 2.0)
    assert found.centre[:3] == (0.5, 0.0, 0.0)
    assert found.vectors.shape == (10, 8)


def test_a_model_without_them_has_those_of_the_weights_on_all_rows() -> None:
    found = model_directions(make_stylegan2())
    assert found.rows == (RowRange(),) * 8
    assert found.centre == (0.0,) * 8


def test_a_request_may_name_one(renderer: Renderer, model: Model) -> None:
    def picture(*directions: DirectionAmount) -> np.ndarray:
        blend = ((Recipe(Latent(directions=directions)), 1.0),)
        return renderer.render(replace(request_for(renderer), blend=blend)).pixels.copy()

    plain = picture()
    assert not np.array_equal(picture(DirectionAmount("world/sun", 2.0, RowRange(1, 2))), plain)
    with pytest.raises(RequestError, match=r"one of 'world/sun', 'world/haze', sefa/0\.\.sefa/7 or axis/0"):
        picture(DirectionAmount("world/moon", 1.0))

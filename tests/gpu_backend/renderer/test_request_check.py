"""What a model has not is refused with one sentence, before anything is computed."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu_backend import (
    Arc,
    Bend,
    DirectionAmount,
    Frame,
    Latent,
    LocalEdits,
    MaskedBlend,
    MixSource,
    Noise,
    Point,
    Recipe,
    Renderer,
    RenderRequest,
    RequestError,
    Tap,
    Transform,
    Truncation,
)
from tests.helpers.networks import make_stylegan2
from tests.helpers.requests import request_for


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    renderer = Renderer(make_stylegan2(resolution=32), "cpu")
    yield renderer
    renderer.close()


def refusals(renderer: Renderer) -> list[tuple[RenderRequest, str]]:
    good = request_for(renderer)

    def with_latent(**fields: Any) -> RenderRequest:
        return request_for(renderer, replace(Latent(), **fields))

    return [
        (replace(good, model_id="f" * 64), "The request is for the model 'ffffffffffff', but"),
        (replace(good, transform=(1.0, 0, 0, 0, 1.0, 0, 0, 0, 1.0)), "A StyleGAN2 network takes no transform"),
        (replace(good, resolution=12), "must be one of 4, 8, 16, 32 for this network, not 12"),
        (replace(good, tap=Tap("b99.conv0")), "The layer must be one of this network's, b4.conv1 to b32.torgb, not"),
        (replace(good, tap=Tap("synthesis.b8.conv1")), "named without 'synthesis.': 'b8.conv1', not 'synthesis.b8"),
        (replace(good, blend=()), "at least one recipe, but its blend is empty"),
        (replace(good, noise=Noise(gain=math.nan)), "A noise gain must be a number in -1000..1000, not nan"),
        (replace(good, noise=Noise(layer_gains=(1.0,) * 99)), "7 noise layers, but has 99"),
        (replace(good, noise=Noise("random", seed=-1)), "noise seed must be in"),
        (replace(good, noise=Noise("loud")), "must be one of none, const, random, not 'loud'"),  # type: ignore[arg-type]
        (with_latent(classes=((1, 1.0),)), "This network has no classes, but class 1 was requested"),
        (with_latent(point=Point(((0, math.inf),))), "A weight must be a finite number"),
        (with_latent(point=Point(space="y")), "The space of a point must be one of w, z, not 'y'"),  # type: ignore[arg-type]
        (with_latent(directions=(DirectionAmount("sefa/99", 1.0),)), "one of sefa/0..sefa/7 or axis/0..axis/7"),
        (with_latent(mix=(MixSource(Latent(), (2.0,)),)), "A mix strength must be in 0..1"),
        (request_for(renderer, psi=math.inf), "psi must be a finite number"),
        (replace(good, blend=((Recipe(truncation=Truncation(0.5, 9)), 1.0),)), "must be in 0..8 for this network"),
    ]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"blend": Recipe()}, "a tuple of (recipe, weight) pairs, not a Recipe"),
        ({"blend": (Recipe(),)}, "(recipe, weight) pairs, but one item is a Recipe"),
        ({"blend": ((Recipe(), 1.0, 2.0),)}, "(recipe, weight) pairs, but one item is a tuple of 3"),
        ({"noise": "const"}, "The noise of a request is a Noise, not a str"),
        ({"noise": Noise("random", seed=1.5)}, "The noise seed is a whole number, not 1.5"),  # type: ignore[arg-type]
        ({"model_id": 7}, "The model_id of a request is a text, not 7"),
        ({"tap": "b8.conv0"}, "The tap of a request is a Tap or None, not a str"),
        ({"edits": ()}, "The edits of a request are LocalEdits, not a tuple"),
        ({"blend": ((Recipe(Latent(7)), 1.0),)}, "The point of a latent is a Point, Arc or StoredLatent, not 7"),  # type: ignore[arg-type]
        ({"tap": Tap("b8.conv1", (1.5,))}, "A channel is a whole number, not 1.5"),  # type: ignore[arg-type]
        ({"blend": ((Recipe(truncation=Truncation(0.5, 2.5)), 1.0),)}, "cutoff is a whole number or None, not 2.5"),  # type: ignore[arg-type]
        ({"blend": ((Recipe(Latent(Point(((1.5, 1.0),)))), 1.0),)}, "A seed is a whole number, not 1.5"),  # type: ignore[arg-type]
        ({"transform": Transform(0.1)}, "nine numbers, as `Transform.matrix` has them, not a Transform"),
        ({"blend": ((Recipe(), "1"),)}, "The weight of a recipe is a number, not '1'"),
        ({"blend": ((Recipe(Point()), 1.0),)}, "The latent of a recipe is a Latent, not a Point"),  # type: ignore[arg-type]
        ({"blend": ((Recipe(truncation=0.7), 1.0),)}, "The truncation of a recipe is a Truncation, not a float"),  # type: ignore[arg-type]
        ({"blend": ((Recipe(Latent(Point(7))), 1.0),)}, "a tuple of (seed, weight) pairs, not an int"),  # type: ignore[arg-type]
        ({"blend": ((Recipe(Latent(Point((7,)))), 1.0),)}, "(seed, weight) pairs, but one is an int"),  # type: ignore[arg-type]
        ({"blend": ((Recipe(Latent(Arc(Point(), Point((1,)), 0.5))), 1.0),)}, "pairs, but one is an int"),  # type: ignore[arg-type]
        ({"blend": ((Recipe(Latent(classes=(1,))), 1.0),)}, "(class, weight) pairs, but one is an int"),  # type: ignore[arg-type]
        (
            {"blend": ((Recipe(Latent(directions=(("sefa/0", 1.0),))), 1.0),)},  # type: ignore[arg-type]
            "The directions of a latent are a tuple of DirectionAmount, but one item is a tuple of 2",
        ),
        (
            {"blend": ((Recipe(Latent(directions=DirectionAmount("sefa/0", 1.0))), 1.0),)},  # type: ignore[arg-type]
            "The directions of a latent are a tuple of DirectionAmount, not a DirectionAmount",
        ),
        (
            {"blend": ((Recipe(Latent(mix=(MixSource(Latent(mix=(1,))),))), 1.0),)},  # type: ignore[arg-type]
            "The mix sources of a latent are a tuple of MixSource, but one item is an int",
        ),
        ({"edits": LocalEdits(bends=Bend("b8.conv1", "gain", 2.0))}, "tuple of Bend, not a Bend"),  # type: ignore[arg-type]
        ({"edits": LocalEdits(blends=(MaskedBlend(0, None),))}, "The second latent of a blend is a Recipe, not an int"),  # type: ignore[arg-type]
    ],
)
def test_a_field_of_another_type_is_a_type_error_that_names_the_right_one(
    renderer: Renderer, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(sentence)):
        renderer.render(replace(request_for(renderer), **fields))


def test_what_is_no_request_is_a_type_error(renderer: Renderer) -> None:
    with pytest.raises(TypeError, match="renders a RenderRequest, not a Recipe"):
        renderer.render(Recipe())  # type: ignore[arg-type]


def test_a_path_in_place_of_a_model_names_the_function_that_takes_paths() -> None:
    with pytest.raises(TypeError, match="not a str; open_renderer takes a path"):
        Renderer("hills.safetensors")  # type: ignore[arg-type]


def test_rows_of_a_recipe_outside_a_blend_are_a_type_error(renderer: Renderer) -> None:
    with pytest.raises(TypeError, match=re.escape("a sequence of (recipe, weight) pairs, not a Recipe")):
        renderer.rows_of(Recipe())  # type: ignore[arg-type]


def test_one_request_in_place_of_a_batch_names_what_takes_one(renderer: Renderer) -> None:
    with pytest.raises(TypeError, match="A batch is a sequence of requests, not one; `render` and `submit` take one"):
        renderer.render_batch(request_for(renderer))  # type: ignore[arg-type]


def test_a_psi_that_is_no_number_is_a_type_error(renderer: Renderer) -> None:
    with pytest.raises(TypeError, match="The truncation psi is a number, not 'low'"):
        renderer.map(np.ones((1, 8)), psi="low")  # type: ignore[arg-type]


def test_mapped_rows_that_overflow_are_refused(renderer: Renderer) -> None:
    with pytest.raises(RequestError, match=re.escape("these z with psi 1e+39 give others")):
        renderer.map(np.ones((1, 8)), psi=1e39)


def test_a_request_for_a_feature_the_model_lacks_is_refused_with_one_sentence(renderer: Renderer) -> None:
    for request, words in refusals(renderer):
        with pytest.raises(RequestError, match=re.escape(words)) as caught:
            renderer.render(request)
        assert caught.value.sentence.endswith(".")
        assert "\n" not in caught.value.sentence
    assert isinstance(renderer.render(request_for(renderer)), Frame), "it goes on working afterwards"


def test_arrays_of_the_wrong_shape_are_refused_with_one_sentence(renderer: Renderer) -> None:
    with pytest.raises(RequestError, match=re.escape("z must have the shape (n, 8) for this network, but has (1, 9).")):
        renderer.map(np.zeros((1, 9)))
    with pytest.raises(RequestError, match=re.escape("the shape (n, 8) with at least one row, but has (0, 8).")):
        renderer.map(np.ones((0, 8)))
    with pytest.raises(RequestError, match=re.escape("ws must have the shape (n, 8, 8)")):
        renderer.synthesize(np.zeros((8, 8)))
    with pytest.raises(RequestError, match="must hold finite numbers"):
        renderer.synthesize(np.full((1, 8, 8), np.nan))
    with pytest.raises(RequestError, match="must be an array of numbers"):
        renderer.map("seed 3")
    with pytest.raises(RequestError, match="no classes; leave c out"):
        renderer.map(np.zeros((1, 8)), np.ones((1, 2)))
    with pytest.raises(RequestError, match="takes no transform"):
        renderer.synthesize(np.zeros((1, 8, 8)), transform=np.eye(3))
    with pytest.raises(RequestError, match="must be one of none, const, random"):
        renderer.layer_statistics(np.zeros((1, 8, 8)), noise="loud")  # type: ignore[arg-type]

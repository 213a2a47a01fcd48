"""Requests as JSON: both ways without loss, and nothing but a RequestError from a hostile file."""

import json
import math
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from gpu_backend import (
    MASK_SIDE,
    SEED_COUNT,
    Bend,
    BendKind,
    DirectionAmount,
    Latent,
    LocalEdits,
    MaskedBlend,
    MixSource,
    Noise,
    PictureMask,
    Point,
    Recipe,
    RenderRequest,
    RequestError,
    RowRange,
    StyleOffset,
    Tap,
    Truncation,
    latent_from_json,
    noise_from_json,
    recipe_from_json,
    request_from_json,
    request_to_json,
    stored_from_json,
    stored_in,
    stored_in_edits,
    stored_latent,
    stored_to_json,
)
from tests.helpers.strategies import examples, texts

numbers = st.floats(allow_nan=False, allow_infinity=False)
seeds = st.integers(0, SEED_COUNT - 1)
rows = st.builds(RowRange, st.integers(0, 40), st.none() | st.integers(0, 40))
points = st.builds(
    Point, st.lists(st.tuples(seeds, numbers), min_size=1, max_size=4).map(tuple), st.sampled_from(["w", "z"])
)


def latents(inner: st.SearchStrategy[Latent]) -> st.SearchStrategy[Latent]:
    return st.builds(
        Latent,
        points,
        st.lists(st.tuples(st.integers(0, 1000), numbers), max_size=3).map(tuple),
        st.lists(st.builds(MixSource, inner, st.lists(st.floats(0, 1), max_size=18).map(tuple)), max_size=2).map(tuple),
        st.lists(st.builds(DirectionAmount, texts(9), numbers, rows, st.booleans()), max_size=3).map(tuple),
    )


recipes = st.builds(
    Recipe,
    latents(latents(st.just(Latent()))),
    st.builds(Truncation, numbers, st.none() | st.integers(0, 18)),
)
bends = st.builds(
    Bend,
    texts(20),
    st.sampled_from(get_args(BendKind)),
    numbers,
    st.lists(st.integers(0, 4096), max_size=4).map(tuple),
    numbers,
)
offsets = st.builds(StyleOffset, texts(20), st.integers(0, 4096), numbers)
requests = st.builds(
    RenderRequest,
    model_id=texts(64),
    blend=st.lists(st.tuples(recipes, numbers), min_size=1, max_size=3).map(tuple),
    noise=st.builds(
        Noise,
        st.sampled_from(["none", "const", "random"]),
        seeds,
        numbers,
        st.lists(numbers, max_size=17).map(tuple),
    ),
    transform=st.none() | st.tuples(*[numbers] * 9),
    resolution=st.none() | st.integers(1, 2048),
    tap=st.none()
    | st.builds(
        Tap,
        texts(20),
        st.lists(st.integers(0, 4096), max_size=4).map(tuple),
        numbers,
        st.booleans(),
    ),
    edits=st.builds(LocalEdits, st.lists(bends, max_size=3).map(tuple), st.lists(offsets, max_size=3).map(tuple)),
)


@settings(deadline=None, max_examples=examples(30))
@given(requests)
def test_a_request_comes_back_from_json_as_it_was(request: RenderRequest) -> None:
    text = json.dumps(request_to_json(request), allow_nan=False)
    assert request_from_json(json.loads(text)) == request


def test_requests_are_hashable_so_that_equal_ones_can_be_recognised() -> None:
    assert len({RenderRequest("a"), RenderRequest("a"), RenderRequest("b")}) == 2


def test_fields_without_effect_on_the_picture_are_not_written() -> None:
    assert request_to_json(RenderRequest("a", measure_steps=True)) == request_to_json(RenderRequest("a"))


def test_omitted_fields_have_their_defaults() -> None:
    assert request_from_json({"model": "a", "blend": [[{}, 1]]}) == RenderRequest("a")


FIELDS = [
    *("model", "blend", "noise", "transform", "resolution", "latent", "psi", "cutoff", "seeds", "space"),
    *("classes", "mix", "directions", "mode", "seed", "gain", "layer_gains", "tap", "layer", "channels"),
]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts(5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=20,
)


@settings(deadline=None, max_examples=examples(80))
@given(json_values)
def test_any_json_is_read_or_refused_with_one_sentence(data: object) -> None:
    for read in (request_from_json, recipe_from_json, latent_from_json, noise_from_json):
        try:
            read(data)
        except RequestError as error:
            assert_is_one_sentence(error.sentence)


def assert_is_one_sentence(sentence: str) -> None:
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 200


@settings(deadline=None, max_examples=examples(30))
@given(requests, st.data())
def test_a_request_with_one_field_replaced_is_read_or_refused(request: RenderRequest, data: st.DataObject) -> None:
    tree = json.loads(json.dumps(request_to_json(request)))
    node, key = tree, data.draw(st.sampled_from(sorted(tree)))
    while data.draw(st.booleans()) and isinstance(node[key], dict | list) and node[key]:
        node = node[key]
        key = data.draw(st.sampled_from(sorted(node)) if isinstance(node, dict) else st.integers(0, len(node) - 1))
    node[key] = data.draw(json_values)
    try:
        request_from_json(tree)
    except RequestError as error:
        assert_is_one_sentence(error.sentence)


GOOD = {"model": "a", "blend": [[{}, 1.0]]}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "request must be a set of named fields, but is list"),
        ({**GOOD, "model": 3}, "model must be a text, but is 3"),
        ({"model": "a"}, "blend must be a list, but is NoneType"),
        ({**GOOD, "blend": []}, "at least one recipe, but is empty"),
        ({**GOOD, "blend": [[{}]]}, "Each item of blend must be a pair, but one is list"),
        ({**GOOD, "blend": [[{}, math.nan]]}, "blend weight must be a finite number, but is nan"),
        ({**GOOD, "blend": [[{}, 10**400]]}, "but is a whole number of 1329 bits"),
        ({**GOOD, "blend": [[{}, True]]}, "blend weight must be a finite number, but is True"),
        ({**GOOD, "blend": [[{"psi": "0.7"}, 1]]}, "psi must be a finite number, but is '0.7'"),
        ({**GOOD, "blend": [[{"cutoff": -1}, 1]]}, "cutoff must be a whole number in 0..4096, but is -1"),
        ({**GOOD, "blend": [[{"latent": {"seeds": [[2**32, 1]]}}, 1]]}, "whole number in 0..4294967295"),
        ({**GOOD, "blend": [[{"latent": {"seeds": [[10**5000, 1]]}}, 1]]}, "is a whole number of 16610 bits"),
        ({**GOOD, "blend": [[{"latent": {"space": "W" * 9000}}, 1]]}, "space must be 'w' or 'z'"),
        ({**GOOD, "blend": [[{"latent": {"directions": [["sefa/0", 1]]}}, 1]]}, r"\[name, amount, first row, last"),
        ({**GOOD, "blend": [[{"latent": {"directions": [["a", 1, 0, 1, 2]]}}, 1]]}, r"\[name, amount, first row, last"),
        ({**GOOD, "blend": [[{}, 1]] * 5000}, "may have 4096 items, but has 5000"),
        ({**GOOD, "noise": {"mode": ["const"]}}, "noise mode must be 'none', 'const' or 'random', but is list"),
        ({**GOOD, "transform": [1, 0, 0]}, "nine numbers, but has 3"),
        ({**GOOD, "tap": "b8.conv0"}, "tap must be a set of named fields, but is 'b8.conv0'"),
        ({**GOOD, "tap": {}}, "must name a layer"),
        ({**GOOD, "tap": {"layer": "b8.conv0", "normalized": 1}}, "must name a layer and say whether"),
        ({**GOOD, "tap": {"layer": "b8.conv0", "channels": [-1]}}, "channel must be a whole number"),
        ({**GOOD, "tap": {"layer": "b8.conv0", "gain_db": "loud"}}, "gain must be a finite number, but is 'loud'"),
        ({**GOOD, "resolution": 0}, "resolution must be a whole number in 1..65536, but is 0"),
    ],
)
def test_the_sentence_names_the_field_and_what_came(data: object, words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        request_from_json(data)
    assert_is_one_sentence(caught.value.sentence)


def test_mix_sources_nested_without_end_are_refused() -> None:
    latent: dict[str, object] = {}
    for _ in range(200):
        latent = {"mix": [[latent, [1.0]]]}
    with pytest.raises(RequestError, match="nested 8 deep, but these are nested deeper"):
        latent_from_json(latent)


def test_stored_latents_come_back_from_json_by_their_digest() -> None:
    stored = stored_latent(np.arange(12, dtype=np.float32).reshape(2, 6))
    latent = Latent(stored, mix=(MixSource(Latent(stored), (0.5,)),))
    request = RenderRequest("a", ((Recipe(latent), 1.0),))
    found = stored_from_json(json.loads(json.dumps(stored_to_json(stored_in([latent])))))
    assert request_from_json(json.loads(json.dumps(request_to_json(request))), found) == request
    with pytest.raises(RequestError, match="must be in the same file"):
        request_from_json(request_to_json(request))


@pytest.mark.parametrize(
    "value",
    [
        3,
        {"a": 3},
        {"a": [1, 2]},
        {"a": [1, 2, "%"]},
        {"a": [1, 1, "AAAAAA=="]},
        {"a": [0, 1, ""]},
        {"a": [1, 2, "AAAA"]},
    ],
)
def test_stored_latents_that_are_damaged_are_refused(value: Any) -> None:
    with pytest.raises(RequestError):
        stored_from_json(value)


@pytest.mark.parametrize(
    "edits",
    [
        [],
        {"bends": [["b4.conv1", "melt", 1.0, []]]},
        {"bends": [["b4.conv1", "gain", "1", []]]},
        {"bends": [["b4.conv1", "gain", 1.0, [-1]]]},
        {"bends": [["b4.conv1", "gain", 1.0, []]] * 65},
        {"styles": [["b4.conv1", 0]]},
        {"styles": [["b4.conv1", 0, 1.0]] * 257},
    ],
)
def test_edits_that_are_none_are_refused(edits: object) -> None:
    with pytest.raises(RequestError):
        request_from_json({"model": "a", "blend": [[{}, 1]], "edits": edits})


def test_more_edits_than_a_file_may_hold_are_not_written() -> None:
    too_many = LocalEdits((Bend("b4.conv1", "gain", 1.0),) * 65)
    with pytest.raises(RequestError, match="64 bends"):
        request_to_json(RenderRequest("a", edits=too_many))


def test_masks_of_blends_come_back_from_json_by_their_digest() -> None:
    mask = PictureMask(bytes([0, 255]) * (MASK_SIDE**2 // 2))
    edits = LocalEdits(blends=(MaskedBlend(Recipe(), mask, RowRange(1, 2), 0.5, 0.25), MaskedBlend(Recipe(), mask)))
    request = RenderRequest("a", edits=edits)
    written = json.loads(json.dumps(stored_to_json(stored_in_edits(edits))))
    assert list(written) == [mask.digest]
    assert len(written[mask.digest][1]) < 200
    data = json.loads(json.dumps(request_to_json(request)))
    assert request_from_json(data, stored_from_json(written)) == request
    with pytest.raises(RequestError, match="mask of a blend must be in the same file"):
        request_from_json(data)
    with pytest.raises(RequestError, match="stored mask is damaged"):
        stored_from_json({"0" * 64: written[mask.digest]})
    with pytest.raises(RequestError, match="damaged"):
        stored_from_json({mask.digest: ["mask", "!"]})
    data["edits"]["blends"][0].pop()
    with pytest.raises(RequestError, match="A blend must be"):
        request_from_json(data, stored_from_json(written))


def test_the_latents_of_blends_spend_the_budget_of_the_picture() -> None:
    seeds = Recipe(Latent(Point(tuple((seed, 1.0) for seed in range(3000)))))
    mask = PictureMask(bytes([255]) * MASK_SIDE**2)
    edits = LocalEdits(blends=(MaskedBlend(seeds, mask),))
    request_to_json(RenderRequest("a", edits=edits))
    with pytest.raises(RequestError, match="seeds"):
        request_to_json(RenderRequest("a", ((seeds, 1.0),), edits=edits))

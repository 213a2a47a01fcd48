"""Named directions beside a model: written, read strictly, refused in a sentence."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from gpu_backend import ModelFileError, NamedDirections, RowRange, UnsupportedModelError, read_model, write_safetensors
from gpu_backend.model.direction_file import KEY, MAX_FILE_BYTES, direction_path, read_directions, write_directions
from gpu_backend.model.named_directions import is_direction_name
from tests.helpers.networks import make_stylegan2

MODEL_ID, W_DIM, NUM_WS = "ab" * 32, 8, 6
VECTORS = np.random.default_rng(0).normal(size=(2, W_DIM)).astype(np.float32)
SOME = NamedDirections(
    names=("world/sun height", "pca/0"),
    vectors=VECTORS,
    rows=(RowRange(1, 3), RowRange(0, NUM_WS - 1)),
    reach=(3.0, 2.5),
    centre=(0.5, 0.0),
    measures=({"spearman": 0.97, "selectivity": 4.2}, {}),
)


def entry(**changes: Any) -> dict[str, Any]:
    plain = {"name": "world/sun", "rows": [0, 2], "reach": 2.0, "centre": 0.0, "measures": {}}
    return {key: value for key, value in {**plain, **changes}.items() if value is not ...}


def file_of(folder: Path, said: object, tensors: dict[str, Any] | None = None) -> Path:
    path = folder / "made.directions.safetensors"
    tensors = {"directions": VECTORS[:1]} if tensors is None else tensors
    text = said if isinstance(said, str) else json.dumps(said)
    path.write_bytes(safetensors.numpy.save(tensors, {KEY: text}))
    return path


def said(*entries: object, **changes: Any) -> dict[str, Any]:
    return {"version": 1, "model_id": MODEL_ID, "directions": list(entries or (entry(),)), **changes}


def refusal(path: Path) -> str:
    with pytest.raises(ModelFileError) as caught:
        read_directions(path, MODEL_ID, W_DIM, NUM_WS)
    sentence = caught.value.sentence
    assert sentence.startswith(f"{path.name} was not opened: expected ")
    assert sentence.endswith(".")
    assert sentence.count("\n") == 0
    return sentence


def test_a_written_file_reads_back_equal(tmp_path: Path) -> None:
    path = tmp_path / "x.directions.safetensors"
    write_directions(SOME, path, MODEL_ID)
    read = read_directions(path, MODEL_ID, W_DIM, NUM_WS)
    assert np.array_equal(read.vectors, VECTORS)
    assert (read.names, read.rows, read.reach, read.centre) == (SOME.names, SOME.rows, SOME.reach, SOME.centre)
    assert read.measures == SOME.measures
    first = path.read_bytes()
    write_directions(SOME, path, MODEL_ID)
    assert path.read_bytes() == first, "the same directions give the same bytes"


def test_directions_lie_beside_their_model() -> None:
    assert direction_path("/a/hills-256.safetensors") == Path("/a/hills-256.directions.safetensors")
    assert direction_path("net.v2.pkl") == Path("net.v2.directions.safetensors")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 2}, "another version"),
        ({"model_id": "cd" * 32}, "another one"),
        ({"directions": []}, "missing, empty or longer"),
        ({"directions": {}}, "missing, empty or longer"),
        ({"directions": [entry()] * 300}, "missing, empty or longer"),
        ({"directions": [entry(), entry(name="world/b")]}, "the shape is"),
    ],
)
def test_a_header_for_something_else_is_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    assert words in refusal(file_of(tmp_path, said(**changes)))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": ...}, "named like"),
        ({"name": 3}, "named like"),
        ({"name": "sefa/0"}, "named like"),
        ({"name": "axis/0"}, "named like"),
        ({"name": "world/a\x1b[2J"}, "named like"),
        ({"name": "world/" + "a" * 41}, "named like"),
        ({"rows": [0]}, "first and a last row"),
        ({"rows": [0, NUM_WS]}, "rows of w in 0..5"),
        ({"rows": [True, 2]}, "rows of w"),
        ({"rows": [0, None]}, "rows of w"),
        ({"rows": [3, 2]}, "upwards"),
        ({"reach": 0}, "0 in its range"),
        ({"reach": "3"}, "finite numbers"),
        ({"reach": 10**400}, "finite numbers"),
        ({"centre": 2.5}, "0 in its range"),
        ({"measures": []}, "measures"),
        ({"measures": {"spearman": True}}, "finite numbers"),
        ({"measures": {"": 1.0}}, "names of measures"),
        ({"measures": {str(index): 1.0 for index in range(40)}}, "measures"),
    ],
)
def test_a_damaged_direction_is_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    assert words in refusal(file_of(tmp_path, said(entry(**changes))))


def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    path = file_of(tmp_path, said(entry(), entry()), {"directions": VECTORS})
    assert "a different name" in refusal(path)


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({"directions": VECTORS[:1].astype(np.float16)}, "32-bit"),
        ({"directions": VECTORS[:1].astype(np.int32)}, "32-bit"),
        ({"directions": VECTORS[:1, :4].copy()}, "the shape is (1, 4)"),
        ({"directions": VECTORS[0]}, "the shape is (8,)"),
        ({"other": VECTORS[:1]}, "found other ones"),
        ({"directions": VECTORS[:1], "other": VECTORS}, "found other ones"),
        ({"directions": np.zeros((1, W_DIM), np.float32)}, "not all of them 0"),
        ({"directions": np.full((1, W_DIM), np.nan, np.float32)}, "finite"),
        ({"directions": np.full((1, W_DIM), np.inf, np.float32)}, "finite"),
        ({"directions": np.full((1, W_DIM), 3e38, np.float32)}, "finite"),
    ],
)
def test_numbers_that_are_no_directions_are_refused(tmp_path: Path, tensors: dict[str, Any], words: str) -> None:
    assert words in refusal(file_of(tmp_path, said(), tensors))


@pytest.mark.parametrize("text", ["", "[", "[]", '{"a": NaN}', '{"version": 1, "version": 1}', "[" * 5000])
def test_a_header_that_is_no_json_object_is_refused(tmp_path: Path, text: str) -> None:
    assert "header" in refusal(file_of(tmp_path, text))


def test_files_that_are_not_whole_are_refused(tmp_path: Path) -> None:
    path = file_of(tmp_path, said())
    whole = path.read_bytes()
    for length in (0, 1, 7, 8, 9, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        refusal(path)
    for content in (whole + b"\0", struct.pack("<Q", 1 << 60) + whole[8:], struct.pack("<Q", 4) + b"\xff" * 90):
        path.write_bytes(content)
        refusal(path)
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert "at most" in refusal(path)
    assert "folder" in refusal(tmp_path)
    assert "no file" in refusal(tmp_path / "missing")


def test_tensors_of_a_type_that_numpy_lacks_are_refused(tmp_path: Path) -> None:
    header = {
        "__metadata__": {KEY: json.dumps(said())},
        "directions": {"dtype": "BF16", "shape": [1, W_DIM], "data_offsets": [0, 2 * W_DIM]},
    }
    text = json.dumps(header).encode()
    path = tmp_path / "x"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(2 * W_DIM))
    refusal(path)


def test_directions_beyond_the_readers_limits_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "x.directions.safetensors"
    for changes in ({"names": ("sefa/0", "b/c")}, {"reach": (float("nan"), 1.0)}, {"vectors": VECTORS * 0}):
        fields = {name: getattr(SOME, name) for name in NamedDirections.__slots__}
        with pytest.raises(ModelFileError, match="was not written"):
            write_directions(NamedDirections(**{**fields, **changes}), path, MODEL_ID)
    assert not path.exists()


@pytest.mark.parametrize("name", ["world/sun height", "pca/0", "my-set/Größe"])
def test_names_are_a_set_and_a_name(name: str) -> None:
    assert is_direction_name(name)


@pytest.mark.parametrize("name", ["", "sun", "/sun", "world/", "world/ ", "World/a", "a/b/c", "world/a\n", " world/a"])
def test_other_names_are_none(name: str) -> None:
    assert not is_direction_name(name)


@pytest.fixture
def model_path(tmp_path: Path) -> Path:
    path = tmp_path / "hills.safetensors"
    write_safetensors(make_stylegan2(), path)
    return path


def test_a_model_is_read_with_the_directions_beside_it(model_path: Path) -> None:
    write_directions(SOME, direction_path(model_path), read_model(model_path).facts.model_id)
    model = read_model(model_path)
    assert model.directions is not None
    assert model.directions.names == SOME.names
    assert model.facts.named_directions == SOME.names
    assert model.facts.warnings == ()


def test_a_model_is_read_without_directions_that_are_not_its_own_and_reports_it(model_path: Path) -> None:
    write_directions(SOME, direction_path(model_path), MODEL_ID)
    model = read_model(model_path)
    assert model.directions is None
    assert model.facts.named_directions == ()
    assert "they were found in another one" in model.facts.warnings[-1]


def test_a_file_of_directions_is_no_model_and_says_what_to_open(tmp_path: Path) -> None:
    path = tmp_path / "x.directions.safetensors"
    write_directions(SOME, path, MODEL_ID)
    with pytest.raises(UnsupportedModelError, match="open the model that it lies beside"):
        read_model(path)

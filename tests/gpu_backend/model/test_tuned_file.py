"""A tuned model: a file of changes that is opened with the model that it changes."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from gpu_backend import (
    Base,
    ModelFileError,
    NamedDirections,
    RowRange,
    changed_model,
    read_model,
    tuned_path,
    write_directions,
    write_safetensors,
    write_tuned,
)
from gpu_backend.model.tuned_file import KEY
from tests.helpers.networks import make_stylegan2

NAME = "synthesis.b8.conv0.weight"


@pytest.fixture
def base(tmp_path: Path) -> Base:
    path = tmp_path / "hills.safetensors"
    write_safetensors(make_stylegan2(), path)
    return Base(path, read_model(path).facts.model_id, "photo.png")


@pytest.fixture
def changes(base: Base) -> dict[str, np.ndarray]:
    shape = read_model(base.path).weights[NAME].shape
    return {NAME: np.random.default_rng(1).standard_normal(shape).astype(np.float16).astype(np.float32)}


def test_changes_are_added_to_the_weights_of_the_other_model(base: Base, changes: dict[str, np.ndarray]) -> None:
    path = tuned_path(base.path, "/photos/lake.jpg")
    assert path.name == "hills.lake.safetensors"
    write_tuned(changes, base, path)
    whole, tuned = read_model(base.path), read_model(path)
    np.testing.assert_array_equal(tuned.weights[NAME], whole.weights[NAME] + changes[NAME])
    others = set(whole.weights) - {NAME}
    assert set(tuned.weights) == set(whole.weights)
    assert all(np.array_equal(tuned.weights[name], whole.weights[name]) for name in others)
    assert tuned.facts.model_id != whole.facts.model_id
    assert tuned.facts.flavour == "tuned to photo.png"
    assert path.stat().st_size < 0.2 * base.path.stat().st_size


def test_long_names_are_cut() -> None:
    path = tuned_path("m" * 240 + ".pkl", "\u56fe" * 80 + ".png")
    assert path.name == f"{'m' * 115}.{chr(0x56FE) * 38}.safetensors"


def test_a_tuned_model_that_is_tuned_again_changes_the_first_model(
    base: Base, changes: dict[str, np.ndarray], tmp_path: Path
) -> None:
    once, twice = tmp_path / "once.safetensors", tmp_path / "elsewhere" / "twice.safetensors"
    write_tuned(changes, base, once)
    first = read_model(once)
    bias = "synthesis.b8.conv0.bias"
    more = {NAME: np.full_like(changes[NAME], 0.25), bias: np.full_like(first.weights[bias], 0.5)}
    write_tuned(more, Base(once, first.facts.model_id, "lake.jpg"), twice)
    once.unlink()
    tuned, plain = read_model(twice), read_model(base.path)
    assert tuned.facts.flavour == "tuned to lake.jpg"
    np.testing.assert_allclose(tuned.weights[NAME], plain.weights[NAME] + changes[NAME] + 0.25, atol=2e-3)
    np.testing.assert_allclose(tuned.weights[bias], plain.weights[bias] + 0.5, atol=2e-3)


def test_the_model_that_is_changed_is_not_overwritten(
    base: Base, changes: dict[str, np.ndarray], tmp_path: Path
) -> None:
    once = tmp_path / "once.safetensors"
    write_tuned(changes, base, once)
    for model in (base, Base(once, read_model(once).facts.model_id, "lake.jpg")):
        with pytest.raises(ModelFileError, match="choose another name"):
            write_tuned(changes, model, base.path)
    assert read_model(base.path).facts.model_id == base.model_id


def test_both_files_may_move_together(base: Base, changes: dict[str, np.ndarray], tmp_path: Path) -> None:
    write_tuned(changes, base, tmp_path / "tuned.safetensors")
    new = tmp_path / "new"
    new.mkdir()
    for name in ("hills.safetensors", "tuned.safetensors"):
        (tmp_path / name).rename(new / name)
    assert read_model(new / "tuned.safetensors").facts.flavour == "tuned to photo.png"


def test_a_model_whose_path_was_one_of_windows_is_found_beside(
    base: Base, changes: dict[str, np.ndarray], tmp_path: Path
) -> None:
    path = tmp_path / "tuned.safetensors"
    write_tuned(changes, replace(base, path=Path(r"C:\models\hills.safetensors")), path)
    assert read_model(path).facts.flavour == "tuned to photo.png"
    found = changed_model(path)
    assert found is not None
    assert found.path == base.path
    base.path.unlink()
    with pytest.raises(ModelFileError, match=r"expected hills\.safetensors beside it"):
        read_model(path)


@pytest.mark.parametrize(
    ("photo", "flavour"),
    [
        ("Screenshot at 1.23\u202fPM.png", "tuned to Screenshot at 1.23 PM.png"),
        ("a\nb\x1b.png", r"tuned to a b\x1b.png"),
    ],
)
def test_names_may_hold_any_character(
    base: Base, changes: dict[str, np.ndarray], tmp_path: Path, photo: str, flavour: str
) -> None:
    folder = tmp_path / "new\u00a0models"
    folder.mkdir()
    moved = base.path.rename(folder / "hills.safetensors")
    path = tmp_path / "tuned.safetensors"
    write_tuned(changes, Base(moved, base.model_id, photo), path)
    assert read_model(path).facts.flavour == flavour


def test_texts_that_cannot_be_read_again_are_not_written(
    base: Base, changes: dict[str, np.ndarray], tmp_path: Path
) -> None:
    path = tmp_path / "tuned.safetensors"
    with pytest.raises(ModelFileError, match="was not written"):
        write_tuned(changes, replace(base, photo="x" * 5000), path)
    assert not path.exists()


def test_both_files_may_be_kept_under_their_sha256(base: Base, changes: dict[str, np.ndarray], tmp_path: Path) -> None:
    path = tmp_path / "tuned.safetensors"
    write_tuned(changes, base, path)
    model_id = read_model(path).facts.model_id
    assert changed_model(path) == base
    assert changed_model(base.path) is None
    assert changed_model(tmp_path / "none.safetensors") is None
    kept = tmp_path / "kept"
    kept.mkdir()
    base.path.rename(kept / f"{base.model_id}.safetensors")
    path = path.rename(kept / f"{model_id}.safetensors")
    assert read_model(path).facts.flavour == "tuned to photo.png"
    found = changed_model(path)
    assert found is not None
    assert found.path == kept / f"{base.model_id}.safetensors"


def test_a_model_with_an_unusual_suffix_is_found_as_workers_keep_it(
    base: Base, changes: dict[str, np.ndarray], tmp_path: Path
) -> None:
    path = tmp_path / "tuned.safetensors"
    write_tuned(changes, Base(base.path.rename(tmp_path / "hills.ckpt"), base.model_id, base.photo), path)
    kept = tmp_path / "kept"
    kept.mkdir()
    (tmp_path / "hills.ckpt").rename(kept / f"{base.model_id}.pkl")
    found = changed_model(path.rename(kept / "tuned.safetensors"))
    assert found is not None
    assert found.path == kept / f"{base.model_id}.pkl"
    assert read_model(kept / "tuned.safetensors").facts.flavour == "tuned to photo.png"


def test_the_progress_of_reading_covers_both_files(base: Base, changes: dict[str, np.ndarray], tmp_path: Path) -> None:
    write_tuned(changes, base, tmp_path / "tuned.safetensors")
    seen: list[float] = []
    read_model(tmp_path / "tuned.safetensors", progress=lambda done, total: seen.append(done / total))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_directions_of_the_other_model_are_shared(base: Base, changes: dict[str, np.ndarray], tmp_path: Path) -> None:
    spec = read_model(base.path).spec
    named = NamedDirections(
        names=("world/sun",),
        vectors=np.ones((1, spec.w_dim), np.float32),
        rows=(RowRange(0, spec.num_ws - 1),),
        reach=(3.0,),
        centre=(0.0,),
        measures=({},),
    )
    write_directions(named, tmp_path / "hills.directions.safetensors", base.model_id)
    write_tuned(changes, base, tmp_path / "tuned.safetensors")
    found = read_model(tmp_path / "tuned.safetensors").directions
    assert found is not None
    assert found.names == ("world/sun",)

    # Directions that are found in the tuned model come beside them.
    tuned_id = read_model(tmp_path / "tuned.safetensors").facts.model_id
    own = replace(named, names=("mine/0",))
    write_directions(own, tmp_path / "tuned.directions.safetensors", tuned_id)
    both = read_model(tmp_path / "tuned.safetensors").directions
    assert both is not None
    assert both.names == ("world/sun", "mine/0")


def test_what_does_not_fit_is_refused_with_a_sentence(
    base: Base, changes: dict[str, np.ndarray], tmp_path: Path
) -> None:
    tuned = tmp_path / "tuned.safetensors"

    def sentence() -> str:
        with pytest.raises(ModelFileError) as caught:
            read_model(tuned)
        return caught.value.sentence

    write_tuned({NAME: np.zeros((1, 2), np.float32)}, base, tuned)
    assert "of the same shape" in sentence()
    write_tuned({"other": np.zeros(3, np.float32)}, base, tuned)
    assert "it has no other" in sentence()
    write_tuned(changes, Base(base.path, "0" * 64, ""), tuned)
    assert "another file has its name" in sentence()
    write_tuned(changes, Base(tmp_path / "gone.pkl", base.model_id, ""), tuned)
    assert "gone.pkl beside it" in sentence()
    write_tuned(changes, Base(Path("//server/share/hills.pkl"), base.model_id, ""), tuned)
    assert "hills.pkl beside it" in sentence()
    write_tuned(changes, base, tuned)
    write_tuned(changes, Base(tuned, base.model_id, ""), tmp_path / "again.safetensors")  # not the SHA-256 of that file
    tuned = tmp_path / "again.safetensors"
    assert "not tuned itself" in sentence()


@pytest.mark.parametrize("said", [{}, {"version": 2}, {"version": 1, "base": 3}, {"version": 1, "base": "", "of": ""}])
def test_a_damaged_description_is_refused(said: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "tuned.safetensors"
    path.write_bytes(safetensors.numpy.save({"x": np.zeros(1, np.float32)}, {KEY: json.dumps(said)}))
    with pytest.raises(ModelFileError, match="tuned"):
        read_model(path)


def test_changes_beyond_half_precision_are_not_written(base: Base, tmp_path: Path) -> None:
    for value in (1e6, float("nan")):
        with pytest.raises(ModelFileError):
            write_tuned({NAME: np.full((2, 2), value, np.float32)}, base, tmp_path / "tuned.safetensors")
    assert not (tmp_path / "tuned.safetensors").exists()


def test_a_base_whose_name_is_too_long_for_a_file_is_missing(
    base: Base, changes: dict[str, np.ndarray], tmp_path: Path
) -> None:
    path = tmp_path / "tuned.safetensors"
    write_tuned(changes, Base(Path("a" * 4000), base.model_id, ""), path)
    with pytest.raises(ModelFileError, match=r"^tuned\.safetensors was not opened: .*\.$"):
        read_model(path)

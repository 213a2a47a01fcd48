from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from gpu_backend import direction_path, read_model, write_safetensors
from gpu_backend.training.quality.feature_file import write_features
from gpu_backend.training.quality.feature_network import FeatureNetwork, FeatureShape
from tests.helpers.command import Command
from tests.helpers.networks import make_stylegan2

FEW = ("--latents", 40, "--probes", 3, "--measured", 3, "--least-skill", -9, "--device", "cpu")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_safetensors(make_stylegan2(resolution=8, seed=1), tmp_path / "hills.safetensors")
    return tmp_path / "hills.safetensors"


@pytest.fixture
def features(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    shape = FeatureShape(side=8, widths=(8, 8), squeezed=4, features=8)
    network = FeatureNetwork(("sun_height", "haze", "odd"), shape, torch.zeros(3), torch.ones(3))
    network.head.weight.data *= 20  # so that it tells something of any picture
    write_features(network, {"sun_height": 0.9, "haze": 0.8, "odd": -10.0}, tmp_path / "features.safetensors")
    return tmp_path / "features.safetensors"


def test_components_of_w_lie_beside_the_model_and_are_found_there(command: Command, model: Path) -> None:
    outcome = command("directions", model, "--method", "pca", "--count", 3, "--latents", 50)
    assert outcome.status == 0, outcome.err
    assert "pca/2" in outcome.out
    assert "share" in outcome.out
    assert outcome.err.endswith(
        "hills.directions.safetensors holds 3 directions of hills, 3 of them from method pca.\n"
    )
    assert read_model(model).facts.named_directions == ("pca/0", "pca/1", "pca/2")
    assert "pca/1\n" in command("inspect", model).out


def test_a_search_that_must_fail_leaves_all_files_as_they_are(command: Command, model: Path) -> None:
    words = ("directions", model, "--method", "pca", "--latents", 50)
    assert " holds 1 direction of hills, 1 " in command(*words, "--count", 1).err
    before = {path.name: path.read_bytes() for path in model.parent.iterdir()}
    assert "is the model itself" in command(*words, "--out", model, "--replace").sentence
    assert "all are the same" in command(*words, "--psi", 0, "--replace").sentence
    assert "from 1 to 256" in command(*words, "--count", 257, "--replace").sentence
    assert {path.name: path.read_bytes() for path in model.parent.iterdir()} == before


def test_sets_are_added_and_one_of_the_same_name_is_replaced(command: Command, model: Path) -> None:
    command("directions", model, "--method", "sefa", "--count", 2)
    command("directions", model, "--method", "pca", "--count", 3, "--latents", 50, "--add")
    old = direction_path(model).with_name(f"{direction_path(model).name}.old")
    assert not old.exists(), "nothing was replaced yet"
    before = direction_path(model).read_bytes()
    outcome = command("directions", model, "--method", "pca", "--count", 1, "--latents", 50, "--add")
    assert outcome.status == 0
    assert f"The directions that are replaced stay in {old}." in outcome.err
    assert old.read_bytes() == before
    assert read_model(model).facts.named_directions == ("coarse/0", "coarse/1", "pca/0")


def test_a_file_that_is_there_is_replaced_only_when_told_so(command: Command, model: Path) -> None:
    command("directions", model, "--method", "sefa", "--count", 2)
    before = direction_path(model).read_bytes()
    words = ("directions", model, "--method", "pca", "--count", 1, "--latents", 50)
    sentence = command(*words).sentence
    assert "already exists" in sentence
    assert "--add" in sentence
    assert direction_path(model).read_bytes() == before
    assert "not both" in command(*words, "--add", "--replace").sentence
    assert command(*words, "--replace").status == 0
    assert read_model(model).facts.named_directions == ("pca/0",)
    assert direction_path(model).with_name(f"{direction_path(model).name}.old").read_bytes() == before


def test_directions_below_the_requested_evenness_are_left_out_and_named(
    command: Command, model: Path, features: Path
) -> None:
    words = ("directions", model, "--method", "world", "--features", features, *FEW)
    command(*words)
    everything = read_model(model).directions
    assert everything is not None
    evenness = [measures["spearman"] for measures in everything.measures]
    assert len(set(evenness)) == 2, "else no bound lies between them"
    outcome = command(*words, "--replace", "--least-spearman", sum(evenness) / 2)
    assert outcome.status == 0, outcome.err
    kept = read_model(model).directions
    assert kept is not None
    assert kept.names == (everything.names[int(np.argmax(evenness))],)
    lost = everything.names[int(np.argmin(evenness))].removeprefix("world/").replace(" ", "_")
    assert f"others with it: {lost} (spearman" in outcome.err


def test_bounds_that_nothing_keeps_to_leave_the_file_as_it_was(command: Command, model: Path, features: Path) -> None:
    outcome = command(
        "directions", model, "--method", "world", "--features", features, *FEW, "--least-selectivity", 1e9
    )
    assert outcome.status == 2
    assert "should keep to --least-spearman -1 and --least-selectivity 1e+09, but none does" in outcome.err
    assert not direction_path(model).exists()


def test_bounds_are_for_methods_that_measure(command: Command, model: Path) -> None:
    outcome = command("directions", model, "--method", "pca", "--least-spearman", 0.9)
    assert outcome.status == 2
    assert "Method pca measures no factors" in outcome.err


def test_factors_of_the_world_are_named_and_measured(command: Command, model: Path, features: Path) -> None:
    outcome = command("directions", model, "--method", "world", "--features", features, *FEW)
    assert outcome.status == 0, outcome.err
    assert "Left out, since the network explains too little of them: odd" in outcome.err
    directions = read_model(model).directions
    assert directions is not None
    assert set(directions.names) <= {"world/sun height", "world/haze"}
    assert all(-1.0 <= measures["spearman"] <= 1.0 for measures in directions.measures)
    assert "spearman" in outcome.out


def test_labels_of_a_folder_become_directions(command: Command, model: Path, features: Path, tmp_path: Path) -> None:
    for index in range(24):
        path = tmp_path / "labelled" / ("dark" if index % 2 else "bright") / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (10 * index,) * 3 if index % 2 else (0, 200, index)).save(path)
    words = ("directions", model, "--method", "labels", "--labels", tmp_path / "labelled", "--out", tmp_path / "x")
    outcome = command(*words, "--features", features, *FEW)
    assert outcome.status == 0, outcome.err
    assert "labels/bright" in outcome.out
    assert (tmp_path / "x").is_file()
    assert not direction_path(model).exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--method", "world"), "need --features"),
        (("--method", "labels"), "go together"),
        (("--method", "pca", "--labels", "x"), "go together"),
        (("--method", "pca", "--features", "x"), "leave --features out"),
        (("--method", "sefa", "--factors", "x"), "leave --factors out"),
        (("--method", "world", "--features", "x", "--count", "3"), "leave --count out"),
        (("--method", "pca", "--count", "0"), "a whole number from 1"),
        (("--method", "pca", "--latents", "5"), "at least 10 latents"),
        (("--method", "pca", "--psi", "nan"), "finite"),
        (("--method", "magic"), "invalid choice"),
        (("--method", "world", "--features", "missing"), "there is no file of that name"),
    ],
)
def test_options_that_exclude_each_other_are_refused_with_one_sentence(
    command: Command, model: Path, words: tuple[str, ...], told: str
) -> None:
    outcome = command("directions", model, *words)
    assert outcome.status == 2
    assert told in outcome.err
    assert not direction_path(model).exists()


def test_a_factor_that_is_not_known_is_reported(command: Command, model: Path, features: Path) -> None:
    words = ("directions", model, "--method", "world", "--features", features, *FEW, "--factors", "moon")
    assert "sun_height, haze" in command(*words).err


def test_directions_that_were_found_in_another_model_are_not_added_to(command: Command, model: Path) -> None:
    command("directions", model, "--method", "sefa")
    write_safetensors(make_stylegan2(resolution=8, seed=5), model)
    assert "found in another one" in command("directions", model, "--method", "pca", "--add").sentence


def test_labels_that_cannot_be_told_apart_as_directions_are_refused_before_the_search(
    command: Command, model: Path, tmp_path: Path
) -> None:
    words = ("directions", model, "--method", "labels", "--labels", tmp_path / "labelled", "--steps", 2, *FEW)
    for index in range(30):
        label = ("a_b", "a b", "c")[index % 3]
        path = tmp_path / "labelled" / label / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (index, index, index)).save(path)
    outcome = command(*words)
    assert "'a b' and 'a_b' would both be the direction 'labels/a b'" in outcome.sentence
    assert "Training" not in outcome.err
    (tmp_path / "labelled" / "a_b").rename(tmp_path / "labelled" / "_")
    assert "'_' cannot name a direction" in command(*words).sentence


def test_a_place_that_takes_no_files_is_refused_before_the_search(command: Command, model: Path) -> None:
    words = ("directions", model, "--method", "pca", "--latents", 10**9 - 1)  # which would take hours
    assert "must be a folder" in command(*words, "--out", model / "found.safetensors").sentence

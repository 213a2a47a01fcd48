"""TensorFlow pickles, pickled by Python's own pickler, and pictures that the original TensorFlow code gave for some."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_backend import ModelFileError, Renderer, UnsupportedModelError, read_model, write_safetensors
from tests.gpu_backend.model.test_checkpoint import assert_same
from tests.helpers.networks import StyleGAN2Model, as_stylegan2, make_stylegan2
from tests.helpers.sentences import assert_one_sentence
from tests.helpers.tensorflow_file import arguments_of, generator, network, pickled, write_tensorflow
from tests.helpers.tool_names import Tensors, exact, tensorflow_variables

HOSTILE = Path(__file__).parents[2] / "data" / "hostile"
NETWORKS: dict[str, dict[str, Any]] = {
    "skip": {"resolution": 32, "channels": {4: 7, 8: 5, 16: 3, 32: 2}},
    "resnet": {"architecture": "resnet", "img_channels": 1},
    "orig": {"architecture": "orig", "mapping_widths": (9, 7, 8), "z_dim": 5},
    "ADA, conditional": {"c_dim": 3, "embed_dim": 8, "conv_clamp": 256.0, "num_fp16_res": 2},
    "conditional, joined": {"c_dim": 3, "joins_label": True},
    "other activations": {"activation": "relu", "lr_multiplier": 0.1},
    "no noise": {"use_noise": False},
    "smallest": {"resolution": 4},
}


class Payload:
    """Asks to run something when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("touch PWNED",)


@pytest.mark.parametrize("network_", NETWORKS)
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_gives_the_network_back(protocol: int, network_: str, tmp_path: Path) -> None:
    made = exact(make_stylegan2(seed=protocol, **NETWORKS[network_]))
    version = 5 if made.spec.mapping.c_dim and not made.spec.mapping.joins_label else 4
    changes = {"latent_size": None, "dlatent_size": None, "mapping_layers": None}
    path = write_tensorflow(tmp_path / "n.pkl", made, protocol=protocol, version=version, changes=changes)
    model = read_model(path)
    assert_same(model, made)
    facts = model.facts
    assert facts.flavour == ("StyleGAN2-ADA, TensorFlow" if version == 5 else "TensorFlow")
    assert facts.container == "TensorFlow pickle"
    assert facts.ignored == (
        "G: the generator as it was in training",
        "D: the discriminator",
        "program source inside the file: never run",
    )
    assert facts.warnings == ()
    assert "dnnlib.tflib.network Network" in facts.names_requested


def test_a_network_with_a_torgb_for_each_resolution_is_run_as_orig(tmp_path: Path) -> None:
    made = exact(make_stylegan2(architecture="orig"))
    tensors = tensorflow_variables(made, is_grown=True)
    for place, channels in ((1, 6), (2, 6)):
        tensors[f"synthesis/ToRGB_lod{place}/weight"] = np.zeros((1, 1, channels, 3), np.float32)
        tensors[f"synthesis/ToRGB_lod{place}/bias"] = np.zeros(3, np.float32)
        tensors[f"synthesis/ToRGB_lod{place}/mod_weight"] = np.zeros((8, channels), np.float32)
        tensors[f"synthesis/ToRGB_lod{place}/mod_bias"] = np.zeros(channels, np.float32)
    path = write_tensorflow(tmp_path / "n.pkl", made, is_grown=True, tensors=tensors)
    assert_same(read_model(path), made)


def test_a_network_stored_before_it_was_grown_is_not_run(tmp_path: Path) -> None:
    made = make_stylegan2(architecture="orig")
    tensors = {**tensorflow_variables(made, is_grown=True), "synthesis/lod": np.array(1.5, np.float32)}
    with pytest.raises(UnsupportedModelError) as caught:
        read_model(write_tensorflow(tmp_path / "n.pkl", made, is_grown=True, tensors=tensors))
    assert_one_sentence(caught.value, "before it was")


def test_a_generator_pickled_by_itself_is_read(tmp_path: Path) -> None:
    made = exact(make_stylegan2())
    path = tmp_path / "n.pkl"
    path.write_bytes(pickled(generator(tensorflow_variables(made), arguments_of(made))))
    assert_same(read_model(path), made)


def test_the_defaults_of_the_tools_stand_for_arguments_that_are_missing(tmp_path: Path) -> None:
    made = exact(make_stylegan2())
    changes = dict.fromkeys(arguments_of(made))
    assert_same(read_model(write_tensorflow(tmp_path / "n.pkl", made, changes=changes)), made)


def test_arrays_that_lie_otherwise_in_memory_are_read(tmp_path: Path) -> None:
    made = exact(make_stylegan2())
    odd: dict[str, Any] = {}
    for name, array in tensorflow_variables(made).items():
        wide = array.astype(np.float64) if "Dense" in name else array
        odd[name] = np.asfortranarray(wide) if array.ndim else wide
    components = {
        part: network(part, "", {key.removeprefix(f"{part}/"): a for key, a in odd.items() if key.startswith(part)}, {})
        for part in ("mapping", "synthesis")
    }
    whole = network("Gs", "G_main", {"dlatent_avg": odd["dlatent_avg"]}, arguments_of(made), components)
    (tmp_path / "n.pkl").write_bytes(pickled(whole))
    assert_same(read_model(tmp_path / "n.pkl"), made)


def test_a_filter_among_the_arguments_is_used(tmp_path: Path) -> None:
    path = write_tensorflow(tmp_path / "n.pkl", make_stylegan2(), changes={"resample_kernel": [1, 2, 1]})
    assert as_stylegan2(read_model(path)).spec.resample_filter == (0.25, 0.5, 0.25)


def test_unknown_arguments_are_warned_about(tmp_path: Path) -> None:
    (warning,) = read_model(
        write_tensorflow(tmp_path / "n.pkl", make_stylegan2(), changes={"wobble": 0.5})
    ).facts.warnings
    assert "'wobble'" in warning


@pytest.mark.parametrize(
    ("argument", "value", "part"),
    [
        ("resolution", 32, "resolution to be 16"),
        ("num_channels", 1, "num_channels to be 3"),
        ("label_size", 2, "label_size to be 0"),
        ("latent_size", 512, "latent_size to be 8"),
        ("mapping_layers", True, "mapping_layers to be 2"),
        ("architecture", "resnet", "architecture to be 'skip'"),
        ("architecture", ["skip"], "architecture"),
        ("mapping_lrmul", 0.0, "learning-rate multiplier"),
        ("mapping_lrmul", "fast", "learning-rate multiplier"),
        ("conv_clamp", -1.0, "a positive clamp"),
        ("num_fp16_res", -1, "half precision"),
        ("nonlinearity", "sine", "activations"),
        ("resample_kernel", [], "a resample filter"),
        ("resample_kernel", [1, "x"], "a resample filter"),
        ("resample_kernel", [1, -1], "a resample filter"),
        ("resample_kernel", [1] * 33, "a resample filter"),
        ("normalize_latents", False, "normalises z"),
    ],
)
def test_an_argument_that_contradicts_the_tensors_refuses_the_file(
    argument: str, value: Any, part: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelFileError) as caught:
        read_model(write_tensorflow(tmp_path / "n.pkl", make_stylegan2(), changes={argument: value}))
    assert_one_sentence(caught.value, part)


def _fill(tensors: Tensors) -> Tensors:
    """A * sin(1 + 0.7 k + h), h the sum of the characters of the name inside its component mod 97."""
    filled: Tensors = {}
    for name, array in tensors.items():
        own = name.removeprefix("mapping/").removeprefix("synthesis/")
        a = 0.1 if own.endswith(("/bias", "/mod_bias", "/noise_strength")) else 1.0
        if own.startswith("Dense"):
            a = 100.0 if own.endswith("weight") else 10.0
        values = a * np.sin(1 + 0.7 * np.arange(array.size) + sum(map(ord, own)) % 97)
        filled[name] = values.astype(np.float32).reshape(array.shape)
    return filled


ROWS = {
    "skip": (-0.018329, -0.003754, 0.137049, 0.015244, 0.060139, 0.112285, 0.360591),
    "resnet": (-0.070123, -0.065830, -0.117113, -0.068081, -0.087338, 0.019565, 0.120077),
    "orig": (-0.051639, -0.029345, -0.100887, -0.074096, -0.078613, 0.022383, 0.113160),
    "grown": (0.081409, 0.083125, 0.021672, -0.063378, 0.008672, 0.053447, 0.100251),
    "joined": (0.007765, 0.069617, 0.190535, 0.017958, 0.107566, 0.101419, 0.337256),
    "ADA": (0.020687, 0.078721, 0.211588, -0.010989, 0.108532, 0.109118, 0.374397),
}


@pytest.mark.parametrize("row", ROWS)
def test_filled_networks_give_the_pictures_that_tensorflow_gave(row: str, tmp_path: Path) -> None:
    is_ada, is_grown = row == "ADA", row == "grown"
    architecture: Any = {"ADA": "skip", "joined": "skip", "grown": "orig"}.get(row, row)
    special: dict[str, dict[str, Any]] = {
        "ADA": {"c_dim": 3, "embed_dim": 8, "conv_clamp": 1.0},
        "joined": {"c_dim": 3, "joins_label": True},
    }
    options = special.get(row, {})
    made = make_stylegan2(architecture=architecture, **options)
    tensors = _fill(tensorflow_variables(made, is_grown=is_grown))
    path = write_tensorflow(tmp_path / "n.pkl", made, version=5 if is_ada else 4, is_grown=is_grown, tensors=tensors)
    renderer = Renderer(read_model(path), "cpu")
    z = np.random.RandomState(0).randn(1, 8)
    c = np.array([[0, 1, 0]]) if made.spec.mapping.c_dim else None
    image = renderer.synthesize(renderer.map(z, c, psi=0.7, cutoff=2 if is_ada else None)).astype(np.float64)
    renderer.close()
    places = (image[0, 0, 0, 0], image[0, 0, 1, 2], image[0, 1, 3, 5], image[0, 2, -1, -1])
    found = (*places, image.mean(), image.std(), np.abs(image).max())
    np.testing.assert_allclose(found, ROWS[row], atol=2e-6)


@pytest.mark.parametrize("options", [{}, {"architecture": "resnet"}, {"c_dim": 3, "joins_label": True}])
def test_a_converted_network_gives_the_same_pictures(options: dict[str, Any], tmp_path: Path) -> None:
    model = read_model(write_tensorflow(tmp_path / "n.pkl", make_stylegan2(**options)))
    write_safetensors(model, tmp_path / "n.safetensors")
    back = read_model(tmp_path / "n.safetensors")
    assert_same(back, model)
    pictures = []
    for opened in (model, back):
        renderer = Renderer(opened, "cpu")
        pictures.append(renderer.synthesize(renderer.map(np.random.RandomState(3).randn(2, 8))))
        renderer.close()
    first, second = pictures
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("tensors", "part"),
    [
        ({"4x4/Dense/weight": np.zeros((8, 8), np.float32)}, "a progressive GAN"),
    ],
)
def test_networks_that_are_not_run_are_named(tensors: Tensors, part: str, tmp_path: Path) -> None:
    made = make_stylegan2()
    path = write_tensorflow(tmp_path / "n.pkl", made, tensors={**tensorflow_variables(made), **tensors})
    with pytest.raises(UnsupportedModelError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, part, "not run by this version")


def _without(name: str) -> Any:
    return lambda tensors: tensors.pop(name)


def _with(name: str, value: Any) -> Any:
    return lambda tensors: tensors.__setitem__(name, value)


WEIGHT = "synthesis/8x8/Conv1/weight"
FLAWS: dict[str, tuple[Any, str]] = {
    "nothing": (lambda tensors: tensors.clear(), "synthesis/4x4/Const/const is missing"),
    "missing weight": (_without(WEIGHT), f"{WEIGHT} is missing"),
    "missing style": (_without("synthesis/8x8/Conv1/mod_bias"), "mod_bias is missing"),
    "missing mapping": (_without("mapping/Dense0/weight"), "mapping/Dense"),
    "one more": (_with("synthesis/extra", np.zeros(3, np.float32)), "it also has 'synthesis/extra'"),
    "NaN": (_with(WEIGHT, np.full((3, 3, 6, 6), np.nan, np.float32)), WEIGHT),
    "large": (_with(WEIGHT, np.full((3, 3, 6, 6), 1e300)), WEIGHT),
    "whole numbers": (_with(WEIGHT, np.zeros((3, 3, 6, 6), np.int32)), WEIGHT),
    "other channels": (_with(WEIGHT, np.zeros((3, 3, 5, 6), np.float32)), "shape"),
    "few axes": (_with(WEIGHT, np.zeros((6, 6), np.float32)), "4 dimensions"),
    "a scalar": (_with(WEIGHT, np.float32(1)), "4 dimensions"),
    "not square": (_with("synthesis/4x4/Const/const", np.zeros((1, 6, 4, 8), np.float32)), "square pictures"),
    "text": (_with(WEIGHT, "text"), "found a text"),
    "none": (_with(WEIGHT, None), "found nothing"),
    "list": (_with(WEIGHT, [1.0]), "found a list"),
    "truth": (_with(WEIGHT, True), "found a truth value"),
    "no name": (_with("synthesis/\n", np.zeros(3, np.float32)), "letters, digits and slashes"),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_network_with_a_flaw_is_refused_with_one_sentence(flaw: str, tmp_path: Path) -> None:
    made = make_stylegan2()
    tensors = tensorflow_variables(made)
    change, part = FLAWS[flaw]
    change(tensors)
    average = _network_of(tensors, made)
    (tmp_path / "n.pkl").write_bytes(pickled((average, average, average)))
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "n.pkl")
    assert_one_sentence(caught.value, part)


def _network_of(tensors: dict[str, Any], made: StyleGAN2Model) -> Any:
    components = {
        part: network(part, "", {k.removeprefix(f"{part}/"): v for k, v in tensors.items() if k.startswith(part)}, {})
        for part in ("mapping", "synthesis")
    }
    own = {name: value for name, value in tensors.items() if "/" not in name}
    return network("Gs", "G_main", own, arguments_of(made), components)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"variables": None}, "variables"),
        ({"variables": [("a",)]}, "a name and a value"),
        ({"variables": [("a", np.zeros(2)), ("a", np.zeros(2))]}, "comes twice"),
        ({"variables": [(1, np.zeros(2))]}, "letters, digits and slashes"),
        ({"variables": [("a", 1.0)] * 2001}, "2000 variables"),
        ({"static_kwargs": [1]}, "arguments are missing"),
        ({"components": 3}, "components"),
        ({"components": {"mapping": 3}}, "found an integer"),
        ({"components": {"encoder": None}}, "a part 'encoder'"),
    ],
)
def test_a_state_of_another_form_is_refused(changes: dict[str, Any], part: str, tmp_path: Path) -> None:
    whole = _network_of(tensorflow_variables(make_stylegan2()), make_stylegan2())
    whole.__getstate__().update(changes)
    (tmp_path / "n.pkl").write_bytes(pickled((whole, whole, whole)))
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "n.pkl")
    assert_one_sentence(caught.value, part)


def test_a_network_that_is_its_own_component_is_refused(tmp_path: Path) -> None:
    whole = _network_of(tensorflow_variables(make_stylegan2()), make_stylegan2())
    whole.__getstate__()["components"] = {"synthesis": whole, "mapping": whole}
    (tmp_path / "n.pkl").write_bytes(pickled((whole, whole, whole)))
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "n.pkl")
    assert_one_sentence(caught.value)


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_other_numbers_of_networks_are_refused(count: int, tmp_path: Path) -> None:
    whole = _network_of(tensorflow_variables(make_stylegan2()), make_stylegan2())
    (tmp_path / "n.pkl").write_bytes(pickled((whole,) * count))
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "n.pkl")
    assert_one_sentence(caught.value)


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("place", ["static_kwargs", "variables", "build_module_src", "components", "hook"])
def test_a_payload_anywhere_refuses_the_file(
    place: str, protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = _network_of(tensorflow_variables(make_stylegan2()), make_stylegan2())
    state = whole.__getstate__()
    match place:
        case "static_kwargs":
            state["static_kwargs"]["synthesis_func"] = Payload()
        case "variables":
            state["variables"].append(("x", Payload()))
        case "components":
            state["components"]["mapping"].__getstate__()["name"] = Payload()
        case _:
            state[place] = Payload()
    (tmp_path / "n.pkl").write_bytes(pickled((whole, whole, whole), protocol))
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "n.pkl")
    assert_one_sentence(caught.value, "system", "nothing was run")
    assert [path.name for path in tmp_path.iterdir()] == ["n.pkl"]


def test_the_source_in_a_file_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    read_model(write_tensorflow(tmp_path / "n.pkl", make_stylegan2()))
    assert [path.name for path in tmp_path.iterdir()] == ["n.pkl"]


@pytest.mark.parametrize("name", ["b08_tf_build_module_src.pkl", "f07_tf_two_tuple.pkl"])
def test_networks_without_tensors_are_refused(name: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        read_model(HOSTILE / name)
    assert_one_sentence(caught.value)


def test_one_array_under_many_names_is_refused(tmp_path: Path) -> None:
    # A file of 300 kB whose mapping network would take 600 MB.
    made = make_stylegan2(z_dim=256, w_dim=256)
    tensors: dict[str, Any] = tensorflow_variables(made)
    shared = np.zeros((256, 256), np.float32)
    for index in range(60):
        tensors[f"mapping/Dense{index}/weight"], tensors[f"mapping/Dense{index}/bias"] = shared, shared[0]
    (tmp_path / "n.pkl").write_bytes(pickled((_network_of(tensors, made),) * 3))
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "n.pkl")
    assert_one_sentence(caught.value)

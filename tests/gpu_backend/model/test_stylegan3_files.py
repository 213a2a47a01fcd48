"""StyleGAN3 snapshots and converted files, made here from the facts of the format."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from gpu_backend import ModelFileError, UnsupportedModelError, read_model, write_safetensors
from gpu_backend.model.safetensors_file import KEY
from tests.gpu_backend.model.test_nvidia_files import assert_same_network
from tests.helpers.network_file import persistent, write_nvidia_pickle
from tests.helpers.sentences import assert_one_sentence
from tests.helpers.stylegan3 import R, make_stylegan3
from tests.helpers.stylegan3_file import two_sizes

NETWORKS: dict[str, dict[str, Any]] = {
    "T": {"conv_clamp": 256.0},
    "R, RGBA": {**R, "img_channels": 4},
    "T, 64 px, conditional, grey": {"resolution": 64, "c_dim": 3, "img_channels": 1},
    "few layers, uneven margin": {"num_layers": 4, "margin": 7, "mapping_layers": 1},
}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_gives_the_network_back(protocol: int, network: str, tmp_path: Path) -> None:
    made = make_stylegan3(seed=protocol, **NETWORKS[network])
    model = read_model(write_nvidia_pickle(tmp_path / "n.pkl", made, protocol=protocol, flavour="stylegan3"))
    assert_same_network(model, made)
    assert model.facts.warnings == ()


@pytest.mark.parametrize("container", ["pickle", "zip", "stream"])
def test_every_container_gives_the_network_back(container: Any, tmp_path: Path) -> None:
    made = make_stylegan3(**R)
    path = write_nvidia_pickle(tmp_path / "n.pt", made, container=container, channels_last=True, location="cuda:0")
    assert_same_network(read_model(path), made)


def test_the_facts_of_the_model(tmp_path: Path) -> None:
    made = make_stylegan3(resolution=64, **R)
    facts = read_model(write_nvidia_pickle(tmp_path / "n.pkl", made)).facts
    assert (facts.family, facts.architecture, facts.flavour) == ("StyleGAN3", "R", "StyleGAN3 repository")
    assert (facts.resolution, facts.img_channels, facts.num_ws, facts.w_dim) == (64, 3, 16, 8)
    assert facts.has_transform
    assert facts.noise_layers == facts.draft_resolutions == ()
    assert facts.row_resolutions == (16, 16, 16, 16, 16, 32, 32, 32, 32, 64, 64, 64, 64, 64, 64, 64)
    assert [layer.name for layer in facts.layers] == ["input", *(layer.name for layer in made.spec.layers)]
    assert [(layer.channels, layer.side) for layer in facts.layers][-2:] == [(1, 64), (3, 64)]
    counted = sum(a.size for n, a in made.weights.items() if n.endswith(("weight", "bias")))
    assert facts.parameters == counted


@pytest.mark.parametrize("network", NETWORKS)
def test_converting_gives_the_same_network_back(network: str, tmp_path: Path) -> None:
    made = make_stylegan3(**NETWORKS[network])
    write_safetensors(made, tmp_path / "n.safetensors")
    assert_same_network(read_model(tmp_path / "n.safetensors"), made)


def test_numbers_of_layers_may_skip_as_they_do_in_grown_networks(tmp_path: Path) -> None:
    made = make_stylegan3(num_layers=4)

    def moved(name: str) -> str:
        head, _, rest = name.partition("_")
        return f"L{int(head[1:]) + 7}_{rest}" if head in ("L2", "L3", "L4") else name

    spec = replace(made.spec, layers=tuple(replace(layer, name=moved(layer.name)) for layer in made.spec.layers))
    weights = {".".join(moved(part) for part in name.split(".")): array for name, array in made.weights.items()}
    for edits in ({}, {"synthesis.layer_names": None}):
        path = write_nvidia_pickle(tmp_path / "n.pkl", replace(made, spec=spec, weights=weights), edits=edits)
        assert read_model(path).spec == spec


@pytest.mark.parametrize(
    ("attribute", "value", "part"),
    [
        ("img_resolution", 32, "img_resolution to be 16"),
        ("num_ws", 3, "num_ws to be 16"),
        ("synthesis.num_layers", 3, "synthesis.num_layers to be 14"),
        ("synthesis.output_scale", 0.0, "a number above 0 at synthesis.output_scale"),
        ("synthesis.layer_names", ["L0_36_6"], "to list the layers"),
        ("synthesis.layer_names", ["L0_36_6"] * 15, "to list the layers"),
        ("synthesis.layer_names", 15, "a list of the layers"),
        ("synthesis.input.size", 36, "two sizes"),
        ("synthesis.input.size", two_sizes(40), "in_size to be [40, 40]"),
        ("synthesis.input.size", two_sizes(10**9), "an input grid"),
        ("synthesis.input.size", two_sizes(-1), "an input grid"),
        ("synthesis.input.bandwidth", 8.0, "an input grid"),
        ("synthesis.input.bandwidth", float("nan"), "a number above 0"),
        ("synthesis.input.sampling_rate", "fast", "a number above 0"),
        ("synthesis.L3_36_6.in_sampling_rate", 12, "sampling rates in L3_36_6"),
        ("synthesis.L3_36_6.in_sampling_rate", 16.5, "a whole number"),
        ("synthesis.L3_36_6.tmp_sampling_rate", 2**40, "sampling rates in L3_36_6"),
        ("synthesis.L3_36_6.up_factor", 4, "up_factor to be 2"),
        ("synthesis.L3_36_6.down_taps", 6, "down_taps to be 12"),
        ("synthesis.L3_36_6.padding", [9, 9, 9, 9], "padding to be [9, 8, 9, 8]"),
        ("synthesis.L3_36_6.out_size", two_sizes(52), "out_size to be [36, 36]"),
        ("synthesis.L3_36_6.conv_kernel", 1, "conv_kernel to be 3"),
        ("synthesis.L3_36_6.is_torgb", True, "is_torgb"),
        ("synthesis.L3_36_6.down_radial", True, "down_radial"),
        ("synthesis.L3_36_6.conv_clamp", -1, "a positive clamp"),
        ("synthesis.L3_36_6.use_fp16", 1, "yes or no"),
        ("synthesis.L3_36_6.affine.activation", "lrelu", "'linear'"),
        ("synthesis.L14_16_3.tmp_sampling_rate", 32, "no filters in the last layer"),
    ],
)
def test_an_attribute_that_contradicts_the_tensors_refuses_the_file(
    attribute: str, value: Any, part: str, tmp_path: Path
) -> None:
    path = write_nvidia_pickle(tmp_path / "n.pkl", make_stylegan3(), edits={attribute: value})
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, part)


@pytest.mark.parametrize(
    ("name", "shape", "part"),
    [
        ("synthesis.L3_36_6.weight", (6, 5, 3, 3), "L3_36_6.weight of shape"),
        ("synthesis.L3_36_6.weight", (6, 6, 2, 2), "another size"),
        ("synthesis.L3_36_6.up_filter", (257,), "at most 64 taps"),
        ("synthesis.L3_36_6.up_filter", (11,), "up_taps to be 11"),
        ("synthesis.L3_36_6.down_filter", (12, 11), "down_filter of shape (12, 12)"),
        ("synthesis.L3_36_6.magnitude_ema", (6,), "magnitude_ema of shape ()"),
        ("synthesis.input.freqs", (6, 3), "freqs of shape (6, 2)"),
        ("synthesis.input.transform", (2, 3), "transform of shape (3, 3)"),
        ("synthesis.input.affine.weight", (2, 8), "affine.weight of shape (4, 8)"),
    ],
)
def test_a_tensor_of_another_shape_refuses_the_file(
    name: str, shape: tuple[int, ...], part: str, tmp_path: Path
) -> None:
    made = make_stylegan3()
    weights = {**made.weights, name: np.ones(shape, np.float32)}
    with pytest.raises(ModelFileError) as caught:
        read_model(write_nvidia_pickle(tmp_path / "n.pkl", replace(made, weights=weights)))
    assert_one_sentence(caught.value, part)


def test_layers_far_larger_than_the_picture_refuse_the_file(tmp_path: Path) -> None:
    """A small file may not ask for memory that no picture of its needs."""
    made = make_stylegan3(num_layers=3)
    first = made.spec.layers[0]
    names = {first.name: f"L0_2000_{first.out_channels}"}
    layers = (
        replace(first, name=names[first.name], out_size=2000),
        replace(made.spec.layers[1], in_size=2000),
        *made.spec.layers[2:],
    )
    weights = {
        ".".join(names.get(part, part) for part in name.split(".")): array for name, array in made.weights.items()
    }
    spec = replace(made.spec, layers=layers)
    with pytest.raises(ModelFileError) as caught:
        read_model(write_nvidia_pickle(tmp_path / "n.pkl", replace(made, spec=spec, weights=weights)))
    assert_one_sentence(caught.value, "layers not much larger than the picture of 16 pixels", "one of 2000")


def test_a_missing_tensor_and_a_strange_part_refuse_the_file(tmp_path: Path) -> None:
    path = write_nvidia_pickle(
        tmp_path / "n.pkl", make_stylegan3(), edits={"synthesis.L3_36_6._parameters": {"weight": None}}
    )
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, "L3_36_6.weight is missing")
    made = make_stylegan3()
    strange = persistent("Wobble", {"_parameters": {}, "_buffers": {}, "_modules": {}})
    path = write_nvidia_pickle(path, made, edits={"synthesis.L3_36_6._modules": {"wobble": strange}})
    with pytest.raises(UnsupportedModelError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, "wobble")


def test_unknown_settings_are_warned_about(tmp_path: Path) -> None:
    path = write_nvidia_pickle(tmp_path / "n.pkl", make_stylegan3(), edits={"synthesis.L3_36_6.wobble": 0.5})
    (warning,) = read_model(path).facts.warnings
    assert "'wobble'" in warning


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"family": "stylegan9"}, "another family"),
        ({"layers": None}, "its layers are missing"),
        ({"layers": []}, "2 to 64 layers"),
        ({"input": {"size": 36.5, "sampling_rate": 16, "bandwidth": 2}}, "a whole number"),
        ({"num_ws": 3}, "contradict each other"),
        ({"output_scale": -1}, "above 0"),
    ],
)
def test_a_header_that_contradicts_the_tensors_refuses_the_file(
    change: dict[str, Any], part: str, tmp_path: Path
) -> None:
    path, made = tmp_path / "n.safetensors", make_stylegan3()
    write_safetensors(made, path)
    with safetensors.safe_open(path, "np") as file:
        said = json.loads(file.metadata()[KEY])
    said["network"] |= change
    safetensors.numpy.save_file(dict(made.weights), path, {KEY: json.dumps(said)})
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, part)

"""Snapshots in all the forms that NVIDIA's tools and their followers write, made here from the facts of the format."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_backend import Model, ModelFileError, UnsupportedModelError, read_model
from tests.helpers.network_file import foreign_discriminator, numpy_scalar, persistent, write_nvidia_pickle
from tests.helpers.networks import make_stylegan2
from tests.helpers.pickle_writer import Call, Global, PickleWriter
from tests.helpers.sentences import assert_one_sentence

NETWORKS: dict[str, dict[str, Any]] = {
    "skip": {"conv_clamp": 256.0, "num_fp16_res": 1},
    "resnet, grey, conditional, odd widths": {
        "architecture": "resnet",
        "img_channels": 1,
        "c_dim": 3,
        "channels": {4: 7, 8: 5, 16: 3},
    },
    "orig, RGBA, long filter, uneven mapping": {
        "architecture": "orig",
        "img_channels": 4,
        "fir": (1, 2, 3, 4, 4, 3, 2, 1),
        "mapping_widths": (9, 7, 5),
        "activation": "relu",
        "lr_multiplier": 0.1,
    },
    "no noise, narrow label": {"use_noise": False, "c_dim": 4, "embed_dim": 3, "z_dim": 5, "mapping_layers": 1},
    "smallest": {"resolution": 4},
}


def assert_same_network(model: Model, expected: Model) -> None:
    assert model.spec == expected.spec
    assert set(model.weights) == set(expected.weights)
    for name, array in expected.weights.items():
        assert model.weights[name].tobytes() == array.tobytes(), name
        assert model.weights[name].shape == array.shape


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_gives_the_network_back(protocol: int, network: str, tmp_path: Path) -> None:
    made = make_stylegan2(seed=protocol, **NETWORKS[network])
    assert_same_network(read_model(write_nvidia_pickle(tmp_path / "n.pkl", made, protocol=protocol)), made)


@pytest.mark.parametrize("container", ["pickle", "zip", "stream"])
@pytest.mark.parametrize("flavour", ["ada", "stylegan3"])
@pytest.mark.parametrize("channels_last", [False, True])
def test_every_container_layout_and_device_gives_the_network_back(
    container: Any, flavour: Any, channels_last: bool, tmp_path: Path
) -> None:
    made = make_stylegan2(architecture="resnet", c_dim=2)
    path = write_nvidia_pickle(
        tmp_path / "n.pt",
        made,
        container=container,
        flavour=flavour,
        channels_last=channels_last,
        location="cuda:0",
        other=make_stylegan2(seed=9, architecture="resnet", c_dim=2),
    )
    model = read_model(path)
    assert_same_network(model, made)
    assert model.facts.flavour == {"ada": "StyleGAN2-ADA", "stylegan3": "StyleGAN3 repository"}[flavour]


def test_long_wrapped_texts_of_protocol_2_give_the_network_back(tmp_path: Path) -> None:
    made = make_stylegan2(w_dim=48, z_dim=48, channel_max=24, channel_base=512)
    assert_same_network(read_model(write_nvidia_pickle(tmp_path / "n.pkl", made, protocol=2)), made)


@pytest.mark.parametrize("container", ["pickle", "zip", "stream"])
def test_a_generator_stored_by_itself_is_read(container: Any, tmp_path: Path) -> None:
    made = make_stylegan2()
    path = write_nvidia_pickle(tmp_path / "n.pkl", made, container=container, is_bare=True)
    assert_same_network(read_model(path), made)


def test_a_foreign_discriminator_is_left_alone_and_reported(tmp_path: Path) -> None:
    made = make_stylegan2()
    path = write_nvidia_pickle(tmp_path / "n.pkl", made, extra={"D": foreign_discriminator(), "mystery": [1, 2]})
    facts = read_model(path).facts
    assert "D: the discriminator (foreign class pg_modules.discriminator.ProjectedDiscriminator)" in facts.ignored
    assert "'mystery': not known here" in facts.ignored
    assert "torch.nn.functional leaky_relu" in facts.names_requested


@pytest.mark.parametrize(
    "stranger",
    [
        Global("os", "system"),
        Global("torch", "load"),
        Global("torch.nn", "Module"),
        Global("timm", "create_model"),
        Global("training.x\nos", "system"),
        Global("torch.hub", "load"),
        Global("builtins", "print"),
    ],
)
def test_any_other_name_refuses_the_file_even_when_nothing_calls_it(stranger: Global, tmp_path: Path) -> None:
    path = write_nvidia_pickle(tmp_path / "n.pkl", make_stylegan2(), extra={"D": [stranger]})
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, "it asks to import", "nothing was run")


@pytest.mark.parametrize(
    ("attribute", "value", "part"),
    [
        ("img_resolution", 32, "img_resolution to be 16"),
        ("mapping.num_layers", 3, "mapping.num_layers to be 2"),
        ("synthesis.b8.architecture", "orig", "'skip'"),
        ("synthesis.b8.conv0.up", 1, "synthesis.b8.conv0.up to be 2"),
        ("synthesis.b8.conv0.use_noise", False, "use_noise"),
        ("synthesis.b8.conv1.affine.bias_gain", 0.5, "bias_gain"),
        ("synthesis.b8.conv1.affine.activation", "relu", "'linear'"),
        ("mapping.fc1.weight_gain", 3.0, "weight_gain"),
        ("mapping.fc0.bias_gain", 0.0, "learning-rate multiplier"),
        ("synthesis.b8.conv0.conv_clamp", -1.0, "a positive clamp"),
        ("synthesis.b8.conv0.conv_clamp", [], "a positive clamp"),
        ("synthesis.b8.use_fp16", 2, "yes or no"),
        ("synthesis.b8.conv0.activation", "sine", "activations"),
        ("synthesis.b8.conv0.activation", Global("torch.nn.functional", "relu"), "activations"),
    ],
)
def test_an_attribute_that_contradicts_the_tensors_refuses_the_file(
    attribute: str, value: Any, part: str, tmp_path: Path
) -> None:
    path = write_nvidia_pickle(tmp_path / "n.pkl", make_stylegan2(), edits={attribute: value})
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, part)


def test_unknown_settings_are_warned_about(tmp_path: Path) -> None:
    path = write_nvidia_pickle(tmp_path / "n.pkl", make_stylegan2(), edits={"synthesis.b8.conv0.wobble": 0.5})
    (warning,) = read_model(path).facts.warnings
    assert "'wobble'" in warning


@pytest.mark.parametrize("flavour", ["ada", "stylegan3"])
def test_a_layer_that_says_that_it_has_no_bias_is_no_reason_to_warn(flavour: Any, tmp_path: Path) -> None:
    """The tools keep ``bias`` of a resnet's skip as an attribute, None."""
    path = write_nvidia_pickle(tmp_path / "n.pkl", make_stylegan2(architecture="resnet"), flavour=flavour)
    assert read_model(path).facts.warnings == ()
    path = write_nvidia_pickle(
        tmp_path / "n.pkl", make_stylegan2(architecture="resnet"), edits={"synthesis.b8.skip.bias": 0.5}
    )
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, "synthesis.b8.skip.bias to be none")


def test_numpy_settings_count_as_numbers(tmp_path: Path) -> None:
    path = write_nvidia_pickle(
        tmp_path / "n.pkl", make_stylegan2(), edits={"synthesis.b8.conv0.conv_clamp": numpy_scalar(256.0)}
    )
    clamps = {layer.name: layer.conv_clamp for layer in read_model(path).spec.layers}
    assert (clamps["b8.conv0"], clamps["b8.conv1"]) == (256.0, None)


@pytest.mark.parametrize(
    ("edits", "part"),
    [
        ({"synthesis.b8.extra": None, "synthesis._modules": {}}, "b4.const is missing"),
        ({"mapping._parameters": None}, "lacks its parameters"),
        ({"synthesis.b8._modules": {"conv0": 3}}, "found an integer"),
        ({"synthesis.b8._parameters": {"const": "text"}}, "found a text"),
        ({"synthesis.b8._modules": {"bad name": None}}, "letters, digits"),
    ],
)
def test_a_network_of_other_parts_is_refused(edits: dict[str, Any], part: str, tmp_path: Path) -> None:
    path = write_nvidia_pickle(tmp_path / "n.pkl", make_stylegan2(), edits=edits)
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, part)


def _module(class_name: str, modules: dict[str, Any] | None = None) -> Call:
    return persistent(class_name, {"_parameters": {}, "_buffers": {}, "_modules": modules or {}})


@pytest.mark.parametrize(
    ("generator", "family"),
    [
        (_module("SuperresGenerator"), "StyleGAN-XL"),
        (_module("Generator", {"mapping": _module("MappingNetwork", {"embed_proj": _module("X")})}), "StyleGAN-XL"),
        (_module("Generator", {"synthesis": _module("SynthesisNetwork", {"init": _module("Init")})}), "FastGAN"),
    ],
)
def test_other_families_are_recognised_and_said_not_to_run(generator: Call, family: str, tmp_path: Path) -> None:
    path = tmp_path / "n.pkl"
    path.write_bytes(PickleWriter(4).dumps({"G_ema": generator}))
    with pytest.raises(UnsupportedModelError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, family)


def test_a_foreign_part_inside_the_generator_is_refused(tmp_path: Path) -> None:
    path = write_nvidia_pickle(
        tmp_path / "n.pkl", make_stylegan2(), edits={"synthesis.b8.conv0._modules": {"affine": foreign_discriminator()}}
    )
    with pytest.raises(UnsupportedModelError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, "synthesis.b8.conv0.affine", "pg_modules")


def test_modules_that_hold_one_another_ten_times_over_are_refused(tmp_path: Path) -> None:
    # 10 ** 12 modules for a walker that does not count, out of a few kilobytes.
    content = b"\x80\x04(" + _module_of(b"") + b"r" + (1000).to_bytes(4, "little")
    for level in range(12):
        known = (1000 + level).to_bytes(4, "little")
        children = b"".join(b"X\x02\x00\x00\x00c%dj%s" % (index, known) for index in range(10))
        content += _module_of(children) + b"r" + (1001 + level).to_bytes(4, "little")
    path = tmp_path / "n.pkl"
    path.write_bytes(content + b"1}X\x05\x00\x00\x00G_emaj" + (1012).to_bytes(4, "little") + b"s.")
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, "modules")


def _module_of(items: bytes) -> bytes:
    """A call that makes a module with these children, given as opcodes for keys and values."""

    def text(word: str) -> bytes:
        return b"X" + len(word).to_bytes(4, "little") + word.encode()

    state = b"}(" + text("_parameters") + b"}" + text("_buffers") + b"}" + text("_modules") + b"}(" + items + b"uu"
    meta = b"}(" + text("type") + text("class") + text("version") + b"K\x06" + text("module_src") + text("")
    meta += text("class_name") + text("Generator") + text("state") + state + b"u"
    return b"ctorch_utils.persistence\n_reconstruct_persistent_obj\n" + meta + b"\x85R"


@pytest.mark.parametrize("field", ["mapping.fc0.weight", "synthesis.b16.torgb.bias", "synthesis.b8.conv1.noise_const"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_weight_that_is_not_finite_refuses_the_file_by_name(field: str, bad: float, tmp_path: Path) -> None:
    made = make_stylegan2()
    made.weights[field].flat[-1] = bad
    with pytest.raises(ModelFileError) as caught:
        read_model(write_nvidia_pickle(tmp_path / "n.pkl", made))
    assert_one_sentence(caught.value, field)

"""Checkpoints of tensors by name: rosinality's, GenForce's, and state dicts that stand alone."""

import argparse
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch

from gpu_backend import Model, ModelFileError, Renderer, UnsupportedModelError, read_model, write_safetensors
from tests.gpu_backend.model.test_reading import mapped
from tests.helpers.networks import StyleGAN2Model, as_stylegan2, make_stylegan2
from tests.helpers.sentences import assert_one_sentence
from tests.helpers.tool_names import Tensors, exact, genforce_tensors, official_tensors, rosinality_tensors
from tests.helpers.torch_file import as_tensors, save_torch

HOSTILE = Path(__file__).parents[2] / "data" / "hostile"
NETWORKS: dict[str, dict[str, Any]] = {
    "small": {},
    "uneven": {"resolution": 32, "channels": {4: 7, 8: 5, 16: 3, 32: 2}, "mapping_layers": 3},
    "smallest": {"resolution": 4, "mapping_layers": 1},
}


class Payload:
    """Asks to run something when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("touch PWNED",)


def assert_same(model: Model, made: Model) -> None:
    assert model.spec == made.spec
    assert {name: array.shape for name, array in model.weights.items()} == {
        name: array.shape for name, array in made.weights.items()
    }
    for name, array in made.weights.items():
        np.testing.assert_array_equal(model.weights[name], array, err_msg=name)
        assert model.weights[name].flags.c_contiguous
        assert model.weights[name].flags.writeable


def snapshot(made: StyleGAN2Model, other: StyleGAN2Model) -> dict[str, Any]:
    """What rosinality's trainer saves while it trains."""
    adam = {"step": np.float32(3).reshape(()), "exp_avg": np.zeros(2, np.float32)}
    groups = [{"lr": 0.002, "betas": (0.0, 0.99), "amsgrad": False, "params": [0, 1]}]
    return {
        "g": rosinality_tensors(other),
        "d": {"convs.0.0.weight": np.zeros((4, 3, 1, 1), np.float32)},
        "g_ema": rosinality_tensors(made),
        "g_optim": {"state": {0: adam, 1: dict(adam)}, "param_groups": groups},
        "d_optim": {"state": {}, "param_groups": groups},
        "args": argparse.Namespace(path="/data/faces", iter=800000, size=16, lr=0.002, wandb=False, ckpt=None),
        "ada_aug_p": 0.25,
    }


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("is_legacy", [False, True])
def test_a_rosinality_checkpoint_gives_the_network_back(network: str, is_legacy: bool, tmp_path: Path) -> None:
    made = make_stylegan2(**NETWORKS[network])
    value = {"g_ema": rosinality_tensors(made), "latent_avg": made.weights["mapping.w_avg"]}
    model = read_model(save_torch(value, tmp_path / "m.pt", is_legacy=is_legacy))
    assert_same(model, made)
    assert model.facts.flavour == "rosinality"
    assert model.facts.container == ("torch file (older form)" if is_legacy else "torch file (zip)")
    assert model.facts.warnings == ()


@pytest.mark.parametrize("protocol", [2, 4])
def test_tensors_that_python_alone_pickled_are_read(protocol: int, tmp_path: Path) -> None:
    made = make_stylegan2()
    value = {"g_ema": rosinality_tensors(made), "latent_avg": made.weights["mapping.w_avg"]}
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(as_tensors(value), protocol))
    model = read_model(tmp_path / "m.pkl")
    assert_same(model, made)
    assert model.facts.container == "pickle"


def test_the_gain_of_doubling_is_taken_out_of_a_filter(tmp_path: Path) -> None:
    made = make_stylegan2(fir=(1, 2, 4, 1, 1, 2))
    value = {"g_ema": rosinality_tensors(made), "latent_avg": made.weights["mapping.w_avg"]}
    taps = as_stylegan2(read_model(save_torch(value, tmp_path / "m.pt"))).spec.resample_filter
    assert taps == pytest.approx(made.spec.resample_filter, abs=1e-7)


@pytest.mark.parametrize("is_legacy", [False, True])
def test_a_training_snapshot_gives_the_average_and_leaves_the_rest_alone(is_legacy: bool, tmp_path: Path) -> None:
    made = make_stylegan2()
    model = read_model(save_torch(snapshot(made, make_stylegan2(seed=5)), tmp_path / "m.pt", is_legacy=is_legacy))
    assert "argparse Namespace" in model.facts.names_requested
    np.testing.assert_array_equal(model.weights["synthesis.b8.conv0.weight"], made.weights["synthesis.b8.conv0.weight"])
    assert [item.partition(":")[0] for item in model.facts.ignored] == [
        "g",
        "d",
        "g_optim",
        "d_optim",
        "args",
        "ada_aug_p",
    ]
    assert not any("/data/faces" in str(value) for value in vars(type(model.facts)) | {"ignored": model.facts.ignored})


@pytest.mark.parametrize("name", ["base_ok_rosinality.pt", "base_ok_rosinality_legacy.pt"])
def test_the_golden_checkpoint_gives_the_golden_pictures(name: str) -> None:
    arrays = np.load(HOSTILE / "base_ok_rosinality.npz")
    renderer = Renderer(read_model(HOSTILE / name), "cpu")
    k = int(arrays["mix_k"])
    mixed = np.concatenate([arrays["w"][:1, :k], arrays["w"][1:2, k:]], axis=1)
    found = {
        "w": renderer.map(arrays["z"]),
        "w_psi07": renderer.map(arrays["z"], psi=0.7),
        "w_psi05_cut4": renderer.map(arrays["z"], psi=0.5, cutoff=4),
        "img_psi1": renderer.synthesize(arrays["w"][:2]),
        "img_psi07": renderer.synthesize(arrays["w_psi07"][:2]),
        "img_noise_none": renderer.synthesize(arrays["w"][:1], "none"),
        "img_mix": renderer.synthesize(mixed),
    }
    renderer.close()
    for key, array in found.items():
        np.testing.assert_allclose(array, arrays[key], atol=5e-5, rtol=0, err_msg=key)


def test_a_mean_of_w_that_is_missing_is_worked_out(tmp_path: Path) -> None:
    made = make_stylegan2(z_dim=16, w_dim=16)
    model = read_model(save_torch({"g_ema": rosinality_tensors(made)}, tmp_path / "m.pt"))
    (warning,) = model.facts.warnings
    assert "mean of w" in warning
    z = np.random.RandomState(0).randn(4096, 16)
    np.testing.assert_allclose(
        model.weights["mapping.w_avg"], mapped(made, z.astype(np.float32), None).mean(axis=0), atol=1e-4
    )


def test_noise_pictures_that_are_missing_are_made_the_same_each_time(tmp_path: Path) -> None:
    made = make_stylegan2()
    value = {"g_ema": rosinality_tensors(made, has_noises=False), "latent_avg": made.weights["mapping.w_avg"]}
    path = save_torch(value, tmp_path / "m.pt")
    model, again = read_model(path), read_model(path)
    (warning,) = model.facts.warnings
    assert "noise maps" in warning
    assert model.spec == made.spec
    pictures = [array for name, array in model.weights.items() if name.endswith("noise_const")]
    assert len(pictures) == len(made.spec.noise_layers)
    assert 0.8 < np.concatenate([picture.ravel() for picture in pictures]).std() < 1.2
    for name, array in model.weights.items():
        np.testing.assert_array_equal(array, again.weights[name])


def test_the_decoder_of_an_encoder_is_found(tmp_path: Path) -> None:
    made = make_stylegan2()
    decoder = {f"decoder.{name}": array for name, array in rosinality_tensors(made).items()}
    encoder = {"encoder.body.0.weight": np.zeros(3, np.float32), "encoder.count": np.zeros((), np.int64)}
    mean = np.repeat(made.weights["mapping.w_avg"][None], made.spec.num_ws, axis=0)
    value = {"state_dict": {**encoder, **decoder}, "latent_avg": mean, "opts": {"size": 16, "device": "cuda:0"}}
    model = read_model(save_torch(value, tmp_path / "m.pt"))
    assert_same(model, made)
    assert model.facts.ignored == ("opts: settings of the training", "tensors that are not under decoder: not needed")


def test_genforce_prefers_the_smoothed_generator(tmp_path: Path) -> None:
    made, other = exact(make_stylegan2()), exact(make_stylegan2(seed=4))
    value = {"generator": genforce_tensors(other), "discriminator": {}, "generator_smooth": genforce_tensors(made)}
    model = read_model(save_torch(value, tmp_path / "m.pth"))
    assert_same(model, made)
    assert model.facts.flavour == "GenForce"
    assert model.facts.ignored[0] == "generator: the generator as it was in training"


def test_genforce_training_files_keep_their_models_apart(tmp_path: Path) -> None:
    made = exact(make_stylegan2())
    value = {"models": {"generator_smooth": genforce_tensors(made)}, "running_metadata": {"iter": 7}}
    assert_same(read_model(save_torch(value, tmp_path / "m.pth")), made)


OFFICIAL: dict[str, dict[str, Any]] = {
    "skip": {},
    "resnet, conditional, grey": {"architecture": "resnet", "c_dim": 3, "img_channels": 1},
    "orig, long filter": {"architecture": "orig", "fir": (1, 2, 3, 4, 4, 3, 2, 1), "mapping_layers": 1},
    "no noise": {"use_noise": False},
    "another rate": {"lr_multiplier": 1.0},
}


@pytest.mark.parametrize("network", OFFICIAL)
@pytest.mark.parametrize("place", ["alone", "G_ema", "prefix", "safetensors", "safetensors, prefix"])
def test_a_state_dict_with_official_names_gives_the_network_back(network: str, place: str, tmp_path: Path) -> None:
    made = make_stylegan2(w_dim=24, z_dim=24, **OFFICIAL[network])
    tensors = official_tensors(made)
    if len(made.spec.resample_filter) >= 8:
        taps = np.array(made.spec.resample_filter, np.float32)
        tensors = {name: taps if name.endswith("resample_filter") else array for name, array in tensors.items()}
    path = tmp_path / "m"
    if "safetensors" in place:
        prefix = "G_ema." if "prefix" in place else ""
        contiguous = {f"{prefix}{name}": np.ascontiguousarray(a).reshape(a.shape) for name, a in tensors.items()}
        safetensors.numpy.save_file(contiguous, path)
    else:
        prefixed = {f"module.{name}": array for name, array in tensors.items()}
        save_torch({"alone": tensors, "G_ema": {"G_ema": tensors}, "prefix": prefixed}[place], path)
    model = read_model(path)
    assert_same(model, made)
    (warning,) = model.facts.warnings
    assert "without settings" in warning
    assert f"multiplier of {made.spec.mapping.lr_multiplier:g}" in warning


def test_rosinality_names_in_safetensors_give_the_network_back(tmp_path: Path) -> None:
    made = make_stylegan2()
    tensors = {name: np.ascontiguousarray(array) for name, array in rosinality_tensors(made).items()}
    tensors["latent_avg"] = made.weights["mapping.w_avg"]
    safetensors.numpy.save_file(tensors, tmp_path / "m.safetensors")
    assert_same(read_model(tmp_path / "m.safetensors"), made)


def test_half_precision_tensors_are_widened(tmp_path: Path) -> None:
    made = make_stylegan2()
    value = {"g_ema": {name: array.astype(np.float16) for name, array in rosinality_tensors(made).items()}}
    model = read_model(save_torch(value, tmp_path / "m.pt"))
    np.testing.assert_allclose(
        model.weights["synthesis.b8.conv0.weight"], made.weights["synthesis.b8.conv0.weight"], rtol=1e-3
    )


@pytest.mark.parametrize("write", [rosinality_tensors, genforce_tensors, official_tensors])
def test_a_converted_checkpoint_gives_the_same_pictures(write: Any, tmp_path: Path) -> None:
    model = read_model(save_torch(write(exact(make_stylegan2())), tmp_path / "m.pt"))
    write_safetensors(model, tmp_path / "m.safetensors")
    back = read_model(tmp_path / "m.safetensors")
    assert_same(back, model)
    assert (back.facts.flavour, back.facts.warnings) == (model.facts.flavour, model.facts.warnings)
    z = np.random.RandomState(3).randn(2, 8)
    pictures = []
    for opened in (model, back):
        renderer = Renderer(opened, "cpu")
        pictures.append(renderer.synthesize(renderer.map(z, psi=0.7)))
        renderer.close()
    first, second = pictures
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("value", "network"),
    [
        ({"g_ema": {"synthesis.input.freqs": 1}}, "StyleGAN3"),
        ({"g": {"init.init.0.weight": 1, "feat_8.1.weight": 1}}, "FastGAN"),
        ({"g_ema": {"input.input": 1, "iwt.ll": 1, "to_rgbs.0.iwt.ll": 1}}, "SWAGAN"),
        ({"params_ema": {"style_conv1.modulated_conv.weight": 1}}, "BasicSR"),
        ({"state_dict": {"GE.initial_block": 1}}, "lucidrains"),
        ({"G_ema": {"backbone.synthesis.b4.const": 1}}, "EG3D"),
    ],
)
def test_other_networks_are_named_and_said_not_to_run(value: dict[str, Any], network: str, tmp_path: Path) -> None:
    def fill(table: dict[str, Any]) -> dict[str, Any]:
        return {key: fill(part) if isinstance(part, dict) else np.zeros(2) for key, part in table.items()}

    with pytest.raises(UnsupportedModelError) as caught:
        read_model(save_torch(fill(value), tmp_path / "m.pt"))
    assert_one_sentence(caught.value, network, "not run by this version")


def test_other_networks_in_safetensors_are_named_and_said_not_to_run(tmp_path: Path) -> None:
    safetensors.numpy.save_file({"synthesis.input.freqs": np.zeros(2)}, tmp_path / "m")
    with pytest.raises(UnsupportedModelError) as caught:
        read_model(tmp_path / "m")
    assert_one_sentence(caught.value, "StyleGAN3")


def test_a_generator_without_its_average_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError) as caught:
        read_model(save_torch({"g": rosinality_tensors(make_stylegan2())}, tmp_path / "m.pt"))
    assert_one_sentence(caught.value, "there is only g, as it was in training")


def _changed(change: Any) -> Tensors:
    tensors = rosinality_tensors(make_stylegan2())
    change(tensors)
    return tensors


def _set(name: str, array: Any) -> Any:
    return lambda tensors: tensors.__setitem__(name, array)


FLAWS: dict[str, tuple[Any, str]] = {
    "missing weight": (lambda t: t.pop("convs.1.conv.weight"), "convs.1.conv.weight is missing"),
    "missing bias": (lambda t: t.pop("style.2.bias"), "style.2.bias is missing"),
    "missing picture": (lambda t: t.pop("to_rgb1.conv.weight"), "to_rgb1.conv.weight is missing"),
    "missing block": (
        lambda t: [t.pop(name) for name in list(t) if name.startswith(("convs.0", "convs.1."))],
        "convs.0.conv.weight is missing",
    ),
    "one more": (_set("extra", np.zeros(3, np.float32)), "it also has 'extra'"),
    "NaN": (_set("convs.0.conv.weight", np.full((1, 6, 6, 3, 3), np.nan, np.float32)), "convs.0.conv.weight"),
    "infinity": (_set("latent_avg", np.full(8, np.inf, np.float32)), "latent_avg"),
    "whole numbers": (_set("conv1.conv.weight", np.zeros((1, 6, 6, 3, 3), np.int64)), "conv1.conv.weight"),
    "other channels": (_set("convs.1.conv.weight", np.zeros((1, 5, 5, 3, 3), np.float32)), "shape"),
    "no first axis": (_set("convs.1.conv.weight", np.zeros((6, 6, 3, 3), np.float32)), "size 1 along axis 0"),
    "few axes": (_set("noises.noise_1", np.zeros(8, np.float32)), "size 1 along axis 0"),
    "nothing": (_set("input.input", np.zeros((1, 0, 4, 4), np.float32)), "shape"),
    "not square": (_set("input.input", np.zeros((1, 6, 4, 8), np.float32)), "square pictures"),
    "other filter": (_set("to_rgbs.0.upsample.kernel", np.ones((4, 4), np.float32)), "one resample filter"),
    "other gain": (
        lambda t: [t.__setitem__(name, array * 0.5) for name, array in t.items() if name.endswith("kernel")],
        "sums to 1",
    ),
    "huge filter": (_set("convs.0.conv.blur.kernel", np.ones((257, 257), np.float32)), "at most 1024"),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_checkpoint_with_a_flaw_is_refused_with_one_sentence(flaw: str, tmp_path: Path) -> None:
    change, part = FLAWS[flaw]
    with pytest.raises(ModelFileError) as caught:
        read_model(save_torch({"g_ema": _changed(change)}, tmp_path / "m.pt"))
    assert_one_sentence(caught.value, part)


def test_weights_so_large_that_the_mean_of_w_overflows_are_refused(tmp_path: Path) -> None:
    tensors = rosinality_tensors(make_stylegan2())
    tensors["style.1.weight"] = np.full((8, 8), 3e38, np.float32)
    tensors["style.2.weight"] = np.full((8, 8), 3e38, np.float32)
    with pytest.raises(ModelFileError) as caught:
        read_model(save_torch({"g_ema": tensors}, tmp_path / "m.pt"))
    assert_one_sentence(caught.value, "finite numbers")


@pytest.mark.parametrize("is_legacy", [False, True])
@pytest.mark.parametrize(
    "hide",
    [
        lambda payload: {"args": argparse.Namespace(hook=payload)},
        lambda payload: {"args": argparse.Namespace(hooks=[payload], __setstate__=payload)},
        lambda payload: {"latent_avg": payload},
        lambda payload: {"g_optim": {"state": {0: {"step": payload}}}},
        lambda payload: {payload: 1},
    ],
)
def test_a_payload_beside_the_generator_refuses_the_file(
    hide: Any, is_legacy: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    value = {"g_ema": rosinality_tensors(make_stylegan2()), **hide(Payload())}
    path = save_torch(value, tmp_path / "m.pt", is_legacy=is_legacy)
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, "system", "nothing was run")
    assert not (tmp_path / "PWNED").exists()


def test_options_with_attributes_of_any_name_are_not_looked_into(tmp_path: Path) -> None:
    made = make_stylegan2()
    options = argparse.Namespace(**{"__class__x": 1, "__dict__y": [2], "__getstate__z": {}})
    value = {"g_ema": rosinality_tensors(made), "latent_avg": made.weights["mapping.w_avg"], "args": options}
    assert_same(read_model(save_torch(value, tmp_path / "m.pt")), made)


@pytest.mark.parametrize("is_legacy", [False, True])
def test_a_small_storage_that_stands_for_a_large_tensor_is_refused(is_legacy: bool, tmp_path: Path) -> None:
    tensors = rosinality_tensors(make_stylegan2())
    value: dict[str, Any] = {"g_ema": {name: torch.from_numpy(array.copy()) for name, array in tensors.items()}}
    value["g_ema"]["style.1.weight"] = torch.zeros(1).expand(1 << 20, 1 << 20)
    torch.save(value, tmp_path / "m.pt", _use_new_zipfile_serialization=not is_legacy)
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "m.pt")
    assert_one_sentence(caught.value, "inside their data")


def test_tensors_that_share_their_data_are_refused(tmp_path: Path) -> None:
    tensors = {name: torch.from_numpy(a.copy()) for name, a in rosinality_tensors(make_stylegan2()).items()}
    shared = torch.zeros(2000, 2000)
    tensors.update({f"style.{index + 1}.weight": shared for index in range(20)})
    tensors.update({f"style.{index + 1}.bias": shared[0] for index in range(20)})
    torch.save({"g_ema": tensors}, tmp_path / "m.pt")
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "m.pt")
    assert_one_sentence(caught.value)


def test_a_table_of_very_many_tensors_is_refused(tmp_path: Path) -> None:
    one = torch.zeros(1)
    torch.save({"g_ema": {f"t{index}": one for index in range(6000)}}, tmp_path / "m.pt")
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "m.pt")
    assert_one_sentence(caught.value, "5000 tensors")

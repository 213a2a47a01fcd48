"""StyleGAN1 files with a flaw, or made to hurt: each is refused with one sentence."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from gpu_backend import ModelFileError, UnsupportedModelError, read_model, write_safetensors
from tests.helpers.sentences import assert_one_sentence
from tests.helpers.stylegan1 import for_rosinality, make_stylegan1
from tests.helpers.stylegan1_file import write_stylegan1
from tests.helpers.stylegan1_names import TOOLS, rosinality1_tensors, tensorflow1_variables
from tests.helpers.tensorflow_file import network, pickled
from tests.helpers.torch_file import save_torch


class Payload:
    """Asks to run something when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("touch PWNED",)


@pytest.mark.parametrize(
    ("argument", "value", "part"),
    [
        ("resolution", 32, "resolution to be 16"),
        ("num_channels", 1, "num_channels to be 3"),
        ("label_size", 2, "label_size to be 0"),
        ("dlatent_size", 512, "dlatent_size to be 8"),
        ("mapping_layers", True, "mapping_layers to be 2"),
        ("mapping_lrmul", 0.0, "learning-rate multiplier"),
        ("nonlinearity", "sine", "lrelu or relu"),
        ("nonlinearity", ["lrelu"], "lrelu or relu"),
        ("mapping_nonlinearity", "tanh", "lrelu or relu"),
        ("normalize_latents", False, "normalises z"),
        ("use_wscale", False, "use_wscale False"),
        ("use_pixel_norm", True, "use_pixel_norm True"),
        ("use_instance_norm", False, "use_instance_norm False"),
        ("use_styles", False, "use_styles False"),
        ("const_input_layer", False, "const_input_layer False"),
        ("blur_filter", (1, 3, 3, 1), "blur_filter [1, 3, 3, 1]"),
        ("fused_scale", "sometimes", "fused_scale"),
    ],
)
def test_an_argument_that_is_not_run_or_contradicts_the_tensors_refuses_the_file(
    argument: str, value: Any, part: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelFileError) as caught:
        read_model(write_stylegan1(tmp_path / "n.pkl", make_stylegan1(), changes={argument: value}))
    assert_one_sentence(caught.value, part)


@pytest.mark.parametrize("lod", ["lod", "synthesis/lod"])
def test_a_network_stored_before_it_was_grown_is_not_run(lod: str, tmp_path: Path) -> None:
    made = make_stylegan1()
    tensors = {**tensorflow1_variables(made), lod: np.array(1.5, np.float32)}
    with pytest.raises(UnsupportedModelError) as caught:
        read_model(write_stylegan1(tmp_path / "n.pkl", made, tensors=tensors))
    assert_one_sentence(caught.value, "before it was")
    assert "Level of detail: 1.5 halvings left" in caught.value.details.splitlines()


def _without(name: str) -> Any:
    return lambda tensors: tensors.pop(name)


def _with(name: str, value: Any) -> Any:
    return lambda tensors: tensors.__setitem__(name, value)


WEIGHT = "synthesis/8x8/Conv1/weight"
FLAWS: dict[str, tuple[Any, str]] = {
    "missing weight": (_without("synthesis/8x8/Conv0_up/weight"), "synthesis/8x8/Conv0_up/weight is missing"),
    "missing style": (_without("synthesis/8x8/Conv1/StyleMod/bias"), "StyleMod/bias is missing"),
    "missing mapping": (_without("mapping/Dense0/weight"), "'mapping/Dense0/bias'"),
    "missing picture": (_without("synthesis/ToRGB_lod0/weight"), "synthesis/ToRGB_lod0/weight is missing"),
    "half a picture": (_without("synthesis/ToRGB_lod1/bias"), "synthesis/ToRGB_lod1/bias is missing"),
    "one more": (_with("synthesis/extra", np.zeros(3, np.float32)), "it also has 'synthesis/extra'"),
    "one more picture": (_with("synthesis/ToRGB_lod3/bias", np.zeros(3, np.float32)), "'synthesis/ToRGB_lod3/bias'"),
    "NaN": (_with(WEIGHT, np.full((3, 3, 6, 6), np.nan, np.float32)), WEIGHT),
    "whole numbers": (_with(WEIGHT, np.zeros((3, 3, 6, 6), np.int32)), WEIGHT),
    "other channels": (_with(WEIGHT, np.zeros((3, 3, 5, 6), np.float32)), "shape"),
    "other kernel": (_with(WEIGHT, np.zeros((5, 5, 6, 6), np.float32)), "shape"),
    "nothing": (_with(WEIGHT, np.zeros((3, 3, 6, 0), np.float32)), "something in it"),
    "few axes": (_with(WEIGHT, np.zeros((6, 6), np.float32)), "4 dimensions"),
    "noise of one strength": (_with("synthesis/8x8/Conv1/Noise/weight", np.zeros((), np.float32)), "shape"),
    "not square": (_with("synthesis/4x4/Const/const", np.zeros((1, 6, 4, 8), np.float32)), "square pictures"),
    "odd style": (_with("synthesis/8x8/Conv1/StyleMod/bias", np.zeros(13, np.float32)), "shape"),
    "text": (_with(WEIGHT, "text"), "found a text"),
    "a level of text": (_with("synthesis/lod", "0"), "found a text"),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_network_with_a_flaw_is_refused_with_one_sentence(flaw: str, tmp_path: Path) -> None:
    made = make_stylegan1()
    tensors: dict[str, Any] = dict(tensorflow1_variables(made))
    change, part = FLAWS[flaw]
    change(tensors)
    with pytest.raises(ModelFileError) as caught:
        read_model(write_stylegan1(tmp_path / "n.pkl", made, tensors=tensors))
    assert_one_sentence(caught.value, part)


def test_a_network_of_nothing_but_its_function_s_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "n.pkl").write_bytes(pickled(network("Gs", "G_style", {}, {})))
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "n.pkl")
    assert_one_sentence(caught.value, "synthesis/4x4/Const/const is missing")


@pytest.mark.parametrize(
    ("tool", "change", "part"),
    [
        ("lernapparat", _without("g_synthesis.blocks.4x4.epi1.style_mod.lin.bias"), "style_mod.lin.bias is missing"),
        ("lernapparat", _with("g_synthesis.blocks.8x8.conv0_up.intermediate.kernel", np.ones((1, 1, 3, 3))), "blur"),
        ("lernapparat", _with("g_synthesis.blocks.8x8.conv0_up.intermediate.kernel", np.ones((1, 1))), "3 x 3"),
        ("GenForce", _with("synthesis.layer2.blur.kernel", np.ones((1, 1, 4, 4))), "3 x 3"),
        ("GenForce", _with("synthesis.lod", np.ones(())), "before it was"),
        ("GenForce", _with("synthesis.lod", np.ones(2)), "before it was"),
        ("rosinality", _without("generator.progression.1.conv2.conv.bias"), "conv2.conv.bias is missing"),
        ("rosinality", _with("generator.progression.0.noise1.weight_orig", np.ones((1, 0, 1, 1))), "noise_strength"),
        ("rosinality", _with("generator.progression.0.noise1.weight_orig", np.ones(6)), "size 1 along axis 0"),
        ("rosinality", _with("generator.extra", np.ones(6)), "'generator.extra'"),
    ],
)
def test_a_checkpoint_with_a_flaw_is_refused_with_one_sentence(
    tool: str, change: Any, part: str, tmp_path: Path
) -> None:
    tensors = TOOLS[tool](for_rosinality())
    change(tensors)
    with pytest.raises(ModelFileError) as caught:
        read_model(save_torch({"g_ema": tensors}, tmp_path / "m.pt"))
    assert_one_sentence(caught.value, part)


def test_a_payload_beside_the_generator_refuses_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    value = {"g_running": rosinality1_tensors(for_rosinality()), "args": Payload()}
    with pytest.raises(ModelFileError) as caught:
        read_model(save_torch(value, tmp_path / "m.model"))
    assert_one_sentence(caught.value, "system", "nothing was run")
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [("epsilon", 0.0), ("epsilon", 2.0), ("epsilon", "small"), ("layers", []), ("layers", [1]), ("blurs_bias", 1)],
)
def test_a_header_with_other_settings_than_a_network_has_is_refused(field: str, value: Any, tmp_path: Path) -> None:
    made = make_stylegan1()
    write_safetensors(made, tmp_path / "m")
    with safetensors.safe_open(tmp_path / "m", framework="np") as file:
        said = json.loads(file.metadata()["latent-loom-model"])
    said["network"][field] = value
    safetensors.numpy.save_file(dict(made.weights), tmp_path / "m", {"latent-loom-model": json.dumps(said)})
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "m")
    assert_one_sentence(caught.value)

"""StyleGAN1 files of every tool, and a picture that the original TensorFlow code gave."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch

from gpu_backend import Model, Renderer, read_model, write_safetensors
from gpu_backend.model.stylegan1 import parameter_count
from gpu_backend.reference.mapping import run_mapping
from gpu_backend.reference.stylegan1 import run_stylegan1
from tests.helpers.stylegan1 import StyleGAN1Model, for_rosinality, make_spec1, make_stylegan1
from tests.helpers.stylegan1_file import arguments1_of, write_stylegan1
from tests.helpers.stylegan1_names import (
    TOOLS,
    genforce1_tensors,
    lernapparat_tensors,
    rosinality1_tensors,
    tensorflow1_variables,
)
from tests.helpers.tool_names import Tensors
from tests.helpers.torch_file import save_torch

NETWORKS: dict[str, dict[str, Any]] = {
    "small": {},
    "uneven": {"resolution": 32, "channels": {4: 7, 8: 5, 16: 3, 32: 2}, "mapping_widths": (9, 7, 8), "z_dim": 5},
    "both orientations": {"resolution": 256, "channel_max": 3, "channel_base": 512},
    "conditional": {"c_dim": 3},
    "grey": {"img_channels": 1, "pictures": (8,)},
    "smallest": {"resolution": 4},
}


def assert_same(model: Model, made: Model) -> None:
    """Conversions of biases may change the last digit."""
    assert model.spec == made.spec
    assert {name: array.shape for name, array in model.weights.items()} == {
        name: array.shape for name, array in made.weights.items()
    }
    for name, array in made.weights.items():
        np.testing.assert_allclose(model.weights[name], array, rtol=3e-7, atol=1.2e-7, err_msg=name)
        assert model.weights[name].flags.c_contiguous
        assert model.weights[name].flags.writeable


def test_the_public_network_has_the_published_number_of_parameters() -> None:
    spec = make_spec1(resolution=1024, z_dim=512, w_dim=512, mapping_layers=8, channel_base=16384, channel_max=512)
    assert parameter_count(spec) == 26_219_627
    assert spec.num_ws == 18


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_tensorflow_files_of_every_protocol_give_the_network_back(protocol: int, name: str, tmp_path: Path) -> None:
    made = make_stylegan1(seed=protocol, **NETWORKS[name])
    model = read_model(write_stylegan1(tmp_path / "n.pkl", made, protocol=protocol))
    assert_same(model, made)
    facts = model.facts
    assert (facts.family, facts.flavour, facts.container) == ("StyleGAN1", "TensorFlow", "TensorFlow pickle")
    assert facts.warnings == ()
    assert facts.draft_resolutions == made.spec.draft_resolutions
    assert facts.ignored == (
        "G: the generator as it was in training",
        "D: the discriminator",
        "program source inside the file: never run",
    )


def test_the_defaults_of_the_tools_stand_for_arguments_that_are_missing(tmp_path: Path) -> None:
    made = make_stylegan1()
    changes = dict.fromkeys(arguments1_of(made))
    assert_same(read_model(write_stylegan1(tmp_path / "n.pkl", made, changes=changes)), made)


@pytest.mark.parametrize(("fused", "fused_from"), [("auto", 128), (True, 4), (False, 1 << 20)])
def test_the_way_of_doubling_pixels_decides_which_way_weights_are_turned(
    fused: Any, fused_from: int, tmp_path: Path
) -> None:
    made = make_stylegan1(resolution=128, channel_max=3, channel_base=512)
    tensors = tensorflow1_variables(made, fused_from=fused_from)
    path = write_stylegan1(tmp_path / "n.pkl", made, tensors=tensors, changes={"fused_scale": fused})
    assert_same(read_model(path), made)


@pytest.mark.parametrize("options", [{"activation": "relu"}, {"use_noise": False}])
def test_settings_of_a_tensorflow_network_are_kept(options: dict[str, Any], tmp_path: Path) -> None:
    made = make_stylegan1(**options)
    assert_same(read_model(write_stylegan1(tmp_path / "n.pkl", made)), made)


def test_unknown_arguments_are_warned_about(tmp_path: Path) -> None:
    (warning,) = read_model(write_stylegan1(tmp_path / "n.pkl", make_stylegan1(), changes={"wobble": 1})).facts.warnings
    assert "'wobble'" in warning


@pytest.mark.parametrize("name", ["small", "uneven", "both orientations", "smallest"])
@pytest.mark.parametrize("place", ["zip", "older form", "safetensors", "prefix"])
@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_s_names_give_the_network_back(tool: str, place: str, name: str, tmp_path: Path) -> None:
    options = dict(NETWORKS[name])
    if tool == "lernapparat":
        made = make_stylegan1(pictures=(), epsilon=1e-5, **options)
    else:
        made = for_rosinality(**options) if tool == "rosinality" else make_stylegan1(**options)
    tensors, path = TOOLS[tool](made), tmp_path / "m"
    if place == "safetensors":
        flat = {key: np.ascontiguousarray(array).reshape(array.shape) for key, array in tensors.items()}
        safetensors.numpy.save_file(flat, path)
    else:
        value = {f"module.{key}": array for key, array in tensors.items()} if place == "prefix" else tensors
        key = {"lernapparat": None, "GenForce": "generator_smooth", "rosinality": "g_running"}[tool]
        save_torch(value if key is None else {key: value}, path, is_legacy=place == "older form")
    model = read_model(path)
    assert model.facts.flavour == tool
    missing = {"lernapparat": ("noise_const", "w_avg"), "rosinality": ("noise_const", "w_avg"), "GenForce": ()}[tool]
    assert len(model.facts.warnings) == len(missing)
    given = {key: array for key, array in made.weights.items() if not key.endswith(missing or "?")}
    assert model.spec == made.spec
    assert {key: array.shape for key, array in model.weights.items()} == {
        key: array.shape for key, array in made.weights.items()
    }
    for key, array in given.items():
        np.testing.assert_allclose(model.weights[key], array, rtol=5e-7, atol=1.2e-7, err_msg=key)


def test_a_mean_of_w_that_is_missing_is_worked_out(tmp_path: Path) -> None:
    made = make_stylegan1(z_dim=16, w_dim=16, epsilon=1e-5, pictures=())
    model = read_model(save_torch(lernapparat_tensors(made), tmp_path / "m.pt"))
    z = torch.from_numpy(np.random.RandomState(0).randn(4096, 16)).float()
    weights = {name: torch.from_numpy(array) for name, array in model.weights.items()}
    expected = run_mapping(model.spec, weights, z).mean(0).numpy()
    np.testing.assert_allclose(model.weights["mapping.w_avg"], expected, atol=1e-4)


def test_genforce_labels_are_joined_with_z(tmp_path: Path) -> None:
    made = make_stylegan1(c_dim=3)
    model = read_model(save_torch({"generator_smooth": genforce1_tensors(made)}, tmp_path / "m.pth"))
    assert_same(model, made)


def test_blocks_that_were_never_trained_are_left_out(tmp_path: Path) -> None:
    whole = for_rosinality(resolution=64, channels={64: 3})
    for name, array in whole.weights.items():
        if name.startswith(("synthesis.b32", "synthesis.b64")) and name.endswith(
            ("conv0.bias", "conv1.bias", "strength")
        ):
            array[...] = 0.0
    model = read_model(save_torch({"g_running": rosinality1_tensors(whole)}, tmp_path / "m.model"))
    assert model.spec.resolution == 16
    assert model.spec.draft_resolutions == (4, 8)
    assert model.facts.ignored == ("blocks above 16 x 16: never trained",)
    np.testing.assert_array_equal(
        model.weights["synthesis.b16.conv1.weight"], whole.weights["synthesis.b16.conv1.weight"]
    )


def test_weights_of_doubled_pixels_at_any_resolution_are_read(tmp_path: Path) -> None:
    made = for_rosinality(resolution=128, channel_max=3, channel_base=512)
    plain = read_model(save_torch(rosinality1_tensors(made, fused_from=1 << 20), tmp_path / "m.pt"))
    fused = read_model(save_torch(rosinality1_tensors(made, fused_from=4), tmp_path / "f.pt"))
    for name, array in plain.weights.items():
        np.testing.assert_allclose(array, fused.weights[name], rtol=1e-6, err_msg=name)


def filled(tensors: Tensors) -> Tensors:
    """A * sin(1 + 0.7 k + h), h the sum of the characters of the name inside its component mod 97."""
    found: Tensors = {}
    for name, array in tensors.items():
        own = name.removeprefix("mapping/").removeprefix("synthesis/")
        a = 0.1 if own.endswith(("/bias", "Noise/weight")) else 1.0
        if own.startswith("Dense"):
            a = 100.0 if own.endswith("weight") else 10.0
        if own != "lod":
            values = a * np.sin(1 + 0.7 * np.arange(array.size) + sum(map(ord, own)) % 97)
            array = values.astype(np.float32).reshape(array.shape)
        found[name] = array
    return found


ROW = (6.047591, 4.379546, -5.516696, 2.312502, 0.509981, 3.422106)
"""Four pixels, mean and deviation of the filled network's picture, in double precision."""


def numbers(image: np.ndarray) -> tuple[float, ...]:
    wide = image.astype(np.float64)
    places = (wide[0, 0, 0, 0], wide[0, 0, 1, 2], wide[0, 1, 3, 5], wide[0, 2, -1, -1])
    return (*places, wide.mean(), wide.std())


@pytest.fixture(scope="module")
def filled_model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """128 x 128 pixels, so that both ways to double pixels have a part in it."""
    made = make_stylegan1(resolution=128, channel_base=512, mapping_layers=8)
    tensors = filled(tensorflow1_variables(made))
    return read_model(write_stylegan1(tmp_path_factory.mktemp("filled") / "n.pkl", made, tensors=tensors))


def test_the_filled_network_gives_the_picture_that_tensorflow_gave(filled_model: Model) -> None:
    renderer = Renderer(filled_model, "cpu")
    image = renderer.synthesize(renderer.map(np.random.RandomState(0).randn(1, 8), psi=0.7, cutoff=8))
    renderer.close()
    np.testing.assert_allclose(numbers(image), ROW, atol=1e-4)
    assert np.abs(image).max() == pytest.approx(18.06786, abs=1e-3)


def test_the_reference_gives_the_picture_that_tensorflow_gave_to_all_its_digits(filled_model: StyleGAN1Model) -> None:
    weights = {name: torch.from_numpy(array).double() for name, array in filled_model.weights.items()}
    z = torch.from_numpy(np.random.RandomState(0).randn(1, 8))
    ws = run_mapping(filled_model.spec, weights, z)[:, None].repeat(1, 12, 1)
    ws[:, :8] = weights["mapping.w_avg"] + 0.7 * (ws[:, :8] - weights["mapping.w_avg"])
    image = run_stylegan1(filled_model.spec, weights, ws)
    np.testing.assert_allclose(numbers(image.numpy()), ROW, atol=3e-6)


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu", "empty_cache")
def test_a_gpu_gives_the_picture_of_the_filled_network_though_fp16_does_not(filled_model: Model) -> None:
    with Renderer(filled_model, "cpu") as on_cpu, Renderer(filled_model, "cuda") as on_gpu:
        assert on_gpu.device.precision in ("tf32", "fp32")
        rows = on_cpu.map(np.random.RandomState(0).randn(8, 8), psi=0.7, cutoff=8)
        found, expected = (one.synthesize(rows).clip(-1.0, 1.0) for one in (on_gpu, on_cpu))
    assert np.abs(found - expected).max() <= 6 / 127.5


@pytest.mark.parametrize("options", [{}, {"c_dim": 3, "activation": "relu"}, {"use_noise": False, "resolution": 4}])
@pytest.mark.parametrize("is_rosinality", [False, True])
def test_our_own_file_keeps_every_setting_and_every_bit(
    options: dict[str, Any], is_rosinality: bool, tmp_path: Path
) -> None:
    made = for_rosinality(**options) if is_rosinality else make_stylegan1(**options)
    write_safetensors(made, tmp_path / "m.safetensors")
    back = read_model(tmp_path / "m.safetensors")
    assert back.spec == made.spec
    for name, array in made.weights.items():
        assert (back.weights[name].shape, back.weights[name].tobytes()) == (array.shape, array.tobytes()), name


@pytest.mark.parametrize("tool", TOOLS)
def test_a_converted_network_gives_the_same_pictures(tool: str, tmp_path: Path) -> None:
    made = for_rosinality() if tool == "rosinality" else make_stylegan1()
    model = read_model(save_torch({"g_ema": TOOLS[tool](made)}, tmp_path / "m.pt"))
    write_safetensors(model, tmp_path / "m.safetensors")
    back = read_model(tmp_path / "m.safetensors")
    assert (back.facts.flavour, back.facts.warnings) == (model.facts.flavour, model.facts.warnings)
    pictures = []
    for opened in (model, back):
        renderer = Renderer(opened, "cpu")
        pictures.append(renderer.synthesize(renderer.map(np.random.RandomState(3).randn(2, 8), psi=0.7)))
        renderer.close()
    first, second = pictures
    np.testing.assert_array_equal(first, second)

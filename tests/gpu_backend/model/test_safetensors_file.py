"""Our own model files: bit for bit there and back, and a header that is not believed unchecked."""

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from gpu_backend import LoomError, Model, ModelFileError, UnsupportedModelError, read_model, write_safetensors
from tests.helpers.network_file import write_nvidia_pickle
from tests.helpers.networks import make_stylegan2
from tests.helpers.sentences import assert_one_sentence

GOLDEN = Path(__file__).parents[2] / "data" / "golden"


def assert_same_bits(model: Model, expected: Model) -> None:
    assert model.spec == expected.spec
    assert set(model.weights) == set(expected.weights)
    for name, array in expected.weights.items():
        assert (model.weights[name].shape, model.weights[name].tobytes()) == (array.shape, array.tobytes()), name


@pytest.mark.parametrize("name", ["S1_sg2ada_skip_64", "S2_sg3repo_sg2_cond_128"])
def test_a_converted_golden_file_reads_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    model = read_model(GOLDEN / f"{name}.pkl")
    write_safetensors(model, tmp_path / "out.safetensors")
    back = read_model(tmp_path / "out.safetensors")
    assert_same_bits(back, model)
    assert back.facts.container == "safetensors"
    assert back.facts.flavour == model.facts.flavour
    assert (back.facts.names_requested, back.facts.ignored) == ((), ())
    changing = {"path", "name", "nbytes", "model_id", "container", "names_requested", "ignored"}
    for field in set(model.facts.__dataclass_fields__) - changing:
        assert getattr(back.facts, field) == getattr(model.facts, field), field


@pytest.mark.parametrize(
    "options",
    [
        {"architecture": "resnet", "img_channels": 1, "channels": {8: 5}, "conv_clamp": 0.1},
        {"architecture": "orig", "fir": (1, 2, 1), "lr_multiplier": 1 / 3, "activation": "swish"},
        {"c_dim": 3, "embed_dim": 5, "use_noise": False, "num_fp16_res": 2, "mapping_widths": (3, 9)},
        {"resolution": 4},
    ],
)
def test_every_hyper_parameter_is_kept(options: dict[str, Any], tmp_path: Path) -> None:
    made = make_stylegan2(**options)
    write_safetensors(made, tmp_path / "m.safetensors")
    assert_same_bits(read_model(tmp_path / "m.safetensors"), made)


def test_warnings_survive_a_conversion(tmp_path: Path) -> None:
    model = read_model(write_nvidia_pickle(tmp_path / "n.pkl", make_stylegan2(), edits={"wobble": 1}))
    write_safetensors(model, tmp_path / "n.safetensors")
    assert read_model(tmp_path / "n.safetensors").facts.warnings == model.facts.warnings != ()


def test_the_safetensors_library_reads_our_files(tmp_path: Path) -> None:
    made = make_stylegan2(c_dim=2)
    write_safetensors(made, tmp_path / "m.safetensors")
    arrays = safetensors.numpy.load_file(tmp_path / "m.safetensors")
    assert {name: array.tobytes() for name, array in arrays.items()} == {
        name: array.tobytes() for name, array in made.weights.items()
    }


def test_our_reader_reads_what_the_safetensors_library_rewrites(tmp_path: Path) -> None:
    made = make_stylegan2()
    write_safetensors(made, tmp_path / "m.safetensors")
    header, _ = _split((tmp_path / "m.safetensors").read_bytes())
    safetensors.numpy.save_file(dict(made.weights), tmp_path / "again.safetensors", metadata=header["__metadata__"])
    assert_same_bits(read_model(tmp_path / "again.safetensors"), made)


def test_half_precision_halves_the_file_and_rounds_the_weights(tmp_path: Path) -> None:
    made = make_stylegan2(channel_base=512, channel_max=32)
    write_safetensors(made, tmp_path / "full.safetensors")
    write_safetensors(made, tmp_path / "half.safetensors", dtype="float16")
    assert (tmp_path / "half.safetensors").stat().st_size < 0.6 * (tmp_path / "full.safetensors").stat().st_size
    back = read_model(tmp_path / "half.safetensors")
    assert back.spec == made.spec
    for name, array in made.weights.items():
        np.testing.assert_array_equal(back.weights[name], array.astype(np.float16).astype(np.float32))
        assert back.weights[name].dtype == np.float32


def test_weights_that_half_precision_cannot_hold_are_not_written(tmp_path: Path) -> None:
    made = make_stylegan2()
    made.weights["mapping.fc0.bias"][0] = 70000
    with pytest.raises(ModelFileError) as caught:
        write_safetensors(made, tmp_path / "half.safetensors", dtype="float16")
    assert_one_sentence(caught.value, "mapping.fc0.bias", "float32")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "target.safetensors").mkdir()
    with pytest.raises(LoomError) as caught:
        write_safetensors(make_stylegan2(), tmp_path / "target.safetensors")
    assert_one_sentence(caught.value, "was not written")
    assert [path.name for path in tmp_path.iterdir()] == ["target.safetensors"]
    with pytest.raises(LoomError) as caught:
        write_safetensors(make_stylegan2(), tmp_path / "missing" / "target.safetensors")
    assert_one_sentence(caught.value, "was not written")


def _split(content: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def _joined(header: Any, data: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def _network(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    def apply(header: dict[str, Any]) -> None:
        network = json.loads(header["__metadata__"]["network"])
        change(network)
        header["__metadata__"]["network"] = json.dumps(network)

    return apply


def _move(header: dict[str, Any]) -> None:
    header["mapping.w_avg"]["data_offsets"] = [4, 36]


def _setter(*keys: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(table: Any) -> None:
        for key in keys[:-1]:
            table = table[key]
        table[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (_move, "overlap or leave gaps"),
        (_setter("mapping.w_avg", "shape", value=[9]), "36 bytes"),
        (_setter("mapping.w_avg", "shape", value=[-8]), "whole numbers"),
        (_setter("mapping.w_avg", "shape", value=[2**60]), "whole numbers"),
        (_setter("mapping.w_avg", "shape", value=[True, 8]), "whole numbers"),
        (_setter("mapping.w_avg", "dtype", value="F4"), "another type"),
        (_setter("mapping.w_avg", "dtype", value="I32"), "i4"),
        (_setter("mapping.w_avg", value=[]), "something else"),
        (_setter("__metadata__", "network", value="{"), "JSON"),
        (_setter("__metadata__", "network", value='{"a": NaN}'), "JSON"),
        (_setter("__metadata__", "network", value='{"a": 1, "a": 2}'), "JSON"),
        (_setter("__metadata__", "network", value="[" * 100_000), "JSON"),
        (_setter("__metadata__", "network", value=3), "texts"),
        (_setter("__metadata__", "source", value='{"flavour": "\\u001b[2J"}'), "plain notes"),
        (_setter("__metadata__", "version", value="2"), "version 1"),
        (_network(_setter("family", value="stylegan3")), "another family"),
        (_network(_setter("resolution", value=32)), "contradict"),
        (_network(_setter("num_ws", value=7)), "contradict"),
        (_network(_setter("layers", 0, "in_channels", value=7)), "contradict"),
        (_network(_setter("layers", 0, "w_index", value=3)), "contradict"),
        (_network(_setter("layers", 0, "gain", value=2.0)), "contradict"),
        (_network(_setter("layers", 0, "activation", value="sine")), "not known"),
        (_network(_setter("layers", 0, "conv_clamp", value=-1)), "above 0"),
        (_network(_setter("layers", 0, "name", value="b4.conv9")), "b4.conv1"),
        (_network(_setter("layers", value=None)), "missing"),
        (_network(_setter("mapping", "lr_multiplier", value=1e999)), "JSON"),
        (_network(_setter("mapping", "lr_multiplier", value="0.01")), "number"),
        (_network(_setter("resample_filter", value=[])), "missing"),
        (_network(_setter("surprise", value=1)), "contradict"),
    ],
)
def test_a_header_that_is_wrong_is_refused_with_one_sentence(
    change: Callable[[dict[str, Any]], None], part: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.safetensors"
    write_safetensors(make_stylegan2(), path)
    header, data = _split(path.read_bytes())
    change(header)
    path.write_bytes(_joined(header, data))
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, part)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (_joined(b"{}", b""), "without a network's settings"),
        (_joined(b"{" + b"[" * 500_000, b""), "JSON"),
        (struct.pack("<Q", 2**40) + b"{", "no known model file"),
        (struct.pack("<Q", 2 << 20) + b"{" + b" " * (2 << 20), "1 MiB"),
        (_joined(b'{"a": ' + b"9" * 10_000 + b"}", b""), "JSON"),
        (_joined(b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}', b"12345"), "5 bytes"),
    ],
)
def test_a_container_that_is_wrong_is_refused_with_one_sentence(content: bytes, part: str, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, part)


def test_tensors_without_settings_are_recognised_and_said_not_to_run(tmp_path: Path) -> None:
    safetensors.numpy.save_file(dict(make_stylegan2().weights), tmp_path / "flat.safetensors")
    with pytest.raises(UnsupportedModelError) as caught:
        read_model(tmp_path / "flat.safetensors")
    assert_one_sentence(caught.value, "latentloom convert")


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    write_safetensors(make_stylegan2(), path)
    content = path.read_bytes()
    for percent in range(100):
        path.write_bytes(content[: len(content) * percent // 100])
        with pytest.raises(ModelFileError) as caught:
            read_model(path)
        assert_one_sentence(caught.value)


def test_the_hash_of_a_file_is_its_model_id_even_when_the_path_differs(tmp_path: Path) -> None:
    made = make_stylegan2()
    write_safetensors(made, tmp_path / "a.safetensors")
    write_safetensors(replace(made), tmp_path / "b.safetensors")
    first, second = read_model(tmp_path / "a.safetensors"), read_model(tmp_path / "b.safetensors")
    assert first.facts.model_id == second.facts.model_id != made.facts.model_id

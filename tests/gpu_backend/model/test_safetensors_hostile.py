"""Our own model files, damaged or made to hurt: each is refused with one sentence, and little memory is taken."""

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from gpu_backend import ModelFileError, read_model, write_safetensors
from tests.helpers.networks import make_stylegan2
from tests.helpers.sentences import assert_one_sentence

KEY = "latent-loom-model"


def _split(content: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def _joined(header: Any, data: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def _ours(*keys: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def apply(header: dict[str, Any]) -> None:
        said = json.loads(header["__metadata__"][KEY])
        _setter(*keys, value=value)(said)
        header["__metadata__"][KEY] = json.dumps(said)

    return apply


def _network(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    def apply(header: dict[str, Any]) -> None:
        said = json.loads(header["__metadata__"][KEY])
        change(said["network"])
        header["__metadata__"][KEY] = json.dumps(said)

    return apply


def _move(header: dict[str, Any]) -> None:
    first, last = header["mapping.w_avg"]["data_offsets"]
    header["mapping.w_avg"]["data_offsets"] = [first + 4, last + 4]


def _setter(*keys: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(table: Any) -> None:
        for key in keys[:-1]:
            table = table[key]
        table[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (_move, "invalid offset"),
        (_setter("mapping.w_avg", "shape", value=[9]), "invalid shape"),
        (_setter("mapping.w_avg", "shape", value=[-8]), "JSON"),
        (_setter("mapping.w_avg", "shape", value=[2**60]), "overflow"),
        (_setter("mapping.w_avg", "shape", value=[2**70]), "JSON"),
        (_setter("mapping.w_avg", "shape", value=[True, 8]), "JSON"),
        (_setter("mapping.w_avg", "shape", value=[1] * 70 + [8]), "mapping.w_avg of shape (8,)"),
        (_setter("mapping.w_avg", "dtype", value="F4 \u001b[2J. Yes"), "JSON"),
        (_setter("mapping.w_avg", "dtype", value="I32"), "I32"),
        (_setter("mapping.w_avg", value=[]), "JSON"),
        (_setter("__metadata__", KEY, value="{"), "JSON"),
        (_setter("__metadata__", KEY, value="[]"), "JSON object"),
        (_setter("__metadata__", KEY, value='{"a": NaN}'), "JSON"),
        (_setter("__metadata__", KEY, value='{"a": 1, "a": 2}'), "JSON"),
        (_setter("__metadata__", KEY, value="[" * 100_000), "JSON"),
        (_setter("__metadata__", KEY, value=3), "JSON"),
        (_ours("source", "flavour", value="\u001b[2J"), "plain notes"),
        (_ours("source", "warnings", value=["ok", 3]), "plain notes"),
        (_ours("source", value=3), "missing"),
        (_ours("network", value=[]), "missing"),
        (_ours("version", value=2), "version 1"),
        (_network(_setter("family", value="stylegan9")), "another family"),
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
        (_joined(b"{}", b""), "holds no tensors"),
        (_joined(b"{" + b"[" * 500_000, b""), "JSON"),
        (struct.pack("<Q", 2**40) + b"{", "no known model file"),
        (struct.pack("<Q", 20_000) + b'{"a": {"dtype": "F32"', "it ends inside its header; download"),
        (struct.pack("<Q", 2 << 20) + b"{" + b" " * (2 << 20), "1 MiB"),
        (_joined(b'{"a": ' + b"9" * 10_000 + b"}", b""), "JSON"),
        (_joined(b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}', b"12345"), "not fully covered"),
    ],
)
def test_a_container_that_is_wrong_is_refused_with_one_sentence(content: bytes, part: str, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, part)


def test_tensors_of_another_network_are_refused_with_some_of_their_names(tmp_path: Path) -> None:
    safetensors.numpy.save_file({"layer.weight": np.zeros(3)}, tmp_path / "flat.safetensors")
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "flat.safetensors")
    assert_one_sentence(caught.value, "other tensors ('layer.weight')")


def test_a_great_many_filters_are_refused_unread(tmp_path: Path) -> None:
    tensors = dict(make_stylegan2().weights)
    tensors.update({f"synthesis.b{index}.resample_filter": np.ones((1, 1), np.float32) for index in range(1, 200)})
    safetensors.numpy.save_file(tensors, tmp_path / "flat.safetensors")
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "flat.safetensors")
    assert_one_sentence(caught.value, "at most 64 resample filters")


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    write_safetensors(make_stylegan2(), path)
    content = path.read_bytes()
    for percent in range(100):
        path.write_bytes(content[: len(content) * percent // 100])
        with pytest.raises(ModelFileError) as caught:
            read_model(path)
        assert_one_sentence(caught.value)


def test_bfloat16_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    write_safetensors(make_stylegan2(), path, dtype="float16")
    header, data = _split(path.read_bytes())
    header["mapping.w_avg"]["dtype"] = "BF16"
    path.write_bytes(_joined(header, data))
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, "floating-point numbers in mapping.w_avg", "BF16")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(value: float, tmp_path: Path) -> None:
    made = make_stylegan2()
    made.weights["mapping.fc0.bias"][1] = value
    write_safetensors(made, tmp_path / "m.safetensors")
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "m.safetensors")
    assert_one_sentence(caught.value, "finite numbers in mapping.fc0.bias")


@pytest.fixture
def large(tmp_path: Path) -> Path:
    write_safetensors(make_stylegan2(resolution=64, channel_base=16384, channel_max=256), tmp_path / "l.safetensors")
    return tmp_path / "l.safetensors"


@pytest.mark.parametrize("share", [0.0, 0.6])
def test_a_file_that_shrinks_while_it_is_read_is_refused(share: float, large: Path) -> None:
    size = large.stat().st_size

    def shrink(done: int, total: int) -> None:
        if done >= share * total:
            os.truncate(large, size // 4)

    with pytest.raises(ModelFileError) as caught:
        read_model(large, progress=shrink)
    assert_one_sentence(caught.value)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 1.0])
def test_a_model_never_gets_the_hash_of_another_file(share: float, large: Path, tmp_path: Path) -> None:
    other = make_stylegan2(resolution=64, channel_base=16384, channel_max=256)
    other.weights["mapping.fc0.bias"][:] = 3
    write_safetensors(other, tmp_path / "other.safetensors")

    def swap(done: int, total: int) -> None:
        if done >= share * total and (tmp_path / "other.safetensors").exists():
            (tmp_path / "other.safetensors").replace(large)

    with pytest.raises(ModelFileError) as caught:
        read_model(large, progress=swap)
    assert_one_sentence(caught.value, "it was changed")


_LIMITED = """
import resource, sys
from pathlib import Path
from gpu_backend import LoomError, read_model
read_model(sys.argv[1])
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + (200 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for path in sys.argv[2:]:
    try:
        read_model(path)
        print("loaded", path)
    except LoomError as error:
        print("memory" if "memory" in error.sentence else "refused")
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system has no /proc to measure memory with")
def test_small_hostile_files_fit_in_200_mb(tmp_path: Path) -> None:
    tensor = b'"%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},'
    huge = b'{"a":{"dtype":"F32","shape":[0,1099511627776],"data_offsets":[0,0]}}'
    texts = [
        b"{" + b"[" * (1 << 20),
        b'{"a":' * 200_000,
        b"{" + b"".join(tensor % index for index in range(19_000)) + tensor[:-1] % 19_000 + b"}",
        b'{"a":{"dtype":"F32","data_offsets":[0,0],"shape":[' + b"0," * 500_000 + b"0]}}",
        b'{"__metadata__":{"a":"' + b"\\u00e9" * 170_000 + b'"}}',
        huge,
    ]
    for index, text in enumerate(texts):
        (tmp_path / f"{index}.safetensors").write_bytes(_joined(text, b""))
    with (tmp_path / "sparse.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", 1 << 35) + b"{")
        file.truncate(1 << 36)
    write_safetensors(make_stylegan2(), tmp_path / "good")
    paths = [tmp_path / "good", *sorted(tmp_path.glob("*.safetensors"))]
    result = subprocess.run(
        [sys.executable, "-c", _LIMITED, *map(str, paths)],
        env={"PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout) == (0, "refused\n" * (len(texts) + 1)), result.stderr

"""Damaged files of every kind end in a whole model or in one sentence, and in nothing else."""

import argparse
import functools
import io
import pickletools
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings, strategies as st

from gpu_backend import LoomError, read_model, write_safetensors
from tests.helpers.network_file import foreign_discriminator, write_nvidia_pickle
from tests.helpers.networks import make_stylegan2
from tests.helpers.sentences import assert_one_sentence
from tests.helpers.strategies import examples
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan1_file import write_stylegan1
from tests.helpers.stylegan1_names import lernapparat_tensors, rosinality1_tensors
from tests.helpers.stylegan3 import R, make_stylegan3
from tests.helpers.stylegan_xl import make_stylegan_xl
from tests.helpers.tensorflow_file import write_tensorflow
from tests.helpers.tool_names import official_tensors, rosinality_tensors
from tests.helpers.torch_file import save_torch

FUZZ = settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=examples(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def read_anyway(path: Path, content: bytes) -> None:
    """Read damaged content: whatever comes must be a whole model or a sentence."""
    path.unlink(missing_ok=True)  # a file that is written over is put on the disk at once, which takes milliseconds
    path.write_bytes(content)
    try:
        model = read_model(path)
    except LoomError as error:
        assert_one_sentence(error)
        return
    assert all(np.isfinite(array).all() for array in model.weights.values())


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Small good files of each container."""
    folder = tmp_path_factory.mktemp("seeds")
    made = make_stylegan2(resolution=8, c_dim=2, architecture="resnet", z_dim=3, w_dim=3, channel_max=2)
    extra = {"D": foreign_discriminator(), "names": {"a", "b"}}
    files = {
        "protocol 2": write_nvidia_pickle(folder / "2", made, protocol=2, extra=extra),
        "protocol 4": write_nvidia_pickle(folder / "4", made, protocol=4, extra=extra),
        "zip": write_nvidia_pickle(folder / "zip", made, container="zip"),
        "stream": write_nvidia_pickle(folder / "stream", made, container="stream"),
    }
    write_safetensors(made, folder / "safetensors")
    plain = make_stylegan2(resolution=8, z_dim=3, w_dim=3, channel_max=2)
    checkpoint = {"g_ema": rosinality_tensors(plain), "args": argparse.Namespace(size=8)}
    flat = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in official_tensors(plain).items()}
    safetensors.numpy.save_file(flat, folder / "flat")
    files |= {
        "ours": folder / "safetensors",
        "rosinality zip": save_torch(checkpoint, folder / "rosinality zip"),
        "rosinality stream": save_torch(checkpoint, folder / "rosinality stream", is_legacy=True),
        "tensors alone": folder / "flat",
        "TensorFlow 2": write_tensorflow(folder / "tf 2", made, protocol=2, version=5),
        "TensorFlow 4": write_tensorflow(folder / "tf 4", made, protocol=4, version=5),
    }
    first = make_stylegan1(resolution=8, z_dim=3, w_dim=3, channel_max=2)
    first.weights["synthesis.b4.input.bias"][...] = 0.0
    write_safetensors(first, folder / "ours 1")
    files |= {
        "StyleGAN1": write_stylegan1(folder / "1", make_stylegan1(resolution=8, c_dim=2, z_dim=3, w_dim=3)),
        "StyleGAN1, lernapparat": save_torch(lernapparat_tensors(first), folder / "1 lernapparat"),
        "StyleGAN1, rosinality": save_torch(
            {"g_running": rosinality1_tensors(first)}, folder / "1 rosinality", is_legacy=True
        ),
        "StyleGAN1, ours": folder / "ours 1",
    }
    third = make_stylegan3(num_layers=3, z_dim=3, w_dim=3, channel_max=2, **R)
    write_safetensors(third, folder / "ours 3")
    files |= {
        "StyleGAN3, protocol 3": write_nvidia_pickle(folder / "3", third, protocol=3),
        "StyleGAN3, zip": write_nvidia_pickle(folder / "3 zip", third, container="zip"),
        "StyleGAN3, ours": folder / "ours 3",
    }
    grown = make_stylegan_xl(resolution=32, z_dim=3, w_dim=3, channel_max=2, stem_layers=3, head_layers=3)
    write_safetensors(grown, folder / "ours xl")
    files |= {
        "StyleGAN-XL, protocol 3": write_nvidia_pickle(folder / "xl", grown, protocol=3),
        "StyleGAN-XL, ours": folder / "ours xl",
    }
    return {name: path.read_bytes() for name, path in files.items()}


KINDS = ("protocol 2", "protocol 4", "zip", "stream", "ours")
THIRD = ("StyleGAN3, protocol 3", "StyleGAN3, zip", "StyleGAN3, ours")
XL = ("StyleGAN-XL, protocol 3", "StyleGAN-XL, ours")
FIRST = ("StyleGAN1", "StyleGAN1, lernapparat", "StyleGAN1, rosinality", "StyleGAN1, ours")
TOOLS = ("rosinality zip", "rosinality stream", "tensors alone", "TensorFlow 2", "TensorFlow 4")


@FUZZ
@given(data=st.data())
@pytest.mark.parametrize("name", [*KINDS, *TOOLS, *FIRST, *THIRD, *XL])
def test_changed_bytes_end_in_a_model_or_a_sentence(
    name: str, data: st.DataObject, seeds: dict[str, bytes], tmp_path: Path
) -> None:
    content = bytearray(seeds[name])
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(content) - 1))
        match data.draw(st.sampled_from(("set", "flip", "cut", "insert"))):
            case "set":
                content[place] = data.draw(st.sampled_from((0, 1, 0x7F, 0x80, 0xFF, *b".()tR}Nsub")))
            case "flip":
                content[place] ^= 1 << data.draw(st.integers(0, 7))
            case "cut":
                del content[place : place + data.draw(st.integers(1, 64))]
            case "insert":
                content[place:place] = data.draw(st.binary(min_size=1, max_size=16))
        if not content:
            break
    read_anyway(tmp_path / "fuzzed", bytes(content))


PLAIN_OPCODES = [opcode.code.encode("latin-1") for opcode in pickletools.opcodes if opcode.arg is None]
OPCODES = [*PLAIN_OPCODES, b"K\x01", b"h\x00", b"q\x00", b"X\x01\x00\x00\x00a"]


@functools.cache
def operations_of(content: bytes) -> tuple[bytes, ...]:
    """Cut a pickle into its operations."""
    places = [place for _, _, place in pickletools.genops(io.BytesIO(content)) if place is not None]
    return tuple(content[start:stop] for start, stop in zip(places, [*places[1:], len(content)], strict=True))


@FUZZ
@given(data=st.data())
@pytest.mark.parametrize(
    "name", ["protocol 2", "protocol 4", "TensorFlow 2", "TensorFlow 4", "StyleGAN1", THIRD[0], XL[0]]
)
def test_changed_operations_end_in_a_model_or_a_sentence(
    name: str, data: st.DataObject, seeds: dict[str, bytes], tmp_path: Path
) -> None:
    pieces = list(operations_of(seeds[name]))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(pieces) - 1))
        match data.draw(st.sampled_from(("drop", "double", "swap", "replace", "move"))):
            case "drop":
                del pieces[place]
            case "double":
                pieces[place:place] = pieces[place : place + data.draw(st.integers(1, 8))]
            case "swap":
                other = data.draw(st.integers(0, len(pieces) - 1))
                pieces[place], pieces[other] = pieces[other], pieces[place]
            case "replace":
                pieces[place] = data.draw(st.sampled_from(PLAIN_OPCODES))
            case "move":
                pieces.insert(data.draw(st.integers(0, len(pieces) - 1)), pieces.pop(place))
    read_anyway(tmp_path / "fuzzed", b"".join(pieces))


@FUZZ
@given(operations=st.lists(st.sampled_from(OPCODES), max_size=40))
def test_random_operations_end_in_a_sentence(operations: list[bytes], tmp_path: Path) -> None:
    read_anyway(tmp_path / "fuzzed", b"\x80\x04" + b"".join(operations) + b".")

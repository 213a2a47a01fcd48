"""Our own model files: bit for bit there and back, watched and written whole."""

import signal
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from gpu_backend import (
    CancelledError,
    LoomError,
    Model,
    ModelFileError,
    direction_path,
    read_model,
    write_safetensors,
)
from tests.helpers.failing_disk import dead_part
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


def test_warnings_about_files_beside_a_model_stay_there(tmp_path: Path) -> None:
    """They name a file, whose name may hold any character, and are not of the model that is written."""
    path = tmp_path / "hills\u00a0one.safetensors"
    write_safetensors(make_stylegan2(), path)
    direction_path(path).write_bytes(b"damaged")
    model = read_model(path)
    assert model.facts.warnings
    write_safetensors(model, tmp_path / "m.safetensors")
    assert read_model(tmp_path / "m.safetensors").facts.warnings == ()


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
    with safetensors.safe_open(tmp_path / "m.safetensors", framework="np") as file:
        metadata = file.metadata()
    safetensors.numpy.save_file(dict(reversed([*made.weights.items()])), tmp_path / "again.safetensors", metadata)
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


def test_weights_are_writable_contiguous_float32(tmp_path: Path) -> None:
    for dtype in ("float32", "float16"):
        write_safetensors(make_stylegan2(), tmp_path / dtype, dtype=dtype)
        for name, array in read_model(tmp_path / dtype).weights.items():
            assert (array.dtype, array.flags.c_contiguous, array.flags.writeable) == (np.float32, True, True), name


@pytest.fixture
def large(tmp_path: Path) -> Path:
    write_safetensors(make_stylegan2(resolution=64, channel_base=16384, channel_max=256), tmp_path / "l.safetensors")
    return tmp_path / "l.safetensors"


def test_progress_goes_from_nothing_to_all_and_never_back(large: Path) -> None:
    seen: list[tuple[int, int]] = []
    read_model(large, progress=lambda done, total: seen.append((done, total)))
    done = [item[0] for item in seen]
    assert done == sorted(done)
    assert len(set(done)) > 20
    assert (done[0], done[-1]) == (0, large.stat().st_size)
    assert {total for _, total in seen} == {large.stat().st_size}


@pytest.mark.parametrize("after", [0, 1, 3, 12, 40])
def test_a_cancelled_reading_stops_at_the_next_look(after: int, large: Path) -> None:
    calls = 0

    def cancelled() -> bool:
        nonlocal calls
        calls += 1
        return calls > after

    with pytest.raises(CancelledError):
        read_model(large, cancelled=cancelled)
    assert calls == after + 1


def test_reading_takes_little_more_memory_than_the_weights(large: Path) -> None:
    tracemalloc.start()
    try:
        weights = read_model(large).weights
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    sizes = [array.nbytes for array in weights.values()]
    assert peak < sum(sizes) + 2 * max(sizes) + (6 << 20)


def test_a_written_file_has_ordinary_permissions(tmp_path: Path) -> None:
    write_safetensors(make_stylegan2(), tmp_path / "m.safetensors")
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "m.safetensors").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no limits on the size of files")
def test_a_disk_that_is_full_leaves_nothing_and_is_reported_in_one_sentence(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"former")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    former = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, hard))
    try:
        with pytest.raises(LoomError) as caught:
            write_safetensors(make_stylegan2(), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, former)
    assert_one_sentence(caught.value, "was not written")
    assert [item.name for item in tmp_path.iterdir()] == ["m.safetensors"]
    assert path.read_bytes() == b"former"


def test_the_hash_of_a_file_is_its_model_id_even_when_the_path_differs(tmp_path: Path) -> None:
    made = make_stylegan2()
    write_safetensors(made, tmp_path / "a.safetensors")
    write_safetensors(replace(made), tmp_path / "b.safetensors")
    first, second = read_model(tmp_path / "a.safetensors"), read_model(tmp_path / "b.safetensors")
    assert first.facts.model_id == second.facts.model_id != made.facts.model_id


def test_a_killed_conversion_leaves_nothing_that_the_next_one_does_not_remove(tmp_path: Path) -> None:
    """The library writes a hidden file of its own first, under a name that only it knows."""
    folder = tmp_path / dead_part("m.safetensors")
    folder.mkdir()
    (folder / ".tmpeW8z3K").write_bytes(b"half")
    write_safetensors(make_stylegan2(resolution=4), tmp_path / "m.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]


def test_a_file_that_the_reader_would_refuse_is_not_written(tmp_path: Path) -> None:
    model = make_stylegan2(resolution=4)
    model = replace(model, file_warnings=("too long " * 100,))
    with pytest.raises(ModelFileError, match=r"^m\.safetensors was not written: expected short plain notes") as caught:
        write_safetensors(model, tmp_path / "m.safetensors")
    assert_one_sentence(caught.value)
    assert list(tmp_path.iterdir()) == []

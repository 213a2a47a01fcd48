"""Reading as a whole: the golden files, what is no model, damage, progress and cancelling."""

import hashlib
import json
import math
import os
import struct
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpu_backend import CancelledError, Model, ModelFileError, inspect_model, read_model, write_safetensors
from tests.helpers.network_file import write_nvidia_pickle
from tests.helpers.networks import as_stylegan2, make_stylegan2
from tests.helpers.sentences import assert_one_sentence
from tests.helpers.torch_file import save_torch

GOLDEN = Path(__file__).parents[2] / "data" / "golden"
S1 = "S1_sg2ada_skip_64"
S2 = "S2_sg3repo_sg2_cond_128"
TOLERANCES = {case["case"]: case["tolerance"] for case in json.loads((GOLDEN / "manifest.json").read_text())["cases"]}


def mapped(model: Model, z: NDArray[np.float32], c: NDArray[np.float32] | None) -> NDArray[np.float64]:
    """Map z to w in float64, straight from the weights."""

    def weight(name: str) -> NDArray[np.float64]:
        return model.weights[f"mapping.{name}"].astype(np.float64)

    def normalised(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return x / np.sqrt(np.mean(x**2, axis=1, keepdims=True) + 1e-8)

    x = normalised(z.astype(np.float64))
    if c is not None:
        label = c @ weight("embed.weight").T / math.sqrt(c.shape[1]) + weight("embed.bias")
        x = np.concatenate([x, normalised(label)], axis=1)
    rate = model.spec.mapping.lr_multiplier
    for index in range(len(model.spec.mapping.widths)):
        x = x @ weight(f"fc{index}.weight").T * (rate / math.sqrt(x.shape[1])) + weight(f"fc{index}.bias") * rate
        x = np.where(x > 0, x, 0.2 * x) * math.sqrt(2)
    return x


@pytest.mark.parametrize("name", [S1, S2])
def test_golden_weights_map_golden_z_to_golden_w(name: str) -> None:
    # S1 holds G, D and G_ema with different weights: only those of G_ema give these rows.
    model = read_model(GOLDEN / f"{name}.pkl")
    arrays = np.load(GOLDEN / f"{name}.npz")
    w = mapped(model, arrays["z"], arrays.get("c"))
    np.testing.assert_allclose(w, arrays["w"][:, 0], atol=TOLERANCES[name]["w"], rtol=0)


def test_the_facts_of_an_ada_snapshot_are_reported() -> None:
    path = GOLDEN / f"{S1}.pkl"
    facts = inspect_model(path)
    assert facts.model_id == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (facts.path, facts.name, facts.nbytes) == (str(path), S1, path.stat().st_size)
    assert (facts.container, facts.family, facts.flavour) == ("NVIDIA PyTorch pickle", "StyleGAN2", "StyleGAN2-ADA")
    assert (facts.architecture, facts.resolution, facts.img_channels) == ("skip", 64, 3)
    assert (facts.z_dim, facts.w_dim, facts.num_ws, facts.c_dim, facts.mapping_layers) == (64, 64, 10, 0, 8)
    assert (facts.conv_clamp, facts.fp16_layers) == (None, ())
    assert facts.noise_layers[:3] == ("b4.conv1", "b8.conv0", "b8.conv1")
    assert facts.draft_resolutions == (4, 8, 16, 32)
    assert facts.row_resolutions == (4, 4, 8, 8, 16, 16, 32, 32, 64, 64)
    manifest = next(case for case in json.loads((GOLDEN / "manifest.json").read_text())["cases"] if case["case"] == S1)
    assert set(facts.names_requested) == {*manifest["globals_outer"], *manifest["globals_nested"]}
    assert [item.partition(":")[0] for item in facts.ignored[:-1]] == [
        "training_set_kwargs",
        "G",
        "D",
        "augment_pipe",
    ]
    assert facts.warnings == ()


def test_the_facts_of_a_conditional_half_precision_snapshot_are_reported() -> None:
    model = read_model(GOLDEN / f"{S2}.pkl")
    facts = model.facts
    assert (facts.flavour, facts.resolution, facts.c_dim, facts.num_ws) == ("StyleGAN3 repository", 128, 5, 12)
    assert facts.conv_clamp == 256
    assert {name.partition(".")[0] for name in facts.fp16_layers} == {"b64", "b128"}
    assert {
        layer.resolution: layer.out_channels for layer in as_stylegan2(model).spec.layers if layer.kind == "conv"
    } == {
        4: 32,
        8: 32,
        16: 32,
        32: 32,
        64: 24,
        128: 12,
    }
    assert as_stylegan2(model).spec.resample_filter == (0.125, 0.375, 0.375, 0.125)
    assert facts.parameters == sum(
        array.size for name, array in model.weights.items() if not name.endswith(("noise_const", "w_avg"))
    )


def test_weights_are_writable_contiguous_float32() -> None:
    for name, array in read_model(GOLDEN / f"{S2}.pkl").weights.items():
        assert (array.dtype, array.flags.c_contiguous, array.flags.writeable) == (np.float32, True, True), name


def _nothing(folder: Path) -> Path:
    return folder / "missing.pkl"


def _folder(folder: Path) -> Path:
    return folder


def _file(name: str, content: bytes) -> Any:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content)
        return path

    return make


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (_nothing, "there is no file of that name"),
        (_folder, "this is a folder"),
        (_file("empty.pkl", b""), "this file is empty"),
        (_file("notes.pkl", b"remember the milk\n" * 100), "this is a text file"),
        (_file("short.txt", "grüße".encode()), "this is a text file"),
        (_file("page.pkl", b"\n<!DOCTYPE html><html></html>"), "web page"),
        (_file("pointer.pkl", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "git lfs pull"),
        (_file("a.png", b"\x89PNG\r\n\x1a\n" + bytes(64)), "PNG picture"),
        (_file("a.npy", b"\x93NUMPY" + bytes(64)), "NumPy array"),
        (_file("a.zip", b"PK\x03\x04" + bytes(64)), "table of contents is missing"),
        (_file("zeros.pkl", bytes(1000)), "no known model file"),
        (_file("one.pkl", b"\x80"), "no known model file"),
        (_file("bare.pkl", b"\x80\x04"), "ends in the middle"),
        (_file("brace.safetensors", b"\x10" + bytes(7) + b"{" + b"x" * 15), "JSON"),
    ],
)
def test_a_file_of_another_kind_is_named_as_that_kind(make: Any, part: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError) as caught:
        read_model(make(tmp_path))
    assert_one_sentence(caught.value, part)


@pytest.mark.parametrize("name", ["m.pkl", "m.safetensors", "m.pt"])
@pytest.mark.parametrize("share", [0.7, 0.999])
def test_a_file_that_was_not_downloaded_whole_reports_it_and_what_to_do(
    name: str, share: float, tmp_path: Path
) -> None:
    model, path = make_stylegan2(resolution=16), tmp_path / name
    if name == "m.pkl":
        write_nvidia_pickle(path, model)
    elif name == "m.pt":
        save_torch({"g_ema": dict(model.weights)}, path)
    else:
        write_safetensors(model, path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert_one_sentence(caught.value, "download or copy it again")


@pytest.mark.parametrize("place", [1 << 63, (1 << 64) - 1])
def test_a_zip_whose_table_is_said_to_lie_beyond_every_file_is_refused(place: int, tmp_path: Path) -> None:
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, 46, 0, 0)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, place, 1)
    (tmp_path / "m.pt").write_bytes(b"PK\x03\x04" + bytes(60) + locator + end)
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "m.pt")
    assert_one_sentence(caught.value, "table of contents is missing")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pkl")
    with pytest.raises(ModelFileError, match="a device or a pipe"):
        read_model(tmp_path / "pipe.pkl")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_numpy_archive_is_called_by_its_name(save: Any, tmp_path: Path) -> None:
    save(tmp_path / "x.npz", a=np.zeros(100))
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "x.npz")
    assert_one_sentence(caught.value, "a NumPy archive")


def test_a_project_in_place_of_a_model_is_called_by_its_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "piece.loom", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("session.json", "{}")
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "piece.loom")
    assert_one_sentence(caught.value, "this is a project of Latent Loom (.loom)")


def test_a_refused_file_has_its_path_size_kind_and_what_it_requested_in_the_details() -> None:
    path = GOLDEN.parent / "hostile" / "a01_os_system_stack_global.pkl"
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    details = caught.value.details
    assert f"File: {path}\n" in details
    assert f"Size: {path.stat().st_size:,} bytes\n" in details
    assert "(a pickle of protocol 4)" in details
    assert "  posix system" in details or "  os system" in details
    assert "(nothing was run)" in details


def test_a_file_that_is_not_there_has_its_path_in_the_details_and_no_more(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "gone.pkl")
    assert caught.value.details == f"File: {tmp_path / 'gone.pkl'}"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("c03_truncated.pt", "a zip archive"),
        ("c04_truncated_legacy.pt", "an older torch file"),
        ("e03_html_error_page.pkl", "a web page"),
        ("e01_random.pkl", "no known kind of file"),
    ],
)
def test_the_details_say_what_the_first_bytes_begin(name: str, kind: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        read_model(GOLDEN.parent / "hostile" / name)
    assert f" ({kind})" in caught.value.details


def test_a_file_truncated_anywhere_is_refused_with_one_sentence(tmp_path: Path) -> None:
    content = (GOLDEN / f"{S1}.pkl").read_bytes()
    for percent in range(0, 100, 3):
        path = tmp_path / f"cut at {percent}.pkl"
        path.write_bytes(content[: len(content) * percent // 100])
        with pytest.raises(ModelFileError) as caught:
            read_model(path)
        assert_one_sentence(caught.value)


def test_random_bytes_are_refused_with_one_sentence(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    path = tmp_path / "random.pkl"
    for head in (b"", b"\x80\x02", b"\x80\x04", b"PK\x03\x04", b"\x40" + bytes(7) + b"{"):
        for _ in range(20):
            path.write_bytes(head + generator.bytes(2000))
            with pytest.raises(ModelFileError) as caught:
                read_model(path)
            assert_one_sentence(caught.value)


def test_progress_goes_from_nothing_to_all_and_never_back(tmp_path: Path) -> None:
    path = write_nvidia_pickle(tmp_path / "n.pkl", make_stylegan2(resolution=128, channel_base=8192, channel_max=96))
    seen: list[tuple[int, int]] = []
    read_model(path, progress=lambda done, total: seen.append((done, total)))
    done = [item[0] for item in seen]
    assert done == sorted(done)
    assert len(done) > 3
    assert (done[0], done[-1]) == (0, path.stat().st_size)
    assert {total for _, total in seen} == {path.stat().st_size}


@pytest.mark.parametrize("after", [0, 1, 3, 10])
def test_a_cancelled_reading_stops_at_the_next_look(after: int, tmp_path: Path) -> None:
    path = write_nvidia_pickle(tmp_path / "n.pkl", make_stylegan2())
    calls = 0

    def cancelled() -> bool:
        nonlocal calls
        calls += 1
        return calls > after

    with pytest.raises(CancelledError):
        read_model(path, cancelled=cancelled)
    assert calls == after + 1


@pytest.mark.parametrize("name", ["d10_zip_deflate_256MiB.pt", "i05_zip_torchscript.pt"])
def test_the_content_decides_and_not_the_ending(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes((GOLDEN.parent / "hostile" / name).read_bytes())
    with pytest.raises(ModelFileError, match=r"compressed|TorchScript"):
        read_model(path)
    path.write_bytes((GOLDEN / f"{S2}.pkl").read_bytes())
    assert read_model(path).facts.container == "NVIDIA PyTorch pickle"


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = write_nvidia_pickle(tmp_path / "n.pkl", make_stylegan2(resolution=128, channel_base=8192, channel_max=96))
    size = path.stat().st_size

    def shrink(done: int, total: int) -> None:
        os.truncate(path, size // 2)

    with pytest.raises(ModelFileError) as caught:
        read_model(path, progress=shrink)
    assert_one_sentence(caught.value, "it became shorter")


def test_reading_takes_little_more_memory_than_the_weights(tmp_path: Path) -> None:
    made = make_stylegan2(resolution=64, channel_base=16384, channel_max=256)
    path = write_nvidia_pickle(tmp_path / "n.pkl", made, channels_last=True, other=made)
    nbytes = sum(array.nbytes for array in made.weights.values())
    tracemalloc.start()
    try:
        model = read_model(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(array.nbytes for array in model.weights.values()) == nbytes
    # One pass: the weights, one tensor being laid out, and the piece of the file that is at hand.
    largest = max(array.nbytes for array in made.weights.values())
    assert peak < nbytes + 2 * largest + (6 << 20)


@pytest.mark.parametrize("ending", ["pkl", "safetensors"])
def test_a_file_whose_hash_is_known_is_read_and_not_hashed(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"n.{ending}"
    write_nvidia_pickle(tmp_path / "n.pkl", make_stylegan2())
    if ending == "safetensors":
        write_safetensors(read_model(tmp_path / "n.pkl"), path)
    plain = read_model(path, known_digest=lambda status: "")
    assert plain.facts.model_id == hashlib.sha256(path.read_bytes()).hexdigest()
    calls: list[int] = []

    def known(status: os.stat_result) -> str:
        calls.append(status.st_ino)
        return plain.facts.model_id

    monkeypatch.setattr("gpu_backend.model.source.hashlib.sha256", lambda: pytest.fail("hashed"))
    again = read_model(path, known_digest=known)
    assert calls == [path.stat().st_ino]
    assert again.facts == plain.facts
    assert all(np.array_equal(plain.weights[name], values) for name, values in again.weights.items())


@pytest.mark.parametrize("ending", ["pkl", "safetensors"])
def test_a_file_whose_hash_is_known_and_that_changes_while_it_is_read_is_refused(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"n.{ending}"
    write_nvidia_pickle(tmp_path / "n.pkl", make_stylegan2())
    if ending == "safetensors":
        write_safetensors(read_model(tmp_path / "n.pkl"), path)

    def touch(done: int, total: int) -> None:
        os.utime(path, ns=(1, 1))

    with pytest.raises(ModelFileError) as caught:
        read_model(path, progress=touch, known_digest=lambda status: "a" * 64)
    assert_one_sentence(caught.value, "it was changed")


def test_inspecting_gives_the_facts_that_reading_gives() -> None:
    path = GOLDEN / f"{S2}.pkl"
    assert inspect_model(path) == read_model(path).facts

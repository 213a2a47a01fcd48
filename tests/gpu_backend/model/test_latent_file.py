"""Files of w rows: what is written is read again, and what is no such file is refused."""

from __future__ import annotations

import io
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_backend import (
    Disk,
    EncoderFile,
    LoomError,
    ModelFileError,
    StoredLatent,
    read_latent,
    read_latents,
    stored_latent,
    write_encoder,
    write_latent,
    write_latents,
)
from gpu_backend.model.encoder_file import encoder_shapes
from tests.helpers.torch_file import save_torch

ROWS = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
LATENT = stored_latent(ROWS)


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".pt"])
def test_rows_come_back_bit_for_bit(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"face{suffix}"
    write_latent(path, LATENT)
    assert read_latent(path) == read_latent(str(path)) == LATENT
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


def test_rows_are_an_array_again() -> None:
    array = LATENT.to_array()
    assert (array.dtype, array.flags.writeable) == (np.float32, False)
    assert np.array_equal(array, ROWS)
    assert stored_latent(array) == LATENT


def test_rows_of_several_pictures_are_no_latent() -> None:
    with pytest.raises(LoomError, match=r"W rows of one picture .*, not float32 of \(2, 4, 6\)"):
        stored_latent(np.stack([ROWS, ROWS]))


def test_an_array_in_place_of_a_latent_names_what_makes_one(tmp_path: Path) -> None:
    rows: Any = ROWS
    with pytest.raises(TypeError, match="takes a StoredLatent, not an ndarray; see `stored_latent`"):
        write_latent(tmp_path / "face.npz", rows)
    with pytest.raises(TypeError, match="takes a StoredLatent, not an ndarray; see `stored_latent`"):
        write_latents(tmp_path / "faces.npz", [("one", rows)])
    assert list(tmp_path.iterdir()) == []


def test_other_tools_read_what_is_written(tmp_path: Path) -> None:
    import torch

    for suffix in (".npz", ".npy", ".pt"):
        write_latent(tmp_path / f"face{suffix}", LATENT)
    with np.load(tmp_path / "face.npz") as archive:
        assert np.array_equal(archive["w"], ROWS[None])
    assert np.array_equal(np.load(tmp_path / "face.npy"), ROWS[None])
    loaded = torch.load(tmp_path / "face.pt", weights_only=True)
    assert np.array_equal(loaded["w"].numpy(), ROWS[None])


@pytest.mark.parametrize("is_legacy", [False, True])
def test_files_saved_by_torch_are_read(tmp_path: Path, is_legacy: bool) -> None:
    for value in ({"w": ROWS}, {"photo.png": {"img": ROWS[:1], "latent": ROWS}}, OrderedDict(latent=ROWS)):
        assert read_latent(save_torch(value, tmp_path / "face.pt", is_legacy=is_legacy)) == LATENT


def test_one_row_stands_for_all_and_half_precision_is_widened(tmp_path: Path) -> None:
    np.save(tmp_path / "row.npy", ROWS[0])
    assert read_latent(tmp_path / "row.npy") == stored_latent(ROWS[:1])
    np.savez_compressed(tmp_path / "half.npz", w=ROWS.astype(np.float16), other=np.zeros(3))
    assert (read_latent(tmp_path / "half.npz").num_ws, read_latent(tmp_path / "half.npz").w_dim) == (4, 6)


def _npy_that_lies() -> bytes:
    target = io.BytesIO()
    np.lib.format.write_array_header_1_0(target, {"descr": "<f4", "fortran_order": False, "shape": (100, 8000)})
    return target.getvalue() + b"\0" * 16


def _bomb() -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("w.npy", b"\0" * (80 << 20), compresslevel=1)
    return target.getvalue()


def _saved(array: np.ndarray, **options: bool) -> bytes:
    target = io.BytesIO()
    np.save(target, array, **options)
    return target.getvalue()


@pytest.mark.parametrize(
    ("data", "part"),
    [  # made in the test where that takes long: each worker collects all tests
        (b"", "something else"),
        (b"hello", "something else"),
        (_saved(np.array([{}], dtype=object), allow_pickle=True), "floating-point"),
        (_saved(np.arange(8)), "floating-point"),
        (_saved(np.zeros((2, 3, 4), np.float32)), "(rows, numbers)"),
        (_saved(np.zeros((1, 9000), np.float32)), "up to 8192 numbers"),
        (_saved(np.full((2, 3), np.nan, np.float32)), "finite"),
        (_npy_that_lies(), "as long as its header says"),
        (_bomb, "damaged"),
        (b"\x93NUMPY\x01\x00", "damaged"),
        (b"PK\x03\x04 broken", "damaged"),
    ],
)
def test_a_file_without_rows_is_refused_by_name(tmp_path: Path, data: bytes | Callable[[], bytes], part: str) -> None:
    path = tmp_path / "face.npz"
    path.write_bytes(data() if callable(data) else data)
    with pytest.raises(ModelFileError) as caught:
        read_latent(path)
    assert part in caught.value.sentence
    assert "face.npz" in caught.value.sentence


def test_a_torch_file_that_asks_for_code_is_refused(tmp_path: Path) -> None:
    hostile = Path(__file__).parents[2] / "data" / "hostile"
    files = [path for path in hostile.rglob("*") if path.suffix in (".pt", ".pkl", ".pth")]
    assert files
    for path in files:
        with pytest.raises(LoomError):
            read_latent(path)


def test_a_suffix_that_is_no_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoomError, match=r"\.npz, \.npy, \.pt, but not as '\.txt'"):
        write_latent(tmp_path / "face.txt", LATENT)


def test_a_disk_that_loses_bytes_costs_no_former_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "face.npz"
    write_latent(path, LATENT)

    def lossy(disk: Disk, path: Path, data: bytes, *, flushed: bool = True) -> None:
        path.write_bytes(data[:-1])

    monkeypatch.setattr(Disk, "write", lossy)
    with pytest.raises(OSError, match="other bytes than were written"):
        write_latent(path, LATENT)
    with pytest.raises(OSError, match="other bytes than were written"):
        write_latents(path, [("a", LATENT)])
    encoder = EncoderFile(
        8, {name: np.zeros(shape, np.float32) for name, shape in encoder_shapes(8, 4).items()}, 1, 1.0
    )
    with pytest.raises(LoomError, match="other bytes than were written"):
        write_encoder(encoder, tmp_path / "face.encoder.safetensors", "id", 4, 4)
    assert [each.name for each in tmp_path.iterdir()] == ["face.npz"]
    assert read_latent(path) == LATENT


def test_rows_may_be_a_list() -> None:
    assert stored_latent(ROWS.astype(np.float64).tolist()) == stored_latent(ROWS)


def test_bytes_and_shape_have_to_agree() -> None:
    with pytest.raises(LoomError, match="2 of 3 in 8 bytes"):
        StoredLatent(b"\0" * 8, 2, 3)


def test_many_latents_and_their_names_come_back(tmp_path: Path) -> None:
    path = tmp_path / "many.npz"
    pairs = [("first", LATENT), ("zweites – Schnee", stored_latent(ROWS + 1)), ("x" * 9999, stored_latent(ROWS + 2))]
    write_latents(path, pairs)
    found = read_latents(path)
    assert [latent for _, latent in found] == [latent for _, latent in pairs]
    assert [name for name, _ in found[:2]] == ["first", "zweites – Schnee"]
    assert found[2][0] == "x" * len(found[2][0])
    with np.load(path) as archive:
        assert archive["w"].shape == (3, 4, 6)
    with pytest.raises(ModelFileError):
        read_latents(path, 2)
    with pytest.raises(ModelFileError):
        read_latent(path)


def test_files_of_other_tools_give_one_or_many_without_names(tmp_path: Path) -> None:
    write_latent(tmp_path / "face.pt", LATENT)
    assert read_latents(tmp_path / "face.pt", 10) == (("face", LATENT),)
    np.savez(tmp_path / "several.npz", w=np.stack([ROWS, ROWS + 1]), names=np.arange(2))
    assert [name for name, _ in read_latents(tmp_path / "several.npz", 10)] == ["several 1", "several 2"]
    np.savez(tmp_path / "hostile.npz", w=ROWS, names=np.array([{}], dtype=object))
    assert read_latents(tmp_path / "hostile.npz", 10) == (("hostile", LATENT),)


def test_latents_of_different_models_are_not_written_to_one_file(tmp_path: Path) -> None:
    with pytest.raises(LoomError, match="different shapes"):
        write_latents(tmp_path / "both.npz", [("a", LATENT), ("b", stored_latent(ROWS[:2]))])
    with pytest.raises(LoomError, match="at least one"):
        write_latents(tmp_path / "none.npz", [])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_members_that_are_compressed_as_no_tool_does_are_refused_unread(method: int, tmp_path: Path) -> None:
    path = tmp_path / "w.npz"
    write_latents(path, [("a", LATENT), ("b", LATENT)])
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    for read in (read_latent, lambda path: read_latents(path, 9)):
        with pytest.raises(ModelFileError, match=r"w\.npz should hold w rows"):
            read(path)


def test_very_many_very_long_names_are_cut_so_that_the_file_can_be_read(tmp_path: Path) -> None:
    small = stored_latent(np.ones((1, 2), np.float32))
    latents = [(f"{number:06d}" + "n" * 4000, small) for number in range(6000)]
    write_latents(tmp_path / "many.npz", latents)
    found = read_latents(tmp_path / "many.npz", 6000)
    assert [name[:6] for name, _ in found] == [name[:6] for name, _ in latents]
    assert len(found[0][0]) > 400

"""Files of w rows: ``.npz`` with the key ``w`` as projectors write it, ``.npy``, and torch's ``.pt``.

Arrays may be (num_ws, w_dim), the same with a first axis of 1, or (w_dim,) for one row everywhere. Nothing in a file
runs: arrays of objects are refused, and torch files go through the restricted reader.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import ArrayLike, NDArray

from gpu_backend.errors import LoomError, ModelFileError, RequestError
from gpu_backend.limits import (
    MAX_KEPT,
    MAX_STORED_DIM,
    MAX_STORED_NBYTES,
    MAX_STORED_ROWS,
    MAX_TEXT,
    LimitError,
    read_member,
    read_regular_file,
)
from gpu_backend.model.pickled import read_torch_stream, read_torch_zip
from gpu_backend.model.records import TensorRecord
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.source import BytesSource
from gpu_backend.model.tensors import load_tensors
from gpu_backend.model.watch import Watch
from gpu_backend.plain_text import type_with_article
from gpu_backend.recipe import StoredLatent
from gpu_backend.whole_file import check_same, write_whole

Parsed = TypeVar("Parsed")

LATENT_SUFFIXES = (".npz", ".npy", ".pt")

_KEYS = ("w", "ws", "latent", "latents", "latent_code", "w_plus")
"""Names under which tools keep w rows."""

_ZIP = b"PK\x03\x04"

_DAMAGED = (
    *(ValueError, KeyError, EOFError, RecursionError, MemoryError, struct.error, zipfile.BadZipFile, zlib.error),
    RuntimeError,  # zips that are encrypted, or compressed in an unknown way
)


def read_latent(path: str | PathLike[str]) -> StoredLatent:
    """Read w rows from a file, whose format is detected by content.

    Raises
    ------
    ModelFileError
        If the file cannot be read, holds no w rows, or rows of a shape that no network has.
    """
    return _read(Path(path), lambda data: stored_latent(_array_of(data, 1)))


def read_latents(path: str | PathLike[str], most: int = MAX_KEPT) -> tuple[tuple[str, StoredLatent], ...]:
    """Read the w rows of up to `most` pictures with their names: what `write_latents` wrote, or one picture's file.

    Names come from the array ``names``, else from the file's name, numbered if there are several.

    Raises
    ------
    ModelFileError
        As `read_latent`.
    """
    path = Path(path)

    def parsed(data: bytes) -> tuple[tuple[str, StoredLatent], ...]:
        array = _array_of(data, most)
        if array.ndim == 3 and array.shape[0] > most:
            raise Refusal(f"the w rows of up to {most:,} pictures", f"it has {array.shape[0]:,}")
        if array.ndim < 3 or array.shape[0] == 1:
            latents = [stored_latent(array)]
        else:
            latents = [stored_latent(rows) for rows in array]
        names = _names_of(data, len(latents)) or [
            path.stem if len(latents) == 1 else f"{path.stem} {number}" for number in range(1, 1 + len(latents))
        ]
        return tuple(zip(names, latents, strict=True))

    return _read(path, parsed)


def _read(path: Path, parse: Callable[[bytes], Parsed]) -> Parsed:
    name = path.name
    try:
        return parse(read_regular_file(path, MAX_STORED_NBYTES, "a file of w rows"))
    except Refusal as refusal:
        raise ModelFileError(refusal.sentence(name)) from refusal
    except OSError as error:
        raise ModelFileError(f"{name} cannot be read ({error.strerror}).", str(error)) from error
    except (LimitError, RequestError) as error:
        raise ModelFileError(f"{name}: {error.sentence}" if name not in error.sentence else error.sentence) from error
    except _DAMAGED as error:
        raise ModelFileError(f"{name} should hold w rows (.npz, .npy or .pt), but is damaged.", str(error)) from error


def stored_latent(array: ArrayLike) -> StoredLatent:
    """Return rows of w as a stored latent.

    Parameters
    ----------
    array
        (num_ws, w_dim), (1, num_ws, w_dim), (w_dim,) or (1, w_dim); floating-point.

    Raises
    ------
    RequestError
        If the shape is another one, or a number is not finite.
    """
    given: NDArray[Any] = np.asarray(array)
    if given.ndim == 3 and given.shape[0] == 1:
        given = given[0]
    rows = given[None] if given.ndim == 1 else given
    if rows.ndim != 2 or rows.dtype.kind != "f":
        raise RequestError(
            f"W rows of one picture must be floats of (rows, numbers), not {given.dtype} of {given.shape}."
        )
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(rows, dtype="<f4")
    if not np.isfinite(rows).all():
        raise RequestError("W rows must be finite numbers, but some are not.")
    return StoredLatent(rows.tobytes(), *rows.shape)


def write_latents(path: str | PathLike[str], latents: Sequence[tuple[str, StoredLatent]]) -> None:
    """Write the w rows of pictures and their names as an ``.npz``: `w` (n, num_ws, w_dim) float32, `names` (n,).

    Raises
    ------
    LoomError
        If there are no rows, or they have different shapes, or are too many to be read again. Names are cut if there
        are very many.
    OSError
        If the system refuses.
    TypeError
        If one is no StoredLatent: `stored_latent` makes one of an array.
    """
    if not latents:
        raise LoomError("A file of latents needs at least one, but there is none.")
    for _, latent in latents:
        _check_stored(latent)
    shapes = {(latent.num_ws, latent.w_dim) for _, latent in latents}
    if len(shapes) != 1:
        raise LoomError("Latents of one file must be of one model, but these have different shapes.")
    rows = np.stack([item.to_array() for _, item in latents])
    if rows.nbytes > MAX_STORED_NBYTES // 2:
        raise LoomError(f"A file holds up to {MAX_STORED_NBYTES >> 21} MB of w rows, but these are more.")
    # NumPy gives every name the room of the longest, 4 bytes a letter; names have a quarter of the file.
    longest = min(MAX_TEXT, MAX_STORED_NBYTES // 16 // len(latents))
    names = np.array([name[:longest] for name, _ in latents], dtype=np.str_)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, array in (("w", rows), ("names", names)):
            member = io.BytesIO()
            np.save(member, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    _write(Path(path), target.getvalue())


def write_latent(path: str | PathLike[str], latent: StoredLatent) -> None:
    """Write w rows as (1, num_ws, w_dim) float32, in the format that the suffix names.

    Raises
    ------
    LoomError
        If the suffix is none of `LATENT_SUFFIXES`.
    OSError
        If the system refuses.
    TypeError
        If `latent` is no StoredLatent: `stored_latent` makes one of an array.
    """
    _check_stored(latent)
    rows = latent.to_array()[None]
    path, target = Path(path), io.BytesIO()
    match path.suffix.lower():
        case ".npz":
            with zipfile.ZipFile(target, "w") as archive:
                array = io.BytesIO()
                np.save(array, rows, allow_pickle=False)
                archive.writestr(zipfile.ZipInfo("w.npy"), array.getvalue())
        case ".npy":
            np.save(target, rows, allow_pickle=False)
        case ".pt":
            with zipfile.ZipFile(target, "w") as archive:
                for name, data in (
                    ("data.pkl", _torch_pickle(rows.shape)),
                    ("byteorder", b"little"),
                    ("data/0", latent.rows),
                    ("version", b"3\n"),
                ):
                    archive.writestr(zipfile.ZipInfo(f"latent/{name}"), data)
        case other:
            raise LoomError(f"W rows are written as {', '.join(LATENT_SUFFIXES)}, but not as {other or 'no suffix'!r}.")
    _write(path, target.getvalue())


def _check_stored(latent: object) -> None:
    if not isinstance(latent, StoredLatent):
        raise TypeError(f"A file of w rows takes a StoredLatent, not {type_with_article(latent)}; see `stored_latent`.")


def _write(path: Path, content: bytes) -> None:
    write_whole(path, content, check=lambda aside: check_same(aside, content))


def _names_of(data: bytes, count: int) -> list[str]:
    """Return the names in an ``.npz``; none if it has no such array, or one that is something else."""
    if not data.startswith(_ZIP):
        return []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if "names.npy" not in archive.namelist():
            return []
        member = read_member(archive, "names.npy", MAX_STORED_NBYTES + 1)
    shape, dtype, start = _npy_header(member)
    if shape != (count,) or dtype.kind != "U" or count * dtype.itemsize != len(member) - start:
        return []
    names: NDArray[np.str_] = npy_format.read_array(io.BytesIO(member), allow_pickle=False)
    return [str(name)[:MAX_TEXT] for name in names]


def _array_of(data: bytes, most: int) -> NDArray[Any]:
    if data.startswith(b"\x93NUMPY"):
        return _npy(data, most)
    source = BytesSource(data)
    if data.startswith(_ZIP):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {info.filename: info for info in archive.infolist() if info.filename.endswith(".npy")}
            if members:
                return _npz(archive, members, most)
        return _tensor_of(source, read_torch_zip(source, Watch(), set()).value, most)
    if data[:1] == b"\x80":
        return _tensor_of(source, read_torch_stream(source, Watch(), set()).value, most)
    raise Refusal("a file of w rows (.npz, .npy or .pt)", "its first bytes are those of something else")


def _npz(archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], most: int) -> NDArray[Any]:
    name = next((f"{key}.npy" for key in _KEYS if f"{key}.npy" in members), "")
    if not name and len(members) == 1:
        name = next(iter(members))
    if not name:
        raise Refusal("w rows under the key 'w'", "the archive has only other arrays")
    return _npy(read_member(archive, name, MAX_STORED_NBYTES + 1), most)


def _npy_header(data: bytes) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Return shape, type and the offset of the values of an .npy file."""
    file = io.BytesIO(data)
    version = npy_format.read_magic(file)
    read_header = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
    try:
        shape, _, dtype = read_header(file)
    except Exception as error:  # NumPy parses the header as Python: SyntaxError, TokenError, RecursionError and more
        raise ValueError(f"the header cannot be read ({error})") from error
    return shape, dtype, file.tell()


def _npy(data: bytes, most: int) -> NDArray[Any]:
    """Return the array of an .npy file whose header agrees with its length."""
    shape, dtype, start = _npy_header(data)
    if dtype.hasobject or dtype.kind != "f":
        raise Refusal("an array of floating-point numbers", f"found one of {dtype}")
    _check_shape(shape, most)
    if math.prod(shape) * dtype.itemsize != len(data) - start:
        raise Refusal("an array as long as its header says", "it has another length")
    array: NDArray[Any] = npy_format.read_array(io.BytesIO(data), allow_pickle=False)
    return array


def _check_shape(shape: tuple[int, ...], most: int) -> None:
    """Refuse an array that is not the w rows of up to `most` pictures."""
    is_many = len(shape) == 3 and 1 < shape[0] <= most
    rows = shape[1] if is_many else math.prod(shape[:-1])
    if not 1 <= len(shape) <= 3 or shape[-1] > MAX_STORED_DIM or rows > MAX_STORED_ROWS:
        raise Refusal(f"up to {MAX_STORED_ROWS} rows of up to {MAX_STORED_DIM} numbers", f"found an array of {shape}")


def _tensor_of(source: BytesSource, value: object, most: int) -> NDArray[np.float32]:
    record = _find_tensor(value)
    if record is None:
        raise Refusal("a tensor of w rows, alone or under the key 'w'", "none is there")
    _check_shape(record.shape, most)
    return load_tensors(source, {"w": record}, Watch()).weights["w"]


def _find_tensor(value: object, depth: int = 0) -> TensorRecord | None:
    """Return the tensor of w rows: the value itself, under a usual key, or the only one; projectors nest one dict."""
    if isinstance(value, TensorRecord):
        return value
    if not isinstance(value, dict) or depth > 1:
        return None
    for key in _KEYS:
        record = value.get(key)
        if isinstance(record, TensorRecord):
            return record
    if len(value) == 1:
        return _find_tensor(next(iter(value.values())), depth + 1)
    return None


def _torch_pickle(shape: tuple[int, ...]) -> bytes:
    """Return the pickle of ``{"w": tensor}`` as torch.save writes it, with the tensor's data in storage ``0``."""

    def text(value: str) -> bytes:
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    def numbers(*values: int) -> bytes:
        return b"(" + b"".join(b"J" + struct.pack("<i", value) for value in values) + b"t"

    count = math.prod(shape)
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    size = b"J" + struct.pack("<i", count)
    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + size + b"tQ"
    rest = b"J\0\0\0\0" + numbers(*shape) + numbers(*strides) + b"\x89" + b"ccollections\nOrderedDict\n)R"
    return b"\x80\x02}" + text("w") + b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + rest + b"tRs."

"""Detection of the file format by content, never by name."""

from __future__ import annotations

from collections.abc import Callable

from gpu_backend.model.checkpoint import find_checkpoint, holds_tensors
from gpu_backend.model.found import Found
from gpu_backend.model.nvidia import find_network
from gpu_backend.model.pickled import Pickled, read_plain_pickle, read_torch_stream, read_torch_zip
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.safetensors_file import find_safetensors
from gpu_backend.model.safetensors_table import looks_like_safetensors
from gpu_backend.model.source import MODEL_FILE, FileSource, Source
from gpu_backend.model.tensorflow_pickle import find_tensorflow, holds_tensorflow
from gpu_backend.model.tuned_file import find_tuned
from gpu_backend.model.watch import Watch

_TORCH_STREAM = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
HEAD_BYTES = 512
"""Bytes at the start of a file that are examined to detect its format."""

_OTHER_FILES = (
    (b"\x89PNG\r\n", "this is a PNG picture"),
    (b"\xff\xd8\xff", "this is a JPEG picture"),
    (b"GIF8", "this is a GIF picture"),
    (b"\x93NUMPY", "this is a NumPy array (.npy)"),
    (b"\x1f\x8b", "this is a gzip archive"),
    (b"\x89HDF\r\n", "this is an HDF5 file"),
    (b"%PDF", "this is a PDF document"),
    (b"7z\xbc\xaf\x27\x1c", "this is a 7-Zip archive"),
    (b"Rar!", "this is a RAR archive"),
)


def find_model(source: FileSource, watch: Watch, requested: set[str]) -> Found:
    """Detect the format of a file and find its network; adds the names that it imports to `requested`.

    Raises
    ------
    Refusal
        If it is not a model file; the message says what it is, if known.
    """
    head = source.read(0, HEAD_BYTES)
    reader = pickle_reader(head)
    if reader is not None:
        return _find_in_pickle(source, reader(source, watch, requested))
    if looks_like_safetensors(head, source.size):
        tuned = find_tuned(source, lambda base: find_model(base, watch, requested))
        return find_safetensors(source) if tuned is None else tuned
    raise Refusal(MODEL_FILE, *_not_a_model(head))


def _find_in_pickle(source: Source, pickled: Pickled) -> Found:
    if holds_tensorflow(pickled.value):
        return find_tensorflow(source, pickled)
    if holds_tensors(pickled.value):
        return find_checkpoint(source, pickled)
    return find_network(source, pickled)


def kind_of_file(head: bytes, size: int) -> str:
    """Return the kind of file that starts with these bytes, as a phrase: "a pickle"."""
    if head.startswith(_TORCH_STREAM):
        return "an older torch file"
    if head.startswith(b"PK\x03\x04"):
        return "a zip archive"
    if pickle_reader(head) is not None:
        return f"a pickle of protocol {head[1]}"
    if looks_like_safetensors(head, size):
        return "a safetensors file"
    words, _ = _not_a_model(head)
    return words.removeprefix("this is ") if words.startswith("this is ") else "no known kind of file"


def pickle_reader(head: bytes) -> Callable[[Source, Watch, set[str]], Pickled] | None:
    """Return the reader of a pickle container that starts with these bytes; None for other files."""
    if head.startswith(_TORCH_STREAM):
        return read_torch_stream
    if head.startswith(b"PK\x03\x04"):
        return read_torch_zip
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return read_plain_pickle
    return None


def _not_a_model(head: bytes) -> tuple[str, str]:
    """Return what the file is, and what to do about it."""
    if not head:
        return "this file is empty", "download it again"
    if head.startswith(b"version https://git-lfs"):
        return "this is a Git LFS pointer, not the file it points to", "fetch the file with 'git lfs pull'"
    start = head.lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "this is a web page", "download the file itself"
    for magic, words in _OTHER_FILES:
        if head.startswith(magic):
            return words, ""
    try:
        text = head[:-3].decode("utf-8") if len(head) == HEAD_BYTES else head.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if all(char.isprintable() or char in "\r\n\t" for char in text):
        return "this is a text file", ""
    return "its first bytes are those of no known model file", ""

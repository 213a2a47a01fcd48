"""Compiled kernels on the disk, so that they are compiled once a machine.

A kernel is stored under the digest of everything that it depends on: source, flags, architecture and the compiler's
version. If it did not compile, the entry holds the compiler's reason, for reports; it is no verdict, and compiling is
tried again. A file is written in one atomic move and carries a checksum: a file that is damaged or foreign is treated
as missing and rewritten. No error of the disk gets out, since a kernel can always be compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from pathlib import Path

from gpu_backend.cuda.compiling.compiler import FLAGS, CompiledKernel, compiler_version
from gpu_backend.limits import LimitError, read_regular_file
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.whole_file import Disk, write_whole

MOST_NBYTES = 256 << 20
"""Of all kernels together; a model needs some two or three million bytes an architecture."""

_MAGIC = b"latentloom kernel 1\n"
_NAME = re.compile(r"[0-9a-f]{64}\.(kernel|failure)")

_FIELDS = ("registers", "spill_nbytes", "shared_nbytes")
_MOST_FILE_NBYTES = 16 << 20
_MOST_FAILURE_NBYTES = 4096


def cache_folder() -> Path:
    """The user's folder for everything here that can be made again."""
    # Imported here: only the GPU's path needs a place for kernels.
    import platformdirs

    return platformdirs.user_cache_path("latentloom", appauthor=False)


def kernel_key(recipe: KernelRecipe, architecture: str) -> str:
    """SHA-256 of what a compiled kernel depends on, in hexadecimal."""
    depends_on = [recipe.stem, recipe.source, dict(recipe.headers), list(FLAGS), architecture, compiler_version()]
    return hashlib.sha256(json.dumps(depends_on).encode()).hexdigest()


class KernelCache:
    """A folder of compiled kernels. Threads and processes may share it.

    Parameters
    ----------
    folder
        Made when the first kernel is kept; None for ``kernels`` in `cache_folder`.
    most_nbytes
        Of everything together: beyond it, what was not used for longest goes.
    """

    def __init__(self, folder: Path | None = None, *, most_nbytes: int = MOST_NBYTES, disk: Disk | None = None) -> None:
        self.folder = cache_folder() / "kernels" if folder is None else folder
        self._most_nbytes = most_nbytes
        self._disk = disk

    def has(self, key: str) -> bool:
        """Whether there is a file for a kernel."""
        return self._path(key).is_file()

    def read(self, key: str) -> CompiledKernel | None:
        """Return a kernel, or None if it is missing or not whole."""
        path = self._path(key)
        try:
            content = read_regular_file(path, _MOST_FILE_NBYTES, "a kernel")
        except (OSError, LimitError):
            return None
        kernel = _parse(content, key)
        if kernel is not None:
            with contextlib.suppress(OSError):
                os.utime(path)
        return kernel

    def keep(self, key: str, kernel: CompiledKernel) -> None:
        """Write a kernel, and let old ones go."""
        with contextlib.suppress(OSError):
            self._write(self._path(key), _format(key, kernel))
            self._failure_path(key).unlink(missing_ok=True)

    def failure(self, key: str) -> str:
        """Return why a kernel did not compile when it was tried last; empty if it did, or was not tried."""
        path = self._failure_path(key)
        try:
            if self.has(key):
                return ""
            content = read_regular_file(path, _MOST_FAILURE_NBYTES, "a failure")
        except (OSError, LimitError):
            return ""
        return " ".join(content.decode("utf-8", "replace").split())

    def keep_failure(self, key: str, why: str) -> None:
        """Write down in a phrase why a kernel did not compile, until it is kept."""
        with contextlib.suppress(OSError):
            self._write(self._failure_path(key), why.encode())

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.kernel"

    def _failure_path(self, key: str) -> Path:
        return self.folder / f"{key}.failure"

    def _write(self, path: Path, content: bytes) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, content, self._disk)
        self._trim()

    def _trim(self) -> None:
        kept: list[tuple[float, int, Path]] = []
        for entry in os.scandir(self.folder):
            with contextlib.suppress(OSError):
                facts = entry.stat()
                if _NAME.fullmatch(entry.name):
                    kept.append((facts.st_mtime, facts.st_size, Path(entry.path)))
        total = sum(size for _, size, _ in kept)
        for _, size, path in sorted(kept):
            if total <= self._most_nbytes:
                return
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
                total -= size


def _format(key: str, kernel: CompiledKernel) -> bytes:
    facts = {name: getattr(kernel, name) for name in _FIELDS}
    head = json.dumps({"key": key, **facts}).encode() + b"\n"
    body = head + kernel.cubin
    return _MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def _parse(content: bytes, key: str) -> CompiledKernel | None:
    magic, checksum, body = content[: len(_MAGIC)], content[len(_MAGIC) :][:64], content[len(_MAGIC) + 65 :]
    if magic != _MAGIC or hashlib.sha256(body).hexdigest().encode() != checksum:
        return None
    head, _, cubin = body.partition(b"\n")
    try:
        facts = json.loads(head)
        return CompiledKernel(cubin, **{name: int(facts[name]) for name in _FIELDS}) if facts["key"] == key else None
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None

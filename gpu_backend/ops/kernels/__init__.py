"""CUDA C++ sources of the kernels, one stem an operation. They include nothing, so that no toolkit is needed.

A line ``// part: NAME`` in a kernel stands for the text of ``parts/NAME.cuh``; each part is taken once.
"""

from __future__ import annotations

import functools
import re
from importlib import resources

_PART = re.compile(r"^// part: (\w+)$", re.MULTILINE)


@functools.cache
def kernel_source(stem: str, package: str = __name__) -> str:
    """Return the text of a kernel of a package with its parts put in.

    Raises
    ------
    ValueError
        If there is no such kernel or part.
    """
    return _with_parts(_text(f"{stem}.cu", package), package, set())


def _with_parts(text: str, package: str, taken: set[str]) -> str:
    def part(match: re.Match[str]) -> str:
        name = match[1]
        if name in taken:
            return ""
        taken.add(name)
        return _with_parts(_text(f"parts/{name}.cuh", package), package, taken)

    return _PART.sub(part, text)


def _text(path: str, package: str) -> str:
    file = resources.files(package).joinpath(path)
    if not file.is_file():
        raise ValueError(f"there is no kernel source {path!r}")
    return file.read_text("utf-8")

"""Imports pyqtgraph without the CUDA bindings that it loads for an unused widget.

Importing them takes 0.1 s. Import this module before any thread starts that needs the real bindings.
"""

from __future__ import annotations

import sys
from typing import Any

_KEPT_OUT = "cuda.bindings"


def _import_pyqtgraph() -> Any:
    modules: dict[str, Any] = sys.modules
    is_there = _KEPT_OUT in modules
    if not is_there:
        modules[_KEPT_OUT] = None  # makes its import fail as if it were not installed
    try:
        import pyqtgraph
    finally:
        if not is_there:
            del modules[_KEPT_OUT]
    return pyqtgraph


pyqtgraph: Any = _import_pyqtgraph()

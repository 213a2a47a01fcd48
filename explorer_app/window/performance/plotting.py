"""pyqtgraph, without the CUDA bindings that it imports for a widget that is not used here.

They would take a tenth of a second before the window is on the screen. Imported with the window, that is before any
thread begins that wants the real ones.
"""

from __future__ import annotations

import sys
from typing import Any

_KEPT_OUT = "cuda.bindings"


def _import_pyqtgraph() -> Any:
    modules: dict[str, Any] = sys.modules
    is_there = _KEPT_OUT in modules
    if not is_there:
        modules[_KEPT_OUT] = None  # an import of it fails now, as where it is not installed
    try:
        import pyqtgraph
    finally:
        if not is_there:
            del modules[_KEPT_OUT]
    return pyqtgraph


pyqtgraph: Any = _import_pyqtgraph()

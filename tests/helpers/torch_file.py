"""Files as torch writes them, in the zip format and in the older stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch


def save_torch(value: Any, path: Path, *, is_legacy: bool = False) -> Path:
    """Save a value with tensors in place of its NumPy arrays; return the path."""
    torch.save(as_tensors(value), path, _use_new_zipfile_serialization=not is_legacy)
    return path


def as_tensors(value: Any) -> Any:
    """Return the same value with a tensor for each array in its dicts and lists."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(value).reshape(value.shape).copy())
    if isinstance(value, dict):
        return type(value)((key, as_tensors(item)) for key, item in value.items())
    if isinstance(value, list):
        return [as_tensors(item) for item in value]
    return value

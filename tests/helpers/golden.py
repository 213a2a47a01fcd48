"""The golden networks: files, published arrays and tolerances."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gpu_backend import Model, read_model

GOLDEN = Path(__file__).resolve().parents[1] / "data" / "golden"
CASES = ("S1_sg2ada_skip_64", "S2_sg3repo_sg2_cond_128")


@dataclass(frozen=True)
class Golden:
    """One case, by name."""

    name: str

    @cached_property
    def entry(self) -> dict[str, Any]:
        cases: list[dict[str, Any]] = json.loads((GOLDEN / "manifest.json").read_text())["cases"]
        return next(item for item in cases if item["case"] == self.name)

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        with np.load(GOLDEN / f"{self.name}.npz") as file:
            return {name: file[name] for name in file.files}

    @cached_property
    def model(self) -> Model:
        return read_model(GOLDEN / f"{self.name}.pkl")

    @property
    def c(self) -> np.ndarray | None:
        return self.arrays.get("c")

    @property
    def mixed_rows(self) -> np.ndarray:
        """The rows of img_mix."""
        rows, k = self.arrays["w"], int(self.arrays["mix_k"])
        return np.concatenate([rows[:1, :k], rows[1:2, k:]], axis=1)


def to_bytes(image: np.ndarray) -> np.ndarray:
    """(..., channels, height, width) in the network's range -> the same as bytes, by the official rule, as int."""
    return np.clip(image * 127.5 + 128, 0, 255).astype(np.uint8).astype(int)

"""Options of a training: plain values, saved in every checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from gpu_backend.errors import RequestError

WORLD = "world"
"""The word for landscapes that are drawn on the fly; a folder of that name is ``./world``."""

PrecisionName = Literal["auto", "fp32", "bf16", "fp16"]

MAX_RESOLUTION = 2048
_NETWORK = ("resolution", "channel_base", "channel_max", "z_dim", "w_dim", "mapping_layers")


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """Options of a training; lengths are in thousands of real pictures shown (kimg).

    Attributes
    ----------
    data
        A folder of pictures, a zip of pictures, or ``"world"``: landscapes drawn on the fly.
    batch
        Pictures a step, over all GPUs.
    accumulate
        Parts that a GPU's share of the batch is computed in; more parts need less memory.
    gamma
        Weight of R1; None for 0.0002 resolution^2 / batch, the rule of Karras et al. 2020a.
    path_weight
        Weight of path-length regularisation; 0 for none.
    mixing
        Chance that a picture is made from two latents.
    ema_kimg
        Half-life of the moving average; None for batch * 10 / 32, as in Karras et al. 2020a.
    augment
        Adaptive augmentation of what the discriminator sees (Karras et al. 2020a), for small sets of pictures.
    mirror
        Also show pictures mirrored.
    graphs
        Capture updates as CUDA graphs where possible: on a GPU, unless in fp16.
    """

    data: str = WORLD
    resolution: int = 256
    channel_base: int = 16384
    channel_max: int = 512
    z_dim: int = 512
    w_dim: int = 512
    mapping_layers: int = 2
    batch: int = 32
    accumulate: int = 1
    kimg: float = 5000.0
    precision: PrecisionName = "auto"
    learning_rate: float = 0.0025
    gamma: float | None = None
    r1_every: int = 16
    path_weight: float = 2.0
    path_every: int = 4
    mixing: float = 0.9
    ema_kimg: float | None = None
    ema_ramp: float = 0.05
    augment: bool = False
    augment_target: float = 0.6
    augment_kimg: float = 500.0
    mirror: bool = False
    seed: int = 0
    log_kimg: float = 4.0
    snapshot_kimg: float = 100.0
    graphs: bool = True
    compile: bool = False

    @property
    def r1_weight(self) -> float:
        """Weight of R1."""
        return 0.0002 * self.resolution**2 / self.batch if self.gamma is None else self.gamma

    @property
    def ema_half_life(self) -> float:
        """Half-life of the moving average in pictures."""
        return 1000.0 * (self.batch * 10 / 32 if self.ema_kimg is None else self.ema_kimg)

    def checked(self, processes: int = 1) -> TrainOptions:
        """Return these options.

        Raises
        ------
        RequestError
            If one is out of range, or they do not go together.
        """
        side = self.resolution
        if not 8 <= side <= MAX_RESOLUTION or side & (side - 1):
            raise RequestError(f"The resolution must be a power of two from 8 to {MAX_RESOLUTION}, not {side}.")
        whole = ("channel_base", "channel_max", "z_dim", "w_dim", "mapping_layers", "batch", "accumulate")
        for name in (*whole, "r1_every", "path_every", "learning_rate", "kimg", "log_kimg", "snapshot_kimg"):
            self._expect(name, getattr(self, name) > 0, "more than 0")
        for name in ("gamma", "path_weight", "ema_kimg", "ema_ramp", "augment_kimg"):
            self._expect(name, getattr(self, name) is None or getattr(self, name) >= 0, "0 or more")
        self._expect("mixing", 0 <= self.mixing <= 1, "between 0 and 1")
        self._expect("augment_target", 0 < self.augment_target < 1, "between 0 and 1")
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            self._expect(name, not isinstance(value, float) or math.isfinite(value), "a finite number")
        parts = processes * self.accumulate
        if self.batch % parts:
            raise RequestError(
                f"The batch should divide into {parts} equal parts ({processes} processes, accumulation "
                f"{self.accumulate}), but it is {self.batch}."
            )
        return self

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    def differing_sizes(self, other: TrainOptions) -> tuple[str, ...]:
        """Return the names of network-size options that differ from another's; a resume cannot change them."""
        return tuple(name for name in _NETWORK if getattr(self, name) != getattr(other, name))

    def _expect(self, name: str, is_right: bool, wanted: str) -> None:
        if not is_right:
            raise RequestError(f"The option {name} must be {wanted}, not {getattr(self, name)}.")


def options_from(saved: Mapping[str, Any], given: Mapping[str, Any]) -> TrainOptions:
    """Return the options of a checkpoint, overridden by the given ones; unknown saved options are dropped."""
    known = {field.name for field in fields(TrainOptions)}
    return TrainOptions(**{**{name: value for name, value in saved.items() if name in known}, **given})


def check_data(data: str) -> None:
    """Raise RequestError if there is neither a folder nor a file of pictures in this place."""
    path = Path(data)
    if data == WORLD or path.is_dir() or path.is_file():
        return
    what = f"{data} is a pipe or a device" if path.exists() else f"there is no {data}"
    raise RequestError(f"A folder of pictures, a zip of pictures or the word world is expected, but {what}.")

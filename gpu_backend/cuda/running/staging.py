"""Inputs on their way to the device.

What a run is given is kept on the host, so that inputs that are left out stay what they were. Inputs that are adjacent
on the device form one range, and the changed part of a range is uploaded in one copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.schedule import Region
from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Copy:
    """Bytes to copy: from where among the held inputs, to where in the schedule's memory."""

    source: int
    target: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Inputs on the device from `target` on, without another region between them; on the host from `source` on."""

    target: int
    source: int
    names: tuple[str, ...]
    nbytes: int


class HeldInputs:
    """The values of all inputs as the last run got them.

    Starts with zeros, but `noise_gain` with ones: noise as the model stores it, at full strength; and inputs that are
    named in `starts` with that.
    """

    def __init__(self, regions: Iterable[Region], starts: Mapping[str, NDArray[Any]] | None = None) -> None:
        listed = sorted(regions, key=lambda region: region.offset)
        self._stretches = _stretches(listed)
        self.nbytes = max((stretch.source + stretch.nbytes for stretch in self._stretches), default=0)
        self.memory: NDArray[np.uint8] = np.zeros(self.nbytes, np.uint8)
        self._spans: dict[str, tuple[int, int]] = {}
        self._arrays: dict[str, NDArray[Any]] = {}
        by_name = {region.name: region for region in listed}
        for stretch in self._stretches:
            for name in stretch.names:
                region = by_name[name]
                start = stretch.source + region.offset - stretch.target
                end = start + region.nbytes
                self._spans[name] = (start, end)
                self._arrays[name] = self.memory[start:end].view(region.dtype).reshape(region.shape)
        self._words = {name: array.data for name, array in self._arrays.items() if array.dtype == np.uint64}
        self._unsent = set(self._arrays)
        self._copies: dict[frozenset[str], tuple[Copy, ...]] = {}
        """By the inputs that were taken: the frames of a gesture take the same."""
        if "noise_gain" in self._arrays:
            self._arrays["noise_gain"].fill(1)
        for name, values in (starts or {}).items():
            np.copyto(self._arrays[name], values)

    def take(self, inputs: Mapping[str, NDArray[Any]]) -> None:
        """Keep new values; nothing is kept if anything does not fit.

        Raises
        ------
        ValueError
            If an input is unknown or does not fit (a missing batch axis is repeated).
        """
        for name, array in inputs.items():
            target = self._arrays.get(name)
            if target is None:
                raise ValueError(f"the plan has the inputs {sorted(self._arrays)}, not {name!r}")
            if array.shape not in (target.shape, target.shape[1:]):
                raise ValueError(f"input {name!r} must have the shape {target.shape}, but has {array.shape}")
        for name, array in inputs.items():
            np.copyto(self._arrays[name], array)
            self._unsent.add(name)

    def put(self, name: str, number: int) -> None:
        """Keep a new value of an input of 64 bits that is there."""
        self._words[name][0] = number
        self._unsent.add(name)

    def copies(self) -> tuple[Copy, ...]:
        """What has to be copied, so that the device has what was taken since `sent`; at the beginning everything."""
        names = frozenset(self._unsent)
        found = self._copies.get(names)
        if found is None:
            found = self._copies[names] = self._copies_of(names)
        return found

    def sent(self) -> None:
        """The copies were enqueued."""
        self._unsent.clear()

    def _copies_of(self, names: frozenset[str]) -> tuple[Copy, ...]:
        copies = []
        for stretch in self._stretches:
            spans = [self._spans[name] for name in stretch.names if name in names]
            if spans:
                start, end = min(span[0] for span in spans), max(span[1] for span in spans)
                copies.append(Copy(start, stretch.target + start - stretch.source, end - start))
        return tuple(copies)


def _stretches(regions: list[Region]) -> tuple[_Stretch, ...]:
    """Group inputs of a list sorted by offset."""
    groups: list[list[Region]] = []
    follows = False
    for region in regions:
        if region.role != "input":
            follows = False
            continue
        if follows:
            groups[-1].append(region)
        else:
            groups.append([region])
        follows = True
    stretches, source = [], 0
    for group in groups:
        start = group[0].offset
        nbytes = group[-1].offset + group[-1].nbytes - start
        stretches.append(_Stretch(start, source, tuple(region.name for region in group), nbytes))
        source += -(-nbytes // 256) * 256
    return tuple(stretches)

"""How many pictures a second one device renders, without copying them to the host."""

from __future__ import annotations

import math

from gpu_backend.bench.ours import Ours
from gpu_backend.device import make_executor
from gpu_backend.model.model import Model
from gpu_backend.plan.plan import Precision


class DeviceRate:
    """A model on a device, bound once for one batch size; for a benchmark of several devices.

    Parameters
    ----------
    device
        As for `Renderer`.
    batch
        Pictures of a run; 1 on the CPU, which gains nothing from more.

    Raises
    ------
    DeviceError
        If the device cannot be used, or has too little memory.
    """

    def __init__(self, model: Model, device: str, precision: Precision, batch: int) -> None:
        self._executor, facts = make_executor(model, device, precision)
        self._batch = 1 if facts.id == "cpu" else batch
        self._ours = Ours(model, lambda _: self._executor, facts.precision, self._batch)
        try:
            self._ours.prepare()
        except BaseException:
            self.close()
            raise

    def render(self, pictures: int) -> int:
        """Render at least this many pictures, with two runs in flight; return the number rendered."""
        runs = math.ceil(pictures / self._batch)
        self._ours.times_ms(runs)
        return runs * self._batch

    def close(self) -> None:
        """Free the device. May be called twice."""
        self._ours.close()
        self._executor.close()

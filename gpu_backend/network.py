"""The two networks of a model on a device: plans for whatever batch and resolution is asked for, and what they hold.

Noise stays in a bound plan's buffers from run to run, so it is copied in only when it differs from what lies there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import DeviceError
from gpu_backend.model.model import Model
from gpu_backend.plan.executor import FRAME_OUTPUTS, BoundPlan, Executor, PendingRun
from gpu_backend.plan.mapping import build_mapping_plan
from gpu_backend.plan.noise_inputs import noise_gains, noise_source
from gpu_backend.plan.plan import Plan, PlanKey
from gpu_backend.plan.shelf import PlanShelf
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from gpu_backend.recipe import Noise


@dataclass(frozen=True, slots=True)
class _Held:
    """What lies in a bound plan's noise buffers; another binding of the same key starts anew."""

    bound: BoundPlan
    noise: Noise


class Network:
    """Mapping and synthesis of one model.

    The plans for one latent and one full picture are kept; others, drafts and batches, make room for each other.

    Parameters
    ----------
    model
        The model that the executor was made for.
    executor
        Owned by the network from now on.
    budget_nbytes
        Memory that all bound plans may take together.
    """

    def __init__(self, model: Model, executor: Executor, budget_nbytes: int) -> None:
        self._model = model
        self._spec = model.spec
        self._executor = executor
        self._shelf = PlanShelf(executor, self._build, budget_nbytes)
        self._held: dict[PlanKey, _Held] = {}
        self._noise_layers = tuple(layer for layer in model.spec.layers if layer.has_noise)
        self._is_closed = False
        self._shelf.fetch(self._mapping_key(1), keep=True)
        self._shelf.fetch(self.synthesis_key(1), keep=True)

    @property
    def nbytes(self) -> int:
        """Memory that the bound plans hold."""
        return self._shelf.nbytes

    @property
    def noise_layer_count(self) -> int:
        """How many layers take noise."""
        return len(self._noise_layers)

    def synthesis_key(self, batch: int, resolution: int | None = None) -> PlanKey:
        """Return the key of a synthesis plan; resolution None means full."""
        return PlanKey(
            self._model.facts.model_id,
            "synthesis",
            batch,
            resolution or self._spec.resolution,
            self._executor.precision,
        )

    def prepare(self, key: PlanKey) -> None:
        """Have the plan of a key ready, so that the first run need not build it."""
        self._fetch(key)

    def map(self, z: NDArray[np.float32], labels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Map a batch: z (batch, z_dim) and labels (batch, c_dim) to w (batch, w_dim), a new array."""
        inputs = {"z": z, "c": labels} if self._spec.mapping.c_dim else {"z": z}
        return np.array(self._fetch(self._mapping_key(z.shape[0])).run(inputs, outputs=("w",))["w"])

    def submit(
        self,
        key: PlanKey,
        ws: NDArray[np.float32],
        noise: Noise,
        *,
        outputs: tuple[str, ...] = FRAME_OUTPUTS,
        measure: bool = False,
        abandoned: Callable[[], bool] | None = None,
    ) -> PendingRun:
        """Start a synthesis plan on ws (batch, num_ws, w_dim).

        Raises CancelledError, here or while waiting, once `abandoned` says yes.
        """
        bound = self._fetch(key)
        inputs = {"ws": ws, **self._noise_news(key, bound, noise)}
        if len(inputs) > 1:
            self._held.pop(key, None)  # nobody knows what lies there if the run does not end
        run = bound.submit(inputs, outputs=outputs, measure=measure, abandoned=abandoned)
        self._held[key] = _Held(bound, noise)
        return run

    def observe(self, ws: NDArray[np.float32], noise: Noise) -> Mapping[str, NDArray[np.float32]]:
        """Run once on ws (1, num_ws, w_dim) and return what each layer gave, (1, channels, height, width)."""
        key = self.synthesis_key(1)
        bound = self._fetch(key)
        observed = bound.observe({"ws": ws, **self._noise_news(key, bound, noise)})
        self._held[key] = _Held(bound, noise)
        return observed

    def close(self) -> None:
        """Close the plans and the executor. May be called twice."""
        self._is_closed = True
        self._held.clear()
        self._shelf.close()
        self._executor.close()

    def _noise_news(self, key: PlanKey, bound: BoundPlan, noise: Noise) -> dict[str, NDArray[Any]]:
        """Return the noise inputs that differ from what the plan holds."""
        held = self._held.get(key)
        before = held.noise if held is not None and held.bound is bound else None
        if before == noise or not self._noise_layers:
            return {}
        layer_count = sum(layer.resolution <= key.resolution for layer in self._noise_layers)
        if not layer_count:
            return {}
        news: dict[str, NDArray[Any]] = {"noise_gain": noise_gains(noise, layer_count)}
        source = noise_source(noise)
        if before is None or not np.array_equal(source, noise_source(before)):
            news["noise_source"] = source
        return news

    def _fetch(self, key: PlanKey) -> BoundPlan:
        if self._is_closed:
            raise DeviceError("The renderer must be open, but it was closed; open the model again.")
        bound = self._shelf.fetch(key)
        if len(self._held) > len(self._shelf.keys):
            self._held = {key: held for key, held in self._held.items() if key in self._shelf.keys}
        return bound

    def _mapping_key(self, batch: int) -> PlanKey:
        return PlanKey(self._model.facts.model_id, "mapping", batch, precision=self._executor.precision)

    def _build(self, key: PlanKey) -> Plan:
        if key.part == "mapping":
            return build_mapping_plan(self._spec, key.model_id, batch=key.batch, precision=key.precision)
        return build_synthesis_plan(
            self._spec, key.model_id, batch=key.batch, resolution=key.resolution, precision=key.precision
        )

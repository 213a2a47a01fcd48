"""Brings a job's model to the workers that lack it: once to a machine, and to several machines together."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from explorer_app.farm.errors import StationError, WorkerLostError
from explorer_app.farm.farm_model import FarmModel
from explorer_app.farm.link import FarmLink
from explorer_app.session.model_places import MODEL_SUFFIXES

_GATHERING_S = 0.2
"""Workers whose requests come within this time get it together."""


_OTHER_SUFFIX = ".pkl"
"""For a file with an unusual suffix, which no worker takes; `gpu_backend.changed_model` knows it too."""


class ModelDelivery:
    """Copies of one model to workers. Used in one event loop."""

    def __init__(self, model: FarmModel) -> None:
        self._model = model
        self._wanting: dict[str, str] = {}
        """Address of a worker that lacks the model, by the identity of its store."""
        self._upload = asyncio.Lock()
        self._brought: dict[str, int] = {}
        """Number of the last upload to a store, by its identity."""
        self.uploads = 0
        """How many ended well."""

    async def bring(self, link: FarmLink, address: str, *, since: int) -> None:
        """Return when the model has come to a worker, or failed to.

        Parameters
        ----------
        since
            Value of `uploads` before the model was requested from the worker: a later upload to the same store also
            serves.

        Raises
        ------
        WorkerLostError, StationError
            If this worker left or failed; of another one that gets the model at the same time, nothing is raised.
        """
        identity: str = await link.call(address, "identity")
        self._wanting[identity] = address
        await asyncio.sleep(_GATHERING_S)
        async with self._upload:
            if identity not in self._wanting:
                return  # it came with another worker's
            if self._brought.get(identity, 0) > since:
                del self._wanting[identity]  # the upload finished during this request
                return
            group, self._wanting = self._wanting, {}
            try:
                await self._upload_to(link, group)
            except (WorkerLostError, StationError):
                alone = {identity: address}
                if group == alone:
                    raise
                await self._upload_to(link, alone)  # another worker may have failed; the rest ask again

    async def _upload_to(self, link: FarmLink, group: Mapping[str, str]) -> None:
        """Bring the model to stores: the address of a worker by the identity of its store."""
        for path, model_id in self._model.files:
            await link.bring_model(path, model_id, _kept_suffix(path), list(group.values()))
        self.uploads += 1
        self._brought |= dict.fromkeys(group, self.uploads)


def _kept_suffix(path: Path) -> str:
    """Return the suffix under which workers keep a model."""
    suffix = path.suffix.lower()
    return suffix if suffix in MODEL_SUFFIXES else _OTHER_SUFFIX

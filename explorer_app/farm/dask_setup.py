"""How Dask is set up here: `set_up_dask` comes before the first import of `distributed`."""

from __future__ import annotations

import logging

from explorer_app.farm.errors import require_farm_extra

WORKER_TTL_S = 20
"""A worker that sends no heartbeat for so long is removed; noticed within half as much again."""

CONNECT_S = 10
"""Patience with a scheduler or worker that does not answer."""

_SETTINGS = {
    "logging": {"version": 1, "disable_existing_loggers": False},  # otherwise it adds handlers of its own to stderr
    "distributed.scheduler.worker-ttl": f"{WORKER_TTL_S}s",
    "distributed.scheduler.allowed-failures": 0,  # jobs decide where a chunk is tried again
    "distributed.scheduler.work-stealing": False,  # chunks are pinned to workers
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.target": False,  # what a worker holds is a model and a few chunks
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.tick.limit": "60s",
    "distributed.comm.timeouts.connect": f"{CONNECT_S}s",
    "distributed.comm.compression": False,  # chunks are compressed pictures
}


def set_up_dask() -> None:
    """Set Dask's configuration for this process and silence its loggers. May be called again.

    Dask logs lost connections and dead workers as warnings and errors. Jobs report both in their own words, so Dask's
    records are kept only if debug records are.

    Raises
    ------
    FarmError
        If the extra `farm` is missing.
    """
    require_farm_extra()
    import dask

    dask.config.set(_SETTINGS)
    wanted = logging.DEBUG if logging.getLogger("explorer_app").isEnabledFor(logging.DEBUG) else logging.CRITICAL + 1
    for name in ("distributed", "tornado"):
        logging.getLogger(name).setLevel(wanted)

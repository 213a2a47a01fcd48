"""A farm: one sequence rendered by many processes, one for each GPU, here and on other machines, over Dask. No Qt.

::

    latentloom farm up     LocalFarm: child processes, restarted when they die               local_farm.py
      scheduler process    Dask's scheduler and a board of jobs                              scheduler.py
      worker process       Dask's worker around a Station: renderer, models, encoders        worker.py, station.py
    FarmJob                claims the folder, writes the manifest                            job.py
      Foreman              hands out chunks of frames, takes their files                     foreman.py, dispatch.py
      FarmLink             a job's requests to a farm: members, calls, pieces of a model     link.py

A chunk is a job's recipe (its manifest, by SHA-256), the model's SHA-256 and a range of frames. Workers keep both, and
skip frames that are stored already, so a chunk may run twice: after a kill, or beside a worker that was only frozen.

Dask's scheduler runs code that its clients send, so a farm listens on this machine alone or takes TLS with client
certificates from its own authority (`keys.py`, `address.py`).
"""

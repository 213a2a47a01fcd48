"""Two processes that train together on the processor, started as torchrun starts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch.distributed import TCPStore  # type: ignore[attr-defined] # made at run time

_ROOT = Path(__file__).parents[3]
_RUN = "import sys; from tests.gpu_backend.training.process_pair import train_one; train_one(*sys.argv[1:])"
_LIMIT_S = 100.0


class ProcessPair:
    """Both processes. Like torchrun, the test holds the store where they meet.

    Parameters
    ----------
    event, batch
        What happens in the second process when it asks for that batch: ``interrupt`` (a Ctrl-C), ``exit``, or
        ``compile`` (minutes of work).
    """

    def __init__(self, out: Path, event: str, batch: int) -> None:
        self._store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self._store.port)}
        shared = {**os.environ, **meeting, "TORCHELASTIC_USE_AGENT_STORE": "True", "WORLD_SIZE": "2"}
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-c", _RUN, str(out), event, str(batch)],
                env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"},
                cwd=_ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]

    def __enter__(self) -> ProcessPair:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()

    def wait_for(self, line: str) -> None:
        """Wait until both have printed a line."""
        for process in self._processes:
            assert process.stdout is not None
            while (came := process.stdout.readline()) and came != f"{line}\n":
                pass
            assert came, process.communicate()

    def interrupt(self) -> None:
        """Send Ctrl-C to both, as torchrun does."""
        for process in self._processes:
            process.send_signal(signal.SIGINT)

    def end(self) -> list[tuple[int, str, str]]:
        """Wait for the end of both; return status, output and errors of each.

        Raises
        ------
        subprocess.TimeoutExpired
            If one hangs.
        """
        texts = [process.communicate(timeout=_LIMIT_S) for process in self._processes]
        return [(process.returncode, *text) for process, text in zip(self._processes, texts, strict=True)]


def train_one(out: str, event: str, batch: str) -> None:
    """What each of the processes does: train, and print how that ended."""
    import torch

    from gpu_backend.errors import LoomError
    from gpu_backend.training import loop
    from gpu_backend.training.request import TrainRequest
    from tests.gpu_backend.training.fake_source import SIZES, FakeSource

    torch.set_num_threads(1)
    setattr(loop, "plots_problem", lambda: "not here")  # noqa: B010 - its own import; drawing takes longer than all the rest
    rank = int(os.environ["RANK"])

    def at_batch(number: int) -> None:
        sys.stdout.write(f"batch {number}\n")
        sys.stdout.flush()
        if rank == 1 and number == int(batch):
            _EVENTS[event]()

    request = TrainRequest(Path(out), {**SIZES, "resolution": 8, "kimg": 0.4}, None, "cpu")
    try:
        outcome = loop.train(request, _ignored, _ignored, lambda _, side, __: FakeSource(side, at_batch))
    except LoomError as error:
        sys.stdout.write(type(error).__name__)
        sys.exit(2)
    sys.stdout.write(json.dumps([outcome.was_stopped, outcome.pictures_seen]))


def last_lines(ends: Sequence[tuple[int, str, str]]) -> list[Any]:
    """Return what the processes printed last."""
    return [output.splitlines()[-1] for _, output, _ in ends]


def _ignored(_: object) -> None:
    pass


_EVENTS: dict[str, Callable[[], object]] = {
    "interrupt": lambda: signal.raise_signal(signal.SIGINT),
    "exit": lambda: os._exit(7),
    "compile": lambda: time.sleep(600),
}

"""Two processes that train together on the processor, with the environment that torchrun gives them.

They are forked from a server process that has imported torch: importing it takes longer than all that they do.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TextIO

from torch.distributed import TCPStore  # type: ignore[attr-defined] # made at run time

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["torch._dynamo", "gpu_backend.training.loop", "tests.gpu_backend.training.fake_source"])
_LIMIT_S = 600.0


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
        shared = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(self._store.port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "WORLD_SIZE": "2",
        }
        self._texts: list[tuple[TextIO, TextIO]] = []
        self._processes = []
        for rank in range(2):
            environment = {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            (output, its_output), (errors, its_errors) = _FORKS.Pipe(duplex=False), _FORKS.Pipe(duplex=False)
            process = _FORKS.Process(
                target=_train_forked, args=(its_output, its_errors, environment, str(out), event, batch)
            )
            process.start()
            its_output.close()
            its_errors.close()
            self._processes.append(process)
            self._texts.append((_text_of(output, "r"), _text_of(errors, "r")))

    def __enter__(self) -> ProcessPair:
        return self

    def __exit__(self, *_: object) -> None:
        for process, texts in zip(self._processes, self._texts, strict=True):
            process.kill()
            process.join()
            process.close()
            for text in texts:
                text.close()

    def wait_for(self, line: str) -> None:
        """Wait until both have printed a line."""
        for output, errors in self._texts:
            while (came := output.readline()) and came != f"{line}\n":
                pass
            assert came, errors.read()

    def interrupt(self) -> None:
        """Send Ctrl-C to both, as torchrun does."""
        for process in self._processes:
            assert process.pid is not None
            os.kill(process.pid, signal.SIGINT)

    def end(self) -> list[tuple[int | None, str, str]]:
        """Wait for the end of both; return status, output and errors of each. The status of one that hangs is None."""
        for process in self._processes:
            process.join(_LIMIT_S)
        if any(process.exitcode is None for process in self._processes):
            return [(process.exitcode, "", "hangs") for process in self._processes]
        pairs = zip(self._processes, self._texts, strict=True)
        return [(process.exitcode, output.read(), errors.read()) for process, (output, errors) in pairs]


def _text_of(connection: Connection, mode: str) -> TextIO:
    """Take a pipe over as a text."""
    with connection:
        return open(os.dup(connection.fileno()), mode, encoding="utf-8")  # type: ignore[return-value] # a text by its mode


def _train_forked(
    output: Connection, errors: Connection, environment: Mapping[str, str], out: str, event: str, batch: int
) -> None:
    """Be one of the processes."""
    sys.stdout, sys.stderr = _text_of(output, "w"), _text_of(errors, "w")
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    train_one(out, event, batch)
    sys.stdout.flush()


def train_one(out: str, event: str, batch: int) -> None:
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
        if rank == 1 and number == batch:
            _EVENTS[event]()

    request = TrainRequest(Path(out), {**SIZES, "resolution": 8, "kimg": 0.4}, None, "cpu")
    try:
        outcome = loop.train(request, _ignored, _ignored, lambda _, side, __: FakeSource(side, at_batch))
    except LoomError as error:
        sys.stdout.write(type(error).__name__)
        sys.stdout.flush()
        sys.exit(2)
    sys.stdout.write(json.dumps([outcome.was_stopped, outcome.pictures_seen]))


def last_lines(ends: Sequence[tuple[int | None, str, str]]) -> list[Any]:
    """Return what the processes printed last."""
    return [output.splitlines()[-1] for _, output, _ in ends]


def _ignored(_: object) -> None:
    pass


_EVENTS: dict[str, Callable[[], object]] = {
    "interrupt": lambda: signal.raise_signal(signal.SIGINT),
    "exit": lambda: os._exit(7),
    "compile": lambda: time.sleep(600),
}

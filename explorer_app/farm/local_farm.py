"""The processes of a farm on this machine: a scheduler and a worker for each GPU, started again when they die."""

from __future__ import annotations

import logging
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from types import TracebackType

import gpu_backend
from explorer_app.exporting.writers import usual_threads
from explorer_app.farm.address import FarmAddress, bracketed
from explorer_app.farm.errors import FarmError, require_farm_extra
from explorer_app.farm.keys import make_keys
from explorer_app.farm.temporary_folder import new_temporary_folder
from explorer_app.farm.worker import worker_name
from explorer_app.logs import log_path
from explorer_app.rendering.renderer_like import PROCESSOR_ID
from gpu_backend import dataclass

_START_S = 60.0
_END_S = 15.0
_LOOK_S = 0.25
_FIRST_DELAY_S, _LAST_DELAY_S = 1.0, 30.0
_STEADY_S = 60.0
"""A process that lived for so long starts again after the shortest delay."""
_LOG_NBYTES = 1 << 20

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CrewMember:
    """A worker process of this machine.

    Attributes
    ----------
    name
        Unique on this machine: "gpu0", "cpu1".
    visible
        What CUDA_VISIBLE_DEVICES says in its process; None for a worker on the CPU.
    threads
        Pictures that it encodes at a time.
    cores
        Threads that its CPU renderer may use; 0 for torch's own choice.
    """

    name: str
    visible: str | None
    threads: int
    cores: int = 0

    @property
    def device(self) -> str:
        """The device that its process sees."""
        return "cpu" if self.visible is None else "cuda:0"


def crew_of_this_machine(gpus: Sequence[int] | None, cpu_workers: int) -> tuple[CrewMember, ...]:
    """Return the workers for GPUs of this machine, by number, and a number of workers on the CPU.

    `gpus` None means all usable ones, and one worker on the CPU if there is no GPU and none was requested.

    Raises
    ------
    FarmError
        If a GPU is not there.
    """
    found: list[int] = []
    if gpus is None or gpus:
        devices = gpu_backend.find_devices()
        found = [int(device.id.partition(":")[2]) for device in devices if device.id != PROCESSOR_ID]
    chosen = found if gpus is None else list(dict.fromkeys(gpus))
    for number in chosen:
        if number not in found:
            there = f"GPUs {', '.join(map(str, found))}" if found else "no GPU that can be used"
            raise FarmError(f"This machine has {there}, but --gpus asks for {number}.")
    if gpus is None and not chosen and not cpu_workers:
        cpu_workers = 1
    count = len(chosen) + cpu_workers
    if not count:
        raise FarmError("A farm needs at least one worker; ask for some with --gpus or --cpu-workers.")
    cores = usual_threads() + 1
    threads = max(1, cores // count - (1 if cores > count else 0))
    names = os.environ.get("CUDA_VISIBLE_DEVICES")
    visible = [name.strip() for name in names.split(",")] if names else None
    return (
        *(
            CrewMember(f"gpu{number}", str(number) if visible is None else visible[number], threads)
            for number in chosen
        ),
        *(CrewMember(f"cpu{number}", None, threads, max(1, cores // count)) for number in range(cpu_workers)),
    )


@dataclass(slots=True)
class _Child:
    """A process that is kept running."""

    name: str
    words: list[str]
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    started_s: float = 0.0
    delay_s: float = _FIRST_DELAY_S
    next_s: float = 0.0
    starts: int = 0
    lines: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)


class LocalFarm:
    """Processes of a farm on this machine; a context manager.

    Parameters
    ----------
    address
        Where the scheduler listens, or is if this machine only joins; None for a private farm, which takes a free port
        of this machine and makes keys that end with it.
    crew
        The workers.
    keys_path
        The file that holds the keys of `address`.
    runs_scheduler
        Whether the scheduler is one of the processes.
    say
        Gets a sentence about what happens to them.
    """

    def __init__(
        self,
        address: FarmAddress | None,
        crew: Sequence[CrewMember],
        *,
        keys_path: Path | None = None,
        runs_scheduler: bool = True,
        say: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self._address = address
        self._crew = tuple(crew)
        self._keys_path = keys_path
        self._runs_scheduler = runs_scheduler
        self._say = say
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._children: list[_Child] = []
        self._stop = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="farm-keeper", daemon=True)

    @property
    def address(self) -> FarmAddress:
        """Where the scheduler is, once started."""
        assert self._address is not None
        return self._address

    @property
    def processes(self) -> Mapping[str, int]:
        """Process number of each child that runs, by name; "scheduler" is the scheduler's."""
        return {
            child.name: child.process.pid
            for child in self._children
            if child.process is not None and child.process.poll() is None
        }

    @property
    def starts(self) -> Mapping[str, int]:
        """How often each child was started."""
        return {child.name: child.starts for child in self._children}

    def __enter__(self) -> LocalFarm:
        """Start the processes, and wait until the scheduler listens.

        Raises
        ------
        FarmError
            If the extra is missing, or the scheduler cannot listen.
        """
        require_farm_extra()
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes: they give up what they do, and are killed if they do not. May be called twice."""
        self._stop.set()
        if self._keeper.ident is not None:
            self._keeper.join()
        children, self._children = self._children, []
        for child in children:
            if child.process is not None and child.process.stdin is not None:
                with suppress(OSError):
                    child.process.stdin.close()
        end_s = time.monotonic() + _END_S
        for child in children:
            if child.process is not None:
                with suppress(subprocess.TimeoutExpired):
                    child.process.wait(max(0.1, end_s - time.monotonic()))
                if child.process.poll() is None:
                    child.process.kill()
                    child.process.wait()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _start(self) -> None:
        if self._address is None:
            self._folder = new_temporary_folder()
            self._keys_path = Path(self._folder.name) / "farm.pem"
            self._address = FarmAddress("127.0.0.1", 0, make_keys(self._keys_path))
        if self._runs_scheduler:
            self._start_scheduler(self._address)
        where = ["--farm", self._address.url, *self._keys_words()]
        for member in self._crew:
            words = ["worker", *where, "--device", member.device, "--name", worker_name(member.name)]
            environment = {"CUDA_VISIBLE_DEVICES": "" if member.visible is None else member.visible}
            if member.cores:
                environment["OMP_NUM_THREADS"] = str(member.cores)
            child = _Child(member.name, [*words, "--threads", str(member.threads)], environment)
            self._children.append(child)
            self._spawn(child)
        self._keeper.start()

    def _start_scheduler(self, address: FarmAddress) -> None:
        scheme = "tcp://" if address.keys is None else "tls://"
        place = f"{scheme}{bracketed(address.host)}:"
        words = ["scheduler", "--address", f"{place}{address.port}", *self._keys_words()]
        child = _Child("scheduler", words, {"CUDA_VISIBLE_DEVICES": ""})
        self._children.append(child)
        self._spawn(child)
        line = self._line_of(child)
        port = int(line.rpartition(":")[2])
        self._address = FarmAddress(address.host, port, address.keys)
        child.words[2] = f"{place}{port}"  # the same port when it is started again

    def _line_of(self, child: _Child) -> str:
        """Return the line by which a scheduler says where it listens."""
        assert child.process is not None
        end_s = time.monotonic() + _START_S
        while time.monotonic() < end_s:
            with suppress(queue.Empty):
                return child.lines.get(timeout=_LOOK_S)
            if child.process.poll() is not None:
                break
        last = _last_line(self._log_file(child.name))
        raise FarmError(last or "The scheduler of the farm did not start.", f"See {self._log_file(child.name)}.")

    def _keys_words(self) -> list[str]:
        return [] if self._keys_path is None else ["--keys", str(self._keys_path)]

    def _spawn(self, child: _Child) -> None:
        path = self._log_file(child.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        is_large = path.exists() and path.stat().st_size > _LOG_NBYTES
        with path.open("wb" if is_large else "ab") as log:
            child.process = subprocess.Popen(
                [sys.executable, "-m", "explorer_app", "farm", *child.words, "--watch-stdin"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **child.environment},
                start_new_session=True,  # so that Ctrl-C comes to us alone
            )
        child.started_s = time.monotonic()
        child.starts += 1
        reader = threading.Thread(
            target=_read_lines, args=(child.process, child.lines), name="farm-reader", daemon=True
        )
        reader.start()

    def _log_file(self, name: str) -> Path:
        private = "" if self._folder is None else "private-"
        return log_path().with_name(f"farm-{private}{name}.log")

    def _keep(self) -> None:
        """Start again what ends, later and later if it ends at once."""
        while not self._stop.wait(_LOOK_S):
            now_s = time.monotonic()
            for child in self._children:
                if child.process is not None and (status := child.process.poll()) is not None:
                    if now_s - child.started_s > _STEADY_S:
                        child.delay_s = _FIRST_DELAY_S
                    _delay(child, now_s)
                    _close_pipes(child.process)
                    child.process = None
                    self._say(f"{_called(child.name)} ended ({_status_text(status)}) and is started again.")
                    _log.info("%s ended with status %d.", child.name, status)
                elif child.process is None and now_s >= child.next_s:
                    try:
                        self._spawn(child)
                    except OSError as error:  # memory, descriptors or the disk of the log may come back
                        _delay(child, now_s)
                        self._say(f"{_called(child.name)} could not be started again ({error.strerror}).")
                        _log.info("%s could not be started again: %s", child.name, error)


def _delay(child: _Child, now_s: float) -> None:
    """Let a child start after its delay, and later the next time."""
    child.next_s = now_s + child.delay_s
    child.delay_s = min(2 * child.delay_s, _LAST_DELAY_S)


def _called(name: str) -> str:
    return "The scheduler" if name == "scheduler" else f"Worker {name}"


def _status_text(status: int) -> str:
    if status < 0:
        with suppress(ValueError):
            return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"


def _read_lines(process: subprocess.Popen[bytes], lines: queue.SimpleQueue[str]) -> None:
    assert process.stdout is not None
    with process.stdout as stream:
        for line in stream:
            lines.put(line.decode("utf-8", "replace").strip())


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()


def _last_line(path: Path) -> str:
    """Return the sentence with which a child ended; empty if it said none."""
    try:
        lines = path.read_text("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return next((line.partition(": ")[2] for line in reversed(lines) if line.startswith("latentloom farm: ")), "")

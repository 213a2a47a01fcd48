"""Warm-up, timing and handling of failures.

On a GPU, contenders run in sequence: their runs are queued, each between a pair of events. On the processor
they alternate, so that other load of the machine affects all of them equally.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from gpu_backend.bench.contender import CannotRunError, Contender
from gpu_backend.bench.report import Measurement, Skipped
from gpu_backend.errors import DeviceMemoryError, LoomError

T = TypeVar("T")

SPENT = "the time of --budget-s was spent"
STOPPED = "the run was stopped"

ENERGY_S = 1.0
"""How long the energy is measured: drivers update the counter every 20 to 100 ms."""

_ENERGY_STEP_MS = 50.0
"""About as long are the runs between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Amount of work: warm-up until both its numbers are reached, then `runs` unless they take longer than `limit_s`.

    Attributes
    ----------
    warm_up, warm_up_s
        Runs and seconds of warm-up; a slow contender stops warming up after `limit_s` / 2, but not before the third
        run, since compilers that record a graph do so in the second.
    least
        Timed runs that even the slowest gets.
    rest_s
        Pause before each turn on the processor: torch's own threads stay awake for some milliseconds after their work.
    """

    runs: int = 50
    warm_up: int = 10
    warm_up_s: float = 0.3
    limit_s: float = 4.0
    least: int = 7
    rest_s: float = 0.0


class Budget:
    """Seconds after which no new work starts."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    @property
    def is_spent(self) -> bool:
        """Whether the time is over."""
        return self._clock() >= self._end

    def share(self, parts: int) -> Budget:
        """Return a budget of one of so many equal parts of the seconds that are left."""
        return Budget(max(0.0, self._end - self._clock()) / parts, self._clock)


class Stopwatch:
    """Measures contenders and stores the results. After Ctrl-C no new work starts, and finished results are kept.

    Parameters
    ----------
    effort
        How much is run.
    budget
        Contenders that come after its end are named as skipped.
    say
        Called with what is being measured.
    joules
        Energy that the device has used so far; None where it is unknown. Called only if contenders do not alternate.
    """

    def __init__(
        self,
        effort: Effort,
        budget: Budget,
        say: Callable[[str], None],
        joules: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._effort = effort
        self._budget = budget
        self._say = say
        self._joules = joules
        self.measurements: list[Measurement] = []
        self.skipped: list[Skipped] = []
        self._is_stopped = False

    def measure(self, contenders: Sequence[Contender], *, in_turns: bool) -> None:
        """Measure some contenders, closing each afterwards."""
        for together in [contenders] if in_turns else [[contender] for contender in contenders]:
            work = partial(self._measure, together, queued=not in_turns)
            self.attempt(work, [contender.case.title for contender in together])

    def attempt(self, work: Callable[[], T], titles: Sequence[str]) -> T | None:
        """Run the measurement of these titles; report them and return None if it fails or Ctrl-C has stopped it."""
        if self._is_stopped:
            self.skipped.extend(Skipped(title, STOPPED) for title in titles)
            return None
        done = len(self.skipped)
        try:
            return work()
        except KeyboardInterrupt:
            self._is_stopped = True
            named = {item.what for item in self.skipped[done:]}
            self.skipped.extend(Skipped(title, STOPPED) for title in titles if title not in named)
        except Exception as error:  # a failure is reported; the rest is still measured
            self.skipped.extend(Skipped(title, why(error)) for title in titles)
        return None

    def _measure(self, contenders: Sequence[Contender], *, queued: bool) -> None:
        ready: list[_TimedContender] = []
        try:
            for contender in contenders:
                if (entrant := self._enter(contender)) is not None:
                    ready.append(entrant)
            for entrant in ready:
                if queued:
                    self._guarded(entrant, entrant.estimate_runs(self._effort))
                    entrant.measure_energy(self._joules)
            while not queued and (running := [entrant for entrant in ready if entrant.wants_more(self._effort)]):
                for entrant in running:
                    time.sleep(self._effort.rest_s)
                    self._guarded(entrant, 1)
            self.measurements.extend(entrant.result() for entrant in ready if entrant.times_ms)
        finally:
            for entrant in ready:
                entrant.contender.close()

    def _enter(self, contender: Contender) -> _TimedContender | None:
        """Prepare and warm up; None if that fails or there is no time."""
        title = contender.case.title
        if self._budget.is_spent:
            self.skipped.append(Skipped(title, SPENT))
            return None
        self._say(title)
        start = time.monotonic()
        try:
            contender.prepare()
            entrant = _TimedContender(contender, time.monotonic() - start)
            entrant.warm_up(self._effort)
            contender.settle()
        except Exception as error:  # a peer may fail in any way; that it did is a result
            self._fail(contender, error)
            return None
        except BaseException:
            contender.close()
            raise
        return entrant

    def _guarded(self, entrant: _TimedContender, runs: int) -> None:
        try:
            entrant.times_ms.extend(entrant.contender.times_ms(runs))
        except Exception as error:
            entrant.times_ms.clear()
            entrant.failed = True
            self._fail(entrant.contender, error)

    def _fail(self, contender: Contender, error: Exception) -> None:
        contender.close()
        self.skipped.append(Skipped(contender.case.title, why(error)))


class _TimedContender:
    """A contender that is being measured."""

    def __init__(self, contender: Contender, prepare_s: float) -> None:
        self.contender = contender
        self.prepare_s = prepare_s
        self.times_ms: list[float] = []
        self.warm_ups = 0
        self.estimate_ms = 0.0
        self.failed = False
        self.image_j: float | None = None

    def warm_up(self, effort: Effort) -> None:
        start = time.monotonic()
        while True:
            before = time.monotonic()
            self.contender.times_ms(1)
            now = time.monotonic()
            self.warm_ups += 1
            self.estimate_ms = (now - before) * 1e3
            done = self.warm_ups >= effort.warm_up and now - start >= effort.warm_up_s
            if done or (self.warm_ups >= 3 and now - start >= effort.limit_s / 2):
                return

    def estimate_runs(self, effort: Effort) -> int:
        """Number of runs that are requested and fit the time."""
        fitting = int(effort.limit_s * 1e3 / max(self.estimate_ms, 1e-6))
        return min(effort.runs, max(fitting, effort.least))

    def wants_more(self, effort: Effort) -> bool:
        """Whether more runs are needed."""
        spent_s = sum(self.times_ms) / 1e3
        enough = len(self.times_ms) >= effort.runs or (len(self.times_ms) >= effort.least and spent_s > effort.limit_s)
        return not enough and not self.failed

    def measure_energy(self, joules: Callable[[], float | None]) -> None:
        """Run for `ENERGY_S` more, if the energy is known and nothing failed; a failure leaves it unknown."""
        if not self.times_ms or (before := joules()) is None:
            return
        at_once = max(2, int(_ENERGY_STEP_MS / statistics.median(self.times_ms)))
        end, images = time.monotonic() + ENERGY_S, 0
        try:
            while not images or time.monotonic() < end:
                images += self.contender.case.batch * len(self.contender.times_ms(at_once))
        except Exception:  # the times exist already and do not depend on what fails now
            return
        after = joules()
        self.image_j = None if after is None else (after - before) / images

    def result(self) -> Measurement:
        """The result."""
        case = self.contender.case
        return Measurement(
            case.who,
            case.precision,
            case.batch,
            latency_ms=statistics.median(self.times_ms),
            least_ms=min(self.times_ms),
            nbytes=self.contender.nbytes,
            warm_up=self.warm_ups,
            runs=len(self.times_ms),
            prepare_s=self.prepare_s,
            image_j=self.image_j,
        )


def why(error: Exception) -> str:
    """Summarise an error in one line."""
    if isinstance(error, CannotRunError):
        return str(error)
    text = str(error)
    if isinstance(error, (DeviceMemoryError, MemoryError)) or "out of memory" in text.lower():
        return "out of memory"
    if isinstance(error, LoomError):
        return error.sentence
    # Compilers wrap the error in lines that carry no information: "backend='inductor' raised:".
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.rstrip().endswith(":")]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__

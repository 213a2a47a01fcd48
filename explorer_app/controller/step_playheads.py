"""Where the playhead was at the steps of the history, and the sessions that opened projects replaced."""

from __future__ import annotations

from explorer_app.session.history import History, HistoryEntry
from explorer_app.session.session import Session
from gpu_backend import dataclass


@dataclass(frozen=True, slots=True)
class ReplacedProject:
    """What an opened project replaced.

    Attributes
    ----------
    number
        Of the first step of the opened project.
    time_s, later_s
        Where the playhead was then, and where the project put it, in seconds.
    """

    number: int
    session: Session
    time_s: float
    later_s: float


class StepPlayheads:
    """Remembers for steps of this run, as long as the history has them."""

    def __init__(self) -> None:
        self._times: dict[int, float] = {}
        """Number of a step -> the playhead at its session, in seconds."""
        self._projects: dict[int, ReplacedProject] = {}
        """Number of the first step of a project -> what it replaced."""

    def note(self, history: History, time_s: float) -> None:
        """Remember the playhead at the current step."""
        if history.current is not None:
            there = {entry.number for entry in history.entries}
            self._times = {number: t for number, t in self._times.items() if number in there}
            self._times[history.current.number] = time_s

    def current(self, history: History) -> float | None:
        """Return the playhead at the current step; None if it is not known."""
        return None if history.current is None else self.time_of(history.current)

    def time_of(self, step: HistoryEntry) -> float | None:
        """Return the playhead at a step; None if it is not known."""
        return self._times.get(step.number)

    def note_project(self, history: History, project: ReplacedProject) -> None:
        """Remember what a project replaced."""
        there = {entry.number for entry in history.entries}
        self._projects = {step: kept for step, kept in self._projects.items() if step in there}
        self._projects[project.number] = project

    def projects_between(self, left: History, now: History) -> list[ReplacedProject]:
        """Return the projects whose first steps were undone or redone on the way from one step to another, in order."""
        first, last = sorted((left.position, now.position))
        passed = now.entries[first + 1 : last + 1]
        if now.position < left.position:
            passed = passed[::-1]
        return [self._projects[step.number] for step in passed if step.number in self._projects]

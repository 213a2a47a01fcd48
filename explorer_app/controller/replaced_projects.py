"""The sessions that opened projects replaced."""

from __future__ import annotations

from explorer_app.session.history import History
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


class ReplacedProjects:
    """Remembers what projects replaced in this run, as long as the history has their first steps."""

    def __init__(self) -> None:
        self._projects: dict[int, ReplacedProject] = {}
        """Number of the first step of a project -> what it replaced."""

    def note(self, history: History, project: ReplacedProject) -> None:
        """Remember what a project replaced."""
        there = {entry.number for entry in history.entries}
        self._projects = {step: kept for step, kept in self._projects.items() if step in there}
        self._projects[project.number] = project

    def between(self, left: History, now: History) -> list[ReplacedProject]:
        """Return the projects whose first steps were undone or redone on the way from one step to another, in order."""
        first, last = sorted((left.position, now.position))
        passed = now.entries[first + 1 : last + 1]
        if now.position < left.position:
            passed = passed[::-1]
        return [self._projects[step.number] for step in passed if step.number in self._projects]

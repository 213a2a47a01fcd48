"""Tasks of the render thread: priority, bounded steps, and the priorities that cancel a step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import IntEnum
from typing import ClassVar

from explorer_app.rendering.renderer_like import RendererLike


class Priority(IntEnum):
    """Order of the tasks that are ready; a smaller number comes first."""

    DEVICE = 0
    """Another device was chosen or found, or its kernels are compiled."""
    MODEL = 1
    """A model is to be opened."""
    OPTIONS = 2
    """Pictures are to be rendered in another way."""
    PREVIEW = 3
    """The picture on the canvas."""
    DRAG = 4
    """Points of the picture are dragged; each burst of steps gives a new latent."""
    SELF_CHECK = 5
    """Kernels are checked on a GPU that is to take over or to open a model."""
    COMPARISON = 6
    """The same picture in every way of rendering, with times and differences."""
    COUNTERS = 7
    """Hardware counters of the kernels of a picture."""
    MAPS = 8
    """Channels of a layer as small pictures."""
    PICTURE = 9
    """A single picture that a user saves."""
    ROWS = 10
    """Rows of w that an action waits for."""
    GRID = 11
    """The pictures of a grid of variations."""
    THUMBNAIL = 12
    """Small pictures, while nothing moves."""
    PROJECTION = 13
    """Rows of w are searched for a photo."""
    EXPORT = 14
    """Frames of sequences."""
    SEARCH = 15
    """A search for directions."""
    LEARNING = 16
    """An encoder of the model is trained, while nothing moves."""
    TUNING = 17
    """A search for the fastest tiles of this GPU, while nothing moves."""
    LADDER = 18
    """What each optimisation gains, measured while nothing moves."""
    IDLE = 19
    """Work that runs when nothing else is ready."""


URGENT = frozenset({Priority.DEVICE, Priority.MODEL})
"""Priorities that no frame delays."""


class RenderTask(ABC):
    """A kind of work on the render thread.

    A task lives as long as the thread. It holds its own requests and notifies the thread's condition when one is
    added, so every method but `step` and `close` is called with that condition held and must not wait.

    Attributes
    ----------
    priority
        Among the tasks that are ready, the one with the smallest number takes the next step.
    yields_to
        Priorities for which a step in progress is cancelled; the task repeats it later.
    preview_share
        Part of the time, 0 <= share < 1, that this task gets while pictures move; see `TaskQueue`.
    causes_previews
        Whether the previews that follow each other are those of its own steps; it then waits for none that may come.
    needs_renderer
        Whether there has to be a renderer.
    finishes_on_close
        Whether its waiting work is still done after the thread was told to end.
    """

    priority: ClassVar[Priority]
    yields_to: frozenset[Priority] = URGENT
    preview_share: ClassVar[float] = 0.0
    causes_previews: ClassVar[bool] = False
    needs_renderer: ClassVar[bool] = True
    finishes_on_close: ClassVar[bool] = False

    @property
    def is_brief(self) -> bool:
        """Whether the next step renders nothing; it then runs before previews, independent of its share."""
        return False

    @abstractmethod
    def seconds_until_ready(self) -> float | None:
        """Return 0 if there is a step to do, the seconds to wait for one, or None until the condition is notified."""

    @abstractmethod
    def step(self, renderer: RendererLike | None, should_yield: Callable[[], bool]) -> bool:
        """Do a bounded piece of work, and never wait for a disk, an encoder or a socket.

        Parameters
        ----------
        renderer
            What renders now; not None if `needs_renderer`.
        should_yield
            Returns, while the step runs, whether a task that this one yields to is ready. Callable from any thread.

        Returns
        -------
        Whether the step was done; False if it was cancelled.
        """

    def close(self) -> None:  # noqa: B027 - most tasks hold nothing that outlives a step
        """End what is under way and free what it holds. Called on the render thread after the last step."""

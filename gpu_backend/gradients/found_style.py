"""What a search for style channels finds, without torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FoundStyle:
    """A style channel that moves the region.

    Attributes
    ----------
    inside, outside
        Change of the picture for one deviation of the style, root mean square over the region and the rest.
    reach
        A sensible end of its slider.
    """

    layer: str
    channel: int
    inside: float
    outside: float
    reach: float

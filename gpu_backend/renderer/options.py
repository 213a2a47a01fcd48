"""How frames are made, when there is a choice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """Two ways to the same picture, for whoever wants to see what each of them costs.

    Attributes
    ----------
    use_graph
        Replay one captured graph a frame; False launches kernel after kernel. The CPU has no graphs.
    use_fused
        Run the fast kernels; False runs the plain ones that they are checked against, on the CPU the reference
        functions.
    """

    use_graph: bool = True
    use_fused: bool = True

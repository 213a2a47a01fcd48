"""Execution options of a renderer."""

from __future__ import annotations

from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """Switches between execution variants that render the same picture, to compare their cost.

    Attributes
    ----------
    use_graph
        Replay a captured CUDA graph, or recorded calls on the CPU; False launches kernels, or calls torch, one by one.
    use_fused
        Run the fused kernels; False runs the plain ones that they are checked against (on the CPU: the reference
        functions).
    """

    use_graph: bool = True
    use_fused: bool = True

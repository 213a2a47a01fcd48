"""Repeated drawing of pictures of one shape on a GPU: parts fused by torch.compile, all captured in one CUDA graph."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gpu_backend.training.world.factors import FACTORS
from gpu_backend.training.world.parts import CompiledParts, Run, as_is
from gpu_backend.training.world.picture import scene

_MOST_PIXELS = 32 << 16
"""Samples of the pictures drawn together; a GPU needs about 2 KB for each."""
_MOST_AT_ONCE = 32

COMPILING_PAYS_FROM = 50_000
"""Pictures: eager parts move about 10 GB for one of 256 x 256, a few milliseconds of an H200; compiling takes minutes.
An estimate."""


def at_once(resolution: int) -> int:
    """Pictures drawn together."""
    return max(1, min(_MOST_AT_ONCE, _MOST_PIXELS // resolution**2))


class Drawer:
    """Draws pictures as bytes, `at_once` at a time. The first call on a machine compiles the parts.

    Parameters
    ----------
    say
        Called with the reason if parts cannot be fused here, without Triton or a C compiler; pictures take longer then.
    compiles
        Whether parts are compiled. That takes a minute or two, and pays off from about `COMPILING_PAYS_FROM` pictures.
    """

    def __init__(
        self,
        resolution: int,
        device: torch.device,
        say: Callable[[str], None] = lambda _: None,
        *,
        compiles: bool = True,
    ) -> None:
        self._resolution, self._say, self._compiles = resolution, say, compiles
        count = at_once(resolution)
        self._factors = torch.zeros(count, len(FACTORS), device=device)
        self._seeds = torch.zeros(count, dtype=torch.int64, device=device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._pictures = torch.empty(0)

    @torch.no_grad()
    def draw(self, factors: torch.Tensor, seeds: torch.Tensor) -> torch.Tensor:
        """Return ``(n, 3, R, R) uint8`` of ``factors`` ``(n, F)`` and ``seeds`` ``(n,) int64``, both on the host."""
        size = len(self._seeds)
        pairs = zip(torch.split(factors, size), torch.split(seeds, size), strict=True)
        return torch.cat([self._drawn(some, own) for some, own in pairs])

    def _drawn(self, factors: torch.Tensor, seeds: torch.Tensor) -> torch.Tensor:
        count = len(seeds)
        self._factors[:count].copy_(factors.pin_memory(), non_blocking=True)
        self._seeds[:count].copy_(seeds.pin_memory(), non_blocking=True)
        if self._graph is None:
            self._capture()
        assert self._graph is not None
        self._graph.replay()
        return self._pictures[:count].clone()

    def _capture(self) -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            run = self._warmed()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._pictures = self._bytes(run)
        self._graph = graph

    def _warmed(self) -> Run:
        """Warm up until nothing is allocated, compiled or copied from the host; return how parts are run."""
        self._bytes(as_is)
        if not self._compiles:
            return as_is
        melted = CompiledParts()
        for _ in range(2):
            self._bytes(melted)
        if melted.problems:
            part, reason = next(iter(melted.problems.items()))
            others = f" and {len(melted.problems) - 1} more" if len(melted.problems) > 1 else ""
            self._say(f"Pictures take longer to draw: torch.compile does not work here for {part}{others}: {reason}")
        return melted

    def _bytes(self, run: Run) -> torch.Tensor:
        drawn = scene(self._factors, self._seeds, self._resolution, run).picture
        return to_bytes(drawn)


def to_bytes(pictures: torch.Tensor) -> torch.Tensor:
    """-1..1 to 0..255, ``uint8``."""
    return (pictures * 127.5 + 128.0).clamp(0.0, 255.0).to(torch.uint8)


def from_bytes(pictures: torch.Tensor) -> torch.Tensor:
    """0..255 to -1..1, in steps of 1 / 127.5."""
    return (pictures.float() - 128.0) / 127.5

"""The cases of a run: those of the command line, else the most informative ones in the least time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_backend.bench.contender import Case
from gpu_backend.plan.plan import Precision

PEERS = ("eager", "channels-last", "traced", "graph", "compiled", "autotuned")
PRECISIONS = ("fp8", "fp16", "bf16", "tf32", "bf16x3", "fp32")
_OURS: tuple[Precision, ...] = ("fp16", "fp8", "tf32", "bf16x3", "fp32")
_OURS_ALONE = ("fp8", "bf16x3")
GPU_BATCHES = (1, 8, 16, 32)
_QUICK_BATCHES = (1, 8)
SLOW = frozenset({"autotuned"})
"""Peers that take minutes to prepare a case; measured only where they are named, or all are, and after all others."""

_NEEDS_GPU = {"graph"}
_OTHER_PRECISIONS = {"channels-last"}
"""Peers that are measured in more than one precision by default: the fastest of those that need no compiling."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What to measure. `left_out` says what was left out by default, and how to have it."""

    batches: tuple[int, ...]
    ours: tuple[Precision, ...]
    peers: tuple[Case, ...]
    left_out: str = ""


def choose(
    *,
    on_gpu: bool,
    batches: Sequence[int] = (),
    peers: Sequence[str] | None = None,
    precisions: Sequence[str] = (),
    everything: bool = False,
    quick: bool = False,
) -> Choice:
    """Choose the cases in order of measurement, the most important first.

    Parameters
    ----------
    batches, peers, precisions
        What was named; empty (for peers: None) leaves the choice open. What is named is measured in all combinations.
    everything
        All combinations, without a time limit.
    quick
        Two batches and the main precision only: half on a GPU, single on the processor.
    """
    if not batches:
        batches = (_QUICK_BATCHES if quick else GPU_BATCHES) if on_gpu else (1,)
    names = tuple(peers) if peers is not None else tuple(who for who in PEERS if on_gpu or who not in _NEEDS_GPU)
    usual: tuple[str, ...] = ("fp16", "bf16", "tf32", "fp32") if on_gpu else ("fp32", "bf16")
    if everything and on_gpu:
        usual = ("fp16", *(precision for precision in PRECISIONS if precision != "fp16"))
    wanted = tuple(precisions) or (usual[:1] if quick else usual)
    own = tuple(precision for precision in _OURS if precision in wanted) if on_gpu else _OURS[-1:]
    own = own or _OURS[:1]  # peers in bf16 are held against fp16
    whole = [
        Case(who, precision, batch)
        for precision in wanted
        if precision not in _OURS_ALONE
        for who in ("compiled", "graph", "channels-last", "traced", "eager", "autotuned")
        for batch in batches
        if who in names
    ]
    whole.sort(key=lambda case: case.who in SLOW)
    if everything or precisions:
        return Choice(tuple(batches), own, tuple(whole))
    chosen = [case for case in whole if _is_informative(case, usual[0]) and (peers is not None or case.who not in SLOW)]
    left_out = len(whole) - len(chosen)
    cases = "case" if left_out == 1 else "cases"
    sentence = f"{left_out} more {cases} of peers: --all, or name some with --precision and --peers"
    return Choice(tuple(batches), own, tuple(chosen), sentence if left_out else "")


def _is_informative(case: Case, main: str) -> bool:
    """Whether a case is measured by default: every peer in the main precision, one in the others at two batches."""
    return case.precision == main or (case.who in _OTHER_PRECISIONS and case.batch in _QUICK_BATCHES)

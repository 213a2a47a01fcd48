"""A report as a GPU would give it, with made-up numbers."""

from gpu_backend.bench.kernels import beside_ceiling
from gpu_backend.bench.report import (
    NO_GRAPH,
    OURS,
    Ceiling,
    Compiling,
    Gesture,
    KernelCost,
    Measurement,
    Report,
    RunFacts,
    Skipped,
)
from gpu_backend.frame import KernelCounters

RUN = RunFacts(
    date="2030-01-02T03:04:05+00:00",
    command="latentloom bench",
    commit="0123456789abcdef",
    device="NVIDIA H200",
    device_kind="cuda",
    driver="580.95.05",
    reason="NVIDIA H200: it was chosen.",
    versions={"torch": "2.11.0"},
    network="ffhq1024",
    resolution=1024,
    parameters=30_000_000,
    threads=16,
    wall_s=200.0,
)
COUNTERS = KernelCounters(0.313, 0.5, 0.25, 9.4, None)
CEILING = Ceiling(4e12, {"fp16": 8e14, "fp32": 5e13}, is_measured=True)


def measurement(who: str, precision: str, batch: int, latency_ms: float) -> Measurement:
    nbytes = 10**9 if who.startswith(OURS) else 4 * 10**9
    return Measurement(who, precision, batch, latency_ms, 0.9 * latency_ms, nbytes, 10, 50, 1.5)


def made_up_report() -> Report:
    rows = [
        measurement(who, precision, batch, (base + slope * batch) * factor)
        for who, base, slope in ((OURS, 0.1, 0.3), (NO_GRAPH, 0.2, 0.3), ("compiled", 0.5, 0.7), ("eager", 11.0, 4.0))
        for precision, factor in (("fp16", 1.0), ("fp32", 5.0))
        for batch in (1, 8)
    ]
    kernels = [
        KernelCost(
            batch,
            "synthesis.styles",
            "styles",
            8.0,
            0.1,
            3 * 10**7,
            3 * 10**7,
            None,
            "fused",
            limits=("registers", "warps"),
            counters=COUNTERS,
        )
        for batch in (1, 8)
    ]
    kernels += [
        KernelCost(
            batch,
            f"synthesis.b{side}.conv1",
            "modulated_conv",
            40.0,
            0.3,
            10**10,
            10**8,
            None,
            state="fallback" if side == 8 else "fused",
            reason="it differed from its reference" if side == 8 else "",
            registers=128,
            occupancy=0.5,
            waves=1.5,
        )
        for batch in (1, 8)
        for side in (8, 512, 1024)
    ]
    return Report(
        run=RUN,
        measurements=tuple(rows),
        skipped=(Skipped("compiled, fp16, batch 32", "out of memory"),),
        kernels=beside_ceiling(kernels, CEILING, "fp16"),
        ceiling=CEILING,
        gestures=(Gesture("fp16", 1000, 1.1, 3.5, 0.42, 0.09, 0.3, 6 * 10**8),),
        method=("Median of 50 runs.",),
        compiling=Compiling("fp16", 25, 16, 6.5, 0.12),
    )

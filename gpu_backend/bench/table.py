"""The report as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpu_backend.bench.report import Accuracy, Gesture, KernelCost, Measurement, Report
from gpu_backend.frame import KernelCounters

_COUNTERS = ("achieved", "SM", "DRAM", "sectors/load", "sectors/store")
"""Columns of hardware counters: occupancy, throughput as shares of the peak, sectors a request."""

_LEFT = "<"
_RIGHT = ">"
_NOT_ALONE = "other programs used the processor meanwhile, so figures may be far off: measure again without them"
_WHAT_GAINS_ARE = (
    "gain: how many times as fast latentloom is, in its first precision at that batch; memory saved: by how much less "
    "it holds"
)
_FEWER_PRODUCTS = "above 100%: convolutions here take fewer products (Winograd) than the plain way, which is counted"


def table(report: Report) -> str:
    """Return all of it, one part below the other."""
    parts = [
        _head(report),
        _measurements(report),
        *_kernel_tables(report),
        _ceiling(report),
        *(_accuracy(found) for found in report.accuracy),
        *(_gesture(gesture) for gesture in report.gestures),
        _compiling(report),
        _skipped(report),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(report: Report) -> str:
    run = report.run
    where = f"{run.device}, driver {run.driver}" if run.driver else f"{run.device}, {run.threads} threads"
    torch = f"torch {run.versions.get('torch', 'missing')}"
    commit = f", commit {run.commit[:12]}" if run.commit else ""
    size = f"{run.resolution} x {run.resolution}, {run.parameters / 1e6:.1f} M parameters"
    why = "" if run.driver else f"{run.reason}\n"
    return f"{run.network}: {size}\n{where}, {torch}\n{why}{run.date}{commit}, {run.wall_s:.0f} s"


def _measurements(report: Report) -> str:
    if not report.measurements:
        return ""
    head = ("who", "precision", "batch", "median ms", "ms/image", "images/s", "J/image", "memory", "runs", "gain")
    rows = [
        (
            row.who,
            row.precision,
            str(row.batch),
            number(row.latency_ms),
            number(row.image_ms),
            number(row.images_per_s),
            "" if row.image_j is None else number(row.image_j),
            "" if row.nbytes is None else size(row.nbytes),
            str(row.runs),
            _gain(report, row),
            _saving(report, row),
        )
        for row in sorted(report.measurements, key=lambda row: (row.batch, row.latency_ms))
    ]
    kept = [place for place, cells in enumerate(zip(*rows, strict=True)) if any(cells)]
    named = (*head, "memory saved")
    lines = grid([named[place] for place in kept], [[row[place] for place in kept] for row in rows], left=2)
    return f"{lines}\n{_WHAT_GAINS_ARE}" if any(_gain(report, row) for row in report.measurements) else lines


def _gain(report: Report, row: Measurement) -> str:
    """How many times as fast this renderer is, in its first precision."""
    gain = report.gain_over(row)
    return "" if gain is None else f"{gain:.2f} x"


def _saving(report: Report, row: Measurement) -> str:
    """How much of a contender's memory this renderer does without."""
    saving = report.memory_saved_over(row)
    return "" if saving is None else f"{saving:.0%}"


def _kernel_tables(report: Report) -> Iterator[str]:
    for batch in dict.fromkeys(cost.batch for cost in report.kernels):
        costs = [cost for cost in report.kernels if cost.batch == batch]
        on_gpu = any(cost.state for cost in costs)
        has_counters = any(cost.counters is not None for cost in costs)
        head = ["layer", "kernel", "us", "share", "GB/s", "TFLOP/s" if on_gpu else "GFLOP/s", "roofline"]
        if on_gpu:
            head += ["registers", "spills", "occupancy", "limited by"]
            head += [*_COUNTERS] if has_counters else []
            head += ["waves", "state"]
        total = sum(cost.time_us for cost in costs)
        text = f"kernels, batch {batch}: {total:.0f} us\n" + grid(
            head, [_kernel(cost, on_gpu, has_counters) for cost in costs], left=2
        )
        yield f"{text}\n{_FEWER_PRODUCTS}" if not on_gpu and any(map(_is_above_roofline, costs)) else text


def _is_above_roofline(cost: KernelCost) -> bool:
    return cost.roofline_share is not None and cost.roofline_share > 1.0


def _kernel(cost: KernelCost, on_gpu: bool, has_counters: bool) -> tuple[str, ...]:
    seconds = cost.time_us / 1e6
    row = (
        cost.layer.removeprefix("synthesis."),
        cost.kernel,
        f"{cost.time_us:.1f}",
        f"{cost.share:.1%}",
        f"{cost.nbytes / seconds / 1e9:.0f}" if seconds else "",
        f"{cost.flops / seconds / (1e12 if on_gpu else 1e9):.2f}" if seconds else "",
        "" if cost.roofline_share is None else f"{cost.roofline_share:.0%}",
    )
    if not on_gpu:
        return row
    state = f"{cost.state}: {cost.reason}" if cost.reason else cost.state
    return (
        *row,
        str(cost.registers),
        str(cost.spill_nbytes),
        f"{cost.occupancy:.0%}",
        ", ".join(cost.limits),
        *(_counters(cost.counters) if has_counters else ()),
        f"{cost.waves:.2f}",
        state,
    )


def _counters(counters: KernelCounters | None) -> tuple[str, ...]:
    """Return a cell for each of `_COUNTERS`, empty where nothing was counted."""
    if counters is None:
        return ("",) * len(_COUNTERS)
    shares = (counters.occupancy, counters.sm_share, counters.dram_share)
    sectors = (counters.load_sectors, counters.store_sectors)
    return (
        *("" if share is None else f"{share:.1%}" for share in shares),
        *("" if count is None else f"{count:.1f}" for count in sectors),
    )


def _ceiling(report: Report) -> str:
    ceiling = report.ceiling
    if ceiling is None:
        return ""
    rates = ", ".join(f"{name} {rate(flop_per_s)}" for name, flop_per_s in ceiling.flop_per_s.items())
    source = "measured" if ceiling.is_measured else "worked out"
    return f"roofline, {source}: copies {ceiling.copy_bytes_per_s / 1e9:.0f} GB/s; products {rates}"


def _accuracy(found: Accuracy) -> str:
    head = f"{found.precision} beside fp32, {found.pictures} pictures: "
    if found.psnr_db is None or found.least_psnr_db is None:
        return f"{head}the same bytes"
    ratio = f"PSNR {found.psnr_db:.1f} dB, the worst {found.least_psnr_db:.1f} dB"
    return f"{head}{ratio}, largest difference {found.largest_difference} of 255"


def _gesture(gesture: Gesture) -> str:
    host = "not measured" if gesture.host_ms is None else f"{number(gesture.host_ms)} ms"
    device = "" if gesture.device_ms is None else f", device {number(gesture.device_ms)} ms"
    process = f", the process {size(gesture.process_nbytes)} of RAM" if gesture.process_nbytes else ""
    return (
        f"gesture to frame on the host, {gesture.precision}, {gesture.frames} frames: "
        f"p50 {number(gesture.p50_ms)} ms, p99 {number(gesture.p99_ms)} ms{device}\n"
        f"host time a frame: {host}; processor time of all threads {number(gesture.cpu_ms)} ms; "
        f"the renderer holds {size(gesture.nbytes)}{process}" + (f"\n{_NOT_ALONE}" if _waited(gesture) else "")
    )


def _waited(gesture: Gesture) -> bool:
    """Return whether frames on the processor took longer than all threads worked for them: they waited for cores."""
    return gesture.device_ms is None and gesture.host_ms is not None and gesture.host_ms > 1.15 * gesture.cpu_ms


def _compiling(report: Report) -> str:
    found = report.compiling
    if found is None:
        return ""
    cold = f"{found.kernels} kernels compiled on {found.threads} threads in {number(found.cold_s)} s"
    return f"{cold}, found in the cache in {number(found.cached_s)} s"


def _skipped(report: Report) -> str:
    return "\n".join(f"skipped: {item.what}: {item.reason}" for item in report.skipped)


def number(value: float) -> str:
    """Return a number with three figures, or all before the point."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def size(nbytes: int) -> str:
    """Return bytes for users."""
    return f"{nbytes / 1e9:.2f} GB" if nbytes >= 1e9 else f"{nbytes / 1e6:.1f} MB"


def rate(flop_per_s: float) -> str:
    """Return operations a second for users."""
    return f"{flop_per_s / 1e12:.3g} TFLOP/s" if flop_per_s >= 1e12 else f"{flop_per_s / 1e9:.3g} GFLOP/s"


def grid(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> str:
    """Align columns: the first `left` and those of words to the left, the others to the right."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = []
    for row in (head, *rows):
        cells = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            is_left = column < left or head[column] in ("limited by", "state")
            cells.append(f"{cell:{_LEFT if is_left else _RIGHT}{width}}")
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)

"""The columns of the step table, from which the table, its tooltips and the CSV are built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from explorer_app.rendering.frame_statistics import StepCost
from explorer_app.window.performance.kernel_state import state_text
from gpu_backend import dataclass

if TYPE_CHECKING:
    from gpu_backend import KernelCounters, KernelFacts, Roofline

Value = float | str | tuple[int, ...] | None
"""Value of a cell; None if it is empty."""

SLOW_FLOP_PER_S = 1e12
"""Rates are shown in GF/s if the device's fastest step is below this."""


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of a step.

    Attributes
    ----------
    key
        Name in the settings.
    title, name
        Header text, and the longer name in the column picker and tooltips.
    heading
        CSV heading with unit.
    tip
        One sentence.
    sample
        The widest expected text.
    rank
        In a narrow table, columns of a low rank are shown first.
    value
        Returns the value, as a number if possible.
    text
        Formats the value for a cell.
    has_bar
        Whether the cell also shows the value, a share in 0..1, as a bar.
    is_left
        Whether the column is left-aligned text; numbers are right-aligned, so that their digits align.
    """

    key: str
    title: str
    name: str
    heading: str
    tip: str
    sample: str
    rank: int
    value: Callable[[StepCost, Roofline | None], Value]
    text: Callable[[Value], str]
    has_bar: bool = False
    is_left: bool = False


def _fact(read: Callable[[KernelFacts], Value]) -> Callable[[StepCost, Roofline | None], Value]:
    return lambda step, _: None if step.facts is None else read(step.facts)


def _counter(read: Callable[[KernelCounters], float | None]) -> Callable[[StepCost, Roofline | None], Value]:
    """Read a hardware counter; empty until counters are measured."""
    return _fact(lambda facts: None if facts.counters is None else read(facts.counters))


def roofline_us(step: StepCost, roofline: Roofline) -> float:
    """Return the lower bound of a step's time in µs: the larger of its compute and its memory bound."""
    return 1e6 * max(step.flops / roofline.matrix_flop_per_s, step.nbytes / roofline.copy_bytes_per_s)


def roofline_share(step: StepCost, roofline: Roofline | None) -> float | None:
    """Return a step's share of the roofline in 0..1; None if unknown."""
    if roofline is None or step.time_us <= 0:
        return None
    return roofline_us(step, roofline) / step.time_us


def microseconds(value: float) -> str:
    """Format a time in µs with three or four digits: 4.21, 34.1, 312, 4,120, 12.4k, 312k, 2.35M."""
    if value >= 999_500:
        return f"{value / 1e6:.3g}M"
    if value >= 9_999.5:
        return f"{value / 1000:.1f}k" if value < 99_950 else f"{value / 1000:.0f}k"
    if value < 10:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _number(digits: int, scale: float = 1.0) -> Callable[[Value], str]:
    return lambda value: f"{float(value) / scale:,.{digits}f}" if isinstance(value, int | float) else "–"


def _rate(scale: float) -> Callable[[Value], str]:
    """Return a formatter of rates with three digits, and a dash for missing counts."""

    def text(value: Value) -> str:
        if not isinstance(value, int | float) or value <= 0:
            return "–"
        rate = value / scale
        if rate < 0.005:
            return "<0.01"
        return f"{rate:.2f}" if rate < 9.995 else f"{rate:.1f}" if rate < 99.95 else f"{rate:,.0f}"

    return text


def percent(value: Value) -> str:
    """Format a share in 0..1 in percent; a positive share that rounds to zero is shown as less than one."""
    if not isinstance(value, int | float):
        return "–"
    return "<1 %" if 0 < value < 0.005 else f"{100 * value:.0f} %"


def amount(value: float) -> str:
    """Format a number with three digits and an SI prefix, ready for a unit: 768, 2.18 M, 760 T."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 0.9995 * size:
            scaled = value / size
            return f"{scaled:.{0 if scaled >= 99.95 else 1 if scaled >= 9.995 else 2}f} {prefix}"
    return f"{value:.0f} "


def _waves(value: Value) -> str:
    return "<0.01" if isinstance(value, int | float) and 0 < value < 0.005 else _number(2)(value)


_RESOURCES = {"registers": "regs", "shared memory": "smem"}


def _resources(value: Value) -> str:
    """Shorten the resources that limit the occupancy as their own columns are titled: regs, smem, warps, blocks."""
    if not isinstance(value, str) or not value:
        return "–"
    return " ".join(_RESOURCES.get(name, name) for name in value.split(", "))


def _words(value: Value) -> str:
    return str(value) if value is not None else "–"


def _box(value: Value) -> str:
    """Format the dimensions of a grid or block: 16 × 16 × 2; trailing dimensions of 1 are omitted."""
    if not isinstance(value, tuple):
        return "–"
    sides = list(value)
    while len(sides) > 1 and sides[-1] == 1:
        sides.pop()
    return " × ".join(f"{side}" for side in sides)


def _kibibytes(value: Value) -> str:
    return f"{value / 1024:.1f}" if isinstance(value, int | float) and value else "0" if value == 0 else "–"


COLUMNS: tuple[Column, ...] = (
    Column(
        "layer",
        "layer",
        "Layer",
        "layer",
        "Place of the step in the network.",
        "b1024.conv1",
        0,
        lambda step, _: step.layer.removeprefix("synthesis."),
        _words,
        is_left=True,
    ),
    Column(
        "kernel",
        "kernel",
        "Kernel",
        "kernel",
        "The operation.",
        "mod_conv__",
        9,
        lambda step, _: step.kernel,
        lambda value: _words(value).replace("modulated_up_", "up_").replace("modulated_", "mod_"),
        is_left=True,
    ),
    Column(
        "state",
        "path",
        "Path (fused, plain, fallback)",
        "state",
        "Fused: the fast path; plain: fusion is switched off; fallback: plain, because the fused kernel failed.",
        "fallback",
        15,
        _fact(lambda facts: facts.state),
        _words,
        is_left=True,
    ),
    Column(
        "time",
        "µs",
        "Time",
        "time_us",
        "Time in microseconds.",
        "0,000",
        1,
        lambda step, _: step.time_us,
        lambda value: microseconds(value) if isinstance(value, int | float) else "–",
    ),
    Column(
        "share",
        "share",
        "Share",
        "share",
        "Share of the time of all steps, in percent; the bar compares it with the largest.",
        "100 %",
        3,
        lambda step, _: step.share,
        percent,
        has_bar=True,
    ),
    Column(
        "occupancy",
        "occ.",
        "Occupancy",
        "occupancy",
        "Theoretical occupancy: resident threads of this kernel on a multiprocessor, as a share of its maximum.",
        "100 %",
        2,
        _fact(lambda facts: facts.occupancy),
        percent,
    ),
    Column(
        "achieved",
        "ach.",
        "Achieved occupancy",
        "achieved_occupancy",
        "Achieved occupancy, counted by the GPU: mean resident warps of a multiprocessor, as a share of its maximum.",
        "100 %",
        5,
        _counter(lambda counters: counters.occupancy),
        percent,
    ),
    Column(
        "limit",
        "limit",
        "Limited by",
        "occupancy_limit",
        "What limits the theoretical occupancy: registers, shared memory, warps or blocks of a multiprocessor.",
        "regs warps",
        10,
        _fact(lambda facts: ", ".join(facts.limits) or None),
        _resources,
    ),
    Column(
        "registers",
        "regs",
        "Registers",
        "registers",
        "Registers per thread.",
        "255",
        11,
        _fact(lambda facts: facts.registers),
        _number(0),
    ),
    Column(
        "shared",
        "smem",
        "Shared memory",
        "shared_bytes",
        "Shared memory per block, in KiB.",
        "227.0",
        16,
        _fact(lambda facts: facts.shared_nbytes),
        _kibibytes,
    ),
    Column(
        "spills",
        "spill",
        "Spills",
        "spill_bytes",
        "Bytes per thread spilled to local memory; 0 is good.",
        "spill",
        17,
        _fact(lambda facts: facts.spill_nbytes),
        _number(0),
    ),
    Column(
        "grid",
        "grid",
        "Grid",
        "grid",
        "Blocks per launch.",
        "1024 × 8 × 2",
        19,
        _fact(lambda facts: tuple(facts.grid)),
        _box,
    ),
    Column(
        "block",
        "block",
        "Block",
        "block",
        "Threads per block.",
        "32 × 8",
        20,
        _fact(lambda facts: tuple(facts.block)),
        _box,
    ),
    Column(
        "waves",
        "waves",
        "Waves",
        "waves",
        "Waves: how many times the launch fills the device with blocks; a value slightly above an integer wastes time.",
        "waves",
        18,
        _fact(lambda facts: facts.waves),
        _waves,
    ),
    Column(
        "bandwidth",
        "GB/s",
        "GB/s",
        "bytes_per_s",
        "Necessary reads and writes, in gigabytes per second.",
        "4,200",
        14,
        lambda step, _: step.bytes_per_s,
        _rate(1e9),
    ),
    Column(
        "compute",
        "TF/s",
        "TFLOP/s",
        "flop_per_s",
        "Floating-point operations in 10¹² per second.",
        "00.00",
        8,
        lambda step, _: step.flop_per_s if step.flops else 0.0,
        _rate(1e12),
    ),
    Column(
        "roofline",
        "roofline",
        "Roofline",
        "roofline_share",
        "Share of the roofline: the lower bound from its operations and bytes, divided by its time.",
        "roofline",
        4,
        roofline_share,
        percent,
        has_bar=True,
    ),
    Column(
        "sm",
        "SM",
        "SM throughput",
        "sm_share",
        "Throughput of the multiprocessors, counted by the GPU: share of the peak of their busiest part.",
        "100 %",
        6,
        _counter(lambda counters: counters.sm_share),
        percent,
    ),
    Column(
        "dram",
        "DRAM",
        "DRAM throughput",
        "dram_share",
        "Throughput of the device memory, counted by the GPU: share of its peak.",
        "100 %",
        7,
        _counter(lambda counters: counters.dram_share),
        percent,
    ),
    Column(
        "loads",
        "sect/ld",
        "Sectors per load",
        "sectors_per_load",
        "32-byte sectors that a global load of a warp touches, counted by the GPU; TMA copies are not loads.",
        "sect/ld",
        12,
        _counter(lambda counters: counters.load_sectors),
        _number(1),
    ),
    Column(
        "stores",
        "sect/st",
        "Sectors per store",
        "sectors_per_store",
        "32-byte sectors that a global store of a warp touches, counted by the GPU.",
        "sect/st",
        13,
        _counter(lambda counters: counters.store_sectors),
        _number(1),
    ),
)
KEYS = tuple(column.key for column in COLUMNS)
_SLOW = Column(
    "compute",
    "GF/s",
    "GFLOP/s",
    "flop_per_s",
    "Floating-point operations in 10⁹ per second.",
    "000.0",
    COLUMNS[KEYS.index("compute")].rank,
    COLUMNS[KEYS.index("compute")].value,
    _rate(1e9),
)


def columns_for(steps: Iterable[StepCost]) -> tuple[Column, ...]:
    """Return the columns, with units chosen for these steps."""
    fastest = max((step.flop_per_s for step in steps), default=0.0)
    is_slow = 0 < fastest < SLOW_FLOP_PER_S
    return tuple(_SLOW if is_slow and column.key == "compute" else column for column in COLUMNS)


def known_keys(steps: Sequence[StepCost], roofline: Roofline | None) -> frozenset[str]:
    """Return the keys of the columns that have values for these steps."""
    return frozenset(
        column.key for column in COLUMNS if any(column.value(step, roofline) is not None for step in steps)
    )


def tooltip(step: StepCost, columns: Iterable[Column], roofline: Roofline | None) -> str:
    """Return all known values of a step, one per line."""
    lines = []
    for column in columns:
        value = column.value(step, roofline)
        if value is None or column.key in ("layer", "kernel", "state"):
            continue
        unit = {"time": " µs", "shared": " KiB", "spills": " bytes", "bandwidth": "", "compute": ""}.get(column.key, "")
        lines.append(f"{column.name}: {column.text(value)}{unit}")
    lines.append(f"Operations: {amount(step.flops).rstrip()}")
    lines.append(f"Bytes: {amount(step.nbytes)}B")
    if roofline is not None:
        lines.append(f"At best: {microseconds(roofline_us(step, roofline))} µs")
    if step.facts is not None:
        lines.insert(0, state_text(step.facts))
    return "\n".join([f"{step.layer} · {step.kernel}", *lines])

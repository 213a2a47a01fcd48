"""Plots of the report by matplotlib: latency, throughput, kernels against the roofline.

python -m gpu_backend.bench.plots bench.json      draws them again from a file
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu_backend.bench import look
from gpu_backend.bench.cases import PEERS
from gpu_backend.bench.report import NO_GRAPH, OURS, KernelCost, Measurement, Report, read_report
from gpu_backend.bench.table import number, rate as words
from gpu_backend.whole_file import write_whole

_LABELLED_SHARE = 0.06
"""A kernel with this share of the time is named in the roofline plot."""

_NAME_PX = (110.0, 15.0)
"""Labels nearer to each other than this, along x and y, would overlap."""


def draw_plots(report: Report, folder: Path) -> tuple[Path, ...]:
    """Draw the plots that the report has numbers for, and return the files."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = []
    drawers = (("latency", _latency), ("throughput", _throughput), ("roofline", _roofline))
    for name, draw in drawers:
        with rc_context(look.SETTINGS):
            figure = Figure(layout="constrained")
            FigureCanvasAgg(figure)
            if not draw(figure, report):
                continue
            path = folder / f"{name}.png"
            write_whole(path, figure.savefig)
            made.append(path)
    return tuple(made)


def _latency(figure: Any, report: Report) -> bool:
    """Milliseconds an image, a panel a batch, the fastest on top."""
    batches = sorted({row.batch for row in report.measurements})
    if not batches:
        return False
    columns = 1 if len(batches) == 1 else 2
    lines = -(-len(batches) // columns)
    most = max(sum(row.batch == batch for row in report.measurements) for batch in batches)
    figure.set_size_inches(5.6 * columns, 0.5 + lines * (0.75 + 0.24 * most))
    figure.suptitle(_title(report, "milliseconds an image"), x=0.01, ha="left", color=look.STRONG, fontsize=11)
    for place, batch in enumerate(batches):
        axes = figure.add_subplot(lines, columns, place + 1)
        rows = sorted((r for r in report.measurements if r.batch == batch), key=lambda r: r.image_ms)
        longest = rows[-1].image_ms
        heights = range(len(rows))
        bars = axes.barh(heights, [r.image_ms for r in rows], color=[_colour(r.who) for r in rows], height=0.66)
        for bar, row in zip(bars, rows, strict=True):
            bar.set_alpha(0.55 if row.who == NO_GRAPH else 1.0)
            axes.text(
                row.image_ms + 0.012 * longest, bar.get_y() + bar.get_height() / 2, number(row.image_ms), va="center"
            )
        axes.set_yticks(list(heights), [f"{r.who} {r.precision}" for r in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(0, 1.13 * longest)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x")
        axes.set_title(f"batch {batch}")
    return True


def _throughput(figure: Any, report: Report) -> bool:
    """Images a second against the batch size, all contenders in one precision."""
    lines = []
    for who in (OURS, *PEERS):
        rows = [row for row in report.measurements if row.who == who]
        if rows:
            lines.append(_fastest(rows))
    batches = sorted({row.batch for rows in lines for row in rows})
    if len(batches) < 2:
        return False
    figure.set_size_inches(7.2, 4.4)
    axes = figure.add_subplot()
    axes.set_title(_title(report, "images a second"))
    for rows in lines:
        who = rows[0].who
        axes.plot(
            [row.batch for row in rows],
            [row.images_per_s for row in rows],
            color=_colour(who),
            marker="o",
            markersize=5,
            linewidth=2.6 if who == OURS else 1.6,
            label=f"{who} {rows[0].precision}",
        )
    _end_labels(axes, lines, max(batches))
    axes.set_xscale("log", base=2)
    axes.set_xticks(batches, [str(batch) for batch in batches])
    axes.set_xticks([], minor=True)
    axes.set_xlim(min(batches) / 1.15, max(batches) * 1.15)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("batch")
    axes.grid()
    return True


def _fastest(rows: Sequence[Measurement]) -> list[Measurement]:
    """Return the rows of one precision by batch: the fastest of the peers with the most batch sizes."""
    by_precision: dict[str, list[Measurement]] = {}
    for row in rows:
        by_precision.setdefault(row.precision, []).append(row)
    best = max(by_precision.values(), key=lambda own: (len(own), max(row.images_per_s for row in own)))
    return sorted(best, key=lambda row: row.batch)


def _end_labels(axes: Any, lines: Sequence[Sequence[Measurement]], last: int) -> None:
    """Name each line at its end, at right of the plot, with labels kept apart."""
    top = max(row.images_per_s for rows in lines for row in rows)
    apart = 0.055 * top
    height = -apart
    for rows in sorted(lines, key=lambda rows: rows[-1].images_per_s):
        end = rows[-1]
        height = max(end.images_per_s, height + apart)
        axes.annotate(
            f"{end.who} {end.precision}  {number(end.images_per_s)}",
            (last, end.images_per_s),
            xytext=(last * 1.2, height),
            textcoords="data",
            va="center",
            color=_colour(end.who),
            annotation_clip=False,
        )


def _roofline(figure: Any, report: Report) -> bool:
    """Operations a second against operations a byte, below what the device can do."""
    ceiling = report.ceiling
    costs = [cost for cost in report.kernels if cost.flops and cost.nbytes and cost.time_us > 0]
    costs = [cost for cost in costs if cost.batch == costs[0].batch]
    precision = next((row.precision for row in report.measurements if row.who == OURS), "")
    rate = ceiling.flop_per_s.get(precision) if ceiling is not None else None
    if not costs or ceiling is None or not rate:
        return False
    figure.set_size_inches(7.2, 4.8)
    axes = figure.add_subplot()
    axes.set_title(_title(report, f"kernels of batch {costs[0].batch} against the roofline"))
    intensities = [cost.flops / cost.nbytes for cost in costs]
    ridge = rate / ceiling.copy_bytes_per_s
    left, right = min(*intensities, ridge) / 2, max(*intensities, ridge) * 3
    axes.plot(
        [left, ridge, right],
        [left * ceiling.copy_bytes_per_s / 1e12, rate / 1e12, rate / 1e12],
        color=look.DIM,
        zorder=2,
    )
    source = "measured" if ceiling.is_measured else "worked out"
    axes.text(left * 1.15, rate / 1e12, f"{words(rate)} {precision}, {source}", va="center", color=look.DIM)
    operations = list(dict.fromkeys(cost.kernel for cost in costs))
    colours = dict(zip(operations, (look.OURS, *look.SERIES, *([look.TEXT] * len(operations))), strict=False))
    for operation in operations:
        own = [(x, cost) for x, cost in zip(intensities, costs, strict=True) if cost.kernel == operation]
        axes.scatter(
            [x for x, _ in own],
            [_speed(cost) for _, cost in own],
            s=[20 + 900 * cost.share for _, cost in own],
            color=colours[operation],
            alpha=0.85,
            edgecolors=look.GROUND,
            linewidths=0.8,
            label=operation,
            zorder=3,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    speeds = [_speed(cost) for cost in costs]
    axes.set_ylim(min(*speeds, left * ceiling.copy_bytes_per_s / 1e12) / 2, max(*speeds, rate / 1e12) * 2)
    _name_kernels(axes, costs)
    axes.set_xlabel(f"operations a byte   (copies: {ceiling.copy_bytes_per_s / 1e9:.0f} GB/s)")
    axes.set_ylabel("TFLOP/s")
    axes.grid()
    legend = axes.legend(loc="lower right", fontsize=8)
    for handle in legend.legend_handles:
        handle.set_sizes([36])
    return True


def _name_kernels(axes: Any, costs: Sequence[KernelCost]) -> None:
    """Label the kernels that take most of the time, the slowest first, where there is room."""
    from matplotlib.patheffects import withStroke

    outline = withStroke(linewidth=2, foreground=look.PANEL)
    taken: list[tuple[float, float]] = []
    for cost in sorted(costs, key=lambda cost: -cost.share):
        place = (cost.flops / cost.nbytes, _speed(cost))
        x, y = axes.transData.transform(place)
        if cost.share < _LABELLED_SHARE or any(abs(x - a) < _NAME_PX[0] and abs(y - b) < _NAME_PX[1] for a, b in taken):
            continue
        taken.append((x, y))
        axes.annotate(
            cost.layer.removeprefix("synthesis."),
            place,
            xytext=(6 + 14 * cost.share**0.5, 0),
            textcoords="offset points",
            va="center",
            fontsize=7.5,
            color=look.TEXT,
            path_effects=[outline],
            zorder=4,
        )


def _speed(cost: KernelCost) -> float:
    return cost.flops / cost.time_us / 1e6


def _colour(who: str) -> str:
    return look.SERIES[PEERS.index(who)] if who in PEERS else look.OURS


def _title(report: Report, what: str) -> str:
    return f"{report.run.network} on {report.run.device}: {what}"


def main(arguments: Sequence[str]) -> int:
    """Draw the plots of a JSON file again, beside it."""
    path = Path(arguments[0])
    for made in draw_plots(read_report(path), path.parent):
        sys.stdout.write(f"{made}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

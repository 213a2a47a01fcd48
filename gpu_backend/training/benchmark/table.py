"""The report as text for a terminal."""

from __future__ import annotations

from gpu_backend.training.benchmark.report import LEAST_GAIN, StepReport, StepTime

_HEAD = ("", "ms/step", "images/s", "memory", "gain", "in all")


def table(report: StepReport) -> str:
    """Return what was measured and where, a line a row, and what was left out."""
    where = f"{report.device}, driver {report.driver}" if report.driver else report.device
    commit = f", commit {report.commit[:12]}" if report.commit else ""
    parts = [
        f"A training step at {report.resolution} x {report.resolution}, batch {report.batch}, "
        f"{report.parameters / 1e6:.1f} M parameters\n"
        f"{where}, torch {report.versions.get('torch', 'missing')}\n{report.date}{commit}, {report.wall_s:.0f} s",
        _rows(report),
        "\n".join(f"{row.name}: {row.what}" for row in report.rows),
        "\n".join(
            f"{row.name} {_outcome(report, row)}: {why}" for row in report.rows if (why := report.why_no_gain(row))
        ),
        "\n".join(f"skipped: {item.name}: {item.reason}" for item in report.skipped),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _outcome(report: StepReport, row: StepTime) -> str:
    return "is slower" if report.gain_of_one(row) * LEAST_GAIN < 1.0 else "gains nothing"


def _rows(report: StepReport) -> str:
    lines = [_HEAD]
    for row in report.rows:
        lines.append(
            (
                row.name if row is report.rows[0] or row.base else f"+ {row.name}",
                f"{row.step_ms:.2f}",
                f"{row.images_per_s:.1f}",
                "" if row.nbytes is None else f"{row.nbytes / 1e9:.1f} GB",
                "" if row is report.rows[0] else f"{report.gain_of_one(row):.2f} x",
                f"{report.gain(row):.2f} x",
            )
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    return "\n".join(
        "  ".join(
            f"{cell:{'<' if column == 0 else '>'}{width}}"
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )

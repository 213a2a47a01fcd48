"""Mix strengths by preset name, and the edit that sets several sources' strengths at once. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from explorer_app.session.row_groups import row_groups

PRESETS: tuple[tuple[str, str], ...] = (
    ("all", "All rows"),
    ("none", "No rows"),
    ("coarse", "Only coarse"),
    ("middle", "Only middle"),
    ("fine", "Only fine"),
    ("half", "Half of everything"),
    ("rising", "Rising from coarse to fine"),
    ("falling", "Falling from coarse to fine"),
)
"""(name, words in a menu) of everything that `preset_strengths` knows."""


def preset_strengths(name: str, row_resolutions: Sequence[int]) -> tuple[float, ...]:
    """Return one strength in 0..1 per row.

    A group that a small network does not have gives zeros. Rising and falling are linear in the row.

    Raises
    ------
    KeyError
        If no preset has that name.
    """
    count = len(row_resolutions)
    if name in ("coarse", "middle", "fine"):
        group = next((item for item in row_groups(row_resolutions) if item.name == name), None)
        return tuple(1.0 if group is not None and row in group else 0.0 for row in range(count))
    ramp = tuple(round(row / (count - 1), 4) if count > 1 else 1.0 for row in range(count))
    return {
        "all": (1.0,) * count,
        "none": (0.0,) * count,
        "half": (0.5,) * count,
        "rising": ramp,
        "falling": tuple(round(1.0 - value, 4) for value in ramp),
    }[name]


def base_share(mix: Sequence[Sequence[float]], num_ws: int) -> tuple[float, ...]:
    """Return what is left of the base latent in each row, 0..1, under sources laid over it in order.

    Each source takes its strength's part of what is below: prod_k (1 - strength_k) (see `gpu_backend.Recipe`'s rows).
    """
    shares = [1.0] * num_ws
    for strengths in mix:
        for row, strength in enumerate(strengths[:num_ws]):
            shares[row] *= 1.0 - strength
    return tuple(shares)

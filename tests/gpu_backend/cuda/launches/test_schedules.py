"""Launches of small networks of every family, as text: a change of what is launched is seen, and meant.

``python -m tests.gpu_backend.cuda.launches.test_schedules`` writes them anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.schedule import Address, Argument, Schedule, TensorMap
from gpu_backend.cuda.tiles.table import TileTable
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.model.model import Model
from gpu_backend.plan.edit_inputs import bendable_layers
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import NOT_EDITED, PlanEdits, PlanKey, Precision
from gpu_backend.recipe import RowRange
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import R, make_stylegan3

FOLDER = Path(__file__).parents[3] / "data" / "schedules"
TARGET = Target("sm_90a", 132, 232448, TileTable("sm_90a", 132, shared_nbytes_per_block=232448))
FAMILIES: dict[str, Callable[..., Model]] = {
    "skip": make_stylegan2,
    "resnet": lambda: make_stylegan2(architecture="resnet"),
    "orig": lambda: make_stylegan2(architecture="orig"),
    "adain": make_stylegan1,
    "stylegan3-t": make_stylegan3,
    "stylegan3-r": lambda: make_stylegan3(**R),
}
EDITED = ("skip", "resnet", "adain", "stylegan3-t")
"""Families whose launches are also listed with every layer bent, and with one blend, whose latent is kept or not."""


def text_of(argument: Argument) -> str:
    if argument is None:
        return "null"
    if isinstance(argument, TensorMap):
        return f"map of {text_of(argument.address)} {argument.extents} {argument.box}"
    if isinstance(argument, Address):
        offset = f" + {argument.offset}" if argument.offset else ""
        return f"{argument.kind} {argument.name}{offset}"
    return f"{argument:.9g}" if isinstance(argument, np.floating) else str(int(argument))


def lines_of(schedule: Schedule) -> Iterator[str]:
    for launch in schedule.launches:
        yield f"{launch.layer} {launch.recipe.title}"
        yield f"    grid {launch.grid} block {launch.block} shared {launch.shared_nbytes}"
        yield f"    {', '.join(f'{name}: {text_of(item)}' for name, item in launch.arguments.items())}"


def text_of_family(model: Model) -> str:
    cases: tuple[tuple[int, Precision], ...] = ((1, "fp16"), (8, "fp16"), (1, "fp32"), (1, "tf32"), (1, "bf16x3"))
    return _text_of_plans(model, [(batch, precision, "", NOT_EDITED) for batch, precision in cases])


def text_of_edits(model: Model) -> str:
    bent = PlanEdits(tuple(sorted(bendable_layers(model.spec))), shifts_styles=True)
    blended, kept = PlanEdits(blends=(RowRange(),)), PlanEdits(blends=(RowRange(0, 3),), keeps_second=True)
    precisions: tuple[Precision, ...] = ("fp16", "fp32")
    named = ((", bent", bent), (", blended", blended), (", blended and kept", kept))
    return _text_of_plans(model, [(1, one, what, edits) for one in precisions for what, edits in named])


def _text_of_plans(model: Model, cases: Sequence[tuple[int, Precision, str, PlanEdits]]) -> str:
    lines = []
    for batch, precision, what, edits in cases:
        key = PlanKey("model", "synthesis", batch, model.spec.resolution, precision, edits=edits)
        schedule = lower(build_plan(model.spec, key), model.weights, TARGET)
        kept = f", {schedule.kept_launches} launches may be left out" if schedule.kept_launches else ""
        lines += ["", f"== {precision}, batch {batch}{what}{kept}", *lines_of(schedule)]
    return "\n".join(lines[1:]) + "\n"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_launches_what_it_did(family: str) -> None:
    assert text_of_family(FAMILIES[family]()) == (FOLDER / f"{family}.txt").read_text("utf-8")


@pytest.mark.parametrize("family", EDITED)
def test_an_edited_network_launches_what_it_did(family: str) -> None:
    assert text_of_edits(FAMILIES[family]()) == (FOLDER / f"{family}-edits.txt").read_text("utf-8")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for family, make in FAMILIES.items():
        (FOLDER / f"{family}.txt").write_text(text_of_family(make()), encoding="utf-8")
    for family in EDITED:
        (FOLDER / f"{family}-edits.txt").write_text(text_of_edits(FAMILIES[family]()), encoding="utf-8")

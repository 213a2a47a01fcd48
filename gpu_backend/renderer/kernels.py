"""What can be done for a model's first picture on a GPU ahead of time: starting the GPU, compiling kernels.

Only the probe calls the driver, so any thread may compile while another one renders on the CPU. Compiled kernels are
stored in the user's cache folder, where the GPU executor finds them.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from gpu_backend.device import choose_gpu, usable_precision
from gpu_backend.errors import DeviceError
from gpu_backend.model import Model
from gpu_backend.plan.edit_inputs import bendable_layers
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.kept_second import key_that_keeps
from gpu_backend.plan.plan import PlanEdits, PlanKey, Precision
from gpu_backend.recipe import RowRange

if TYPE_CHECKING:
    from gpu_backend.cuda.driver.probe import Gpu
    from gpu_backend.cuda.schedule import Schedule
    from gpu_backend.ops.kernels.recipe import KernelRecipe


def prepare_device(device: str = "auto") -> None:
    """Import the GPU's executor and start the GPU, on any thread, so that making a renderer need not.

    Does nothing for the CPU. Raises nothing: a GPU that does not start is reported when a renderer is made.
    """
    with contextlib.suppress(DeviceError):
        gpu = choose_gpu(device)
        if gpu is None:
            return
        # Imported here, because only a GPU needs it.
        from gpu_backend.cuda import executor

        executor.start_gpu(gpu)
        importlib.import_module("gpu_backend.renderer.renderer")


def compile_kernels(
    model: Model,
    device: str = "auto",
    *,
    precision: Precision = "fp16",
    of_layers: bool = False,
    progress: Callable[[int, int], None] | None = None,
    should_cancel: Callable[[], bool] | None = None,
) -> None:
    """Compile the missing kernels for single pictures of a model; drafts need no further kernels.

    Includes the plain kernels, which serve as fallbacks and for self-checks. A kernel that does not compile is not an
    error here: the renderer reports it and its fallback.

    Parameters
    ----------
    device
        As for `Renderer`. On the CPU there is nothing to compile.
    of_layers
        Compile the kernels for taps and local edits instead, on one thread, because pictures are rendered meanwhile.
    progress
        Called with the number of finished kernels and the total, at the start and after each kernel.
    should_cancel
        Called every few hundredths of a second. Once it returns true, no further kernel is started.

    Raises
    ------
    DeviceError
        If there is no device of that name, or no compiler.
    CancelledError
        If `should_cancel` returned true.
    """
    gpu = choose_gpu(device)
    if gpu is None:
        return
    # Imported here, because only a GPU needs it.
    from gpu_backend.cuda.compiling import compilation

    compilation.compile_kernels(
        layer_recipes_of(model, gpu, precision) if of_layers else recipes_of(model, gpu, precision),
        gpu.compile_architecture,
        progress=progress,
        should_cancel=should_cancel,
        threads=1 if of_layers else None,
    )


def kernels_ready(model: Model, device: str = "auto", *, precision: Precision = "fp16") -> tuple[int, int]:
    """Return the number of compiled kernels and the total; (0, 0) if the CPU renders.

    Raises
    ------
    DeviceError
        If there is no device of that name, or no compiler.
    """
    gpu = choose_gpu(device)
    if gpu is None:
        return 0, 0
    from gpu_backend.cuda.compiling import compilation

    recipes = recipes_of(model, gpu, precision)
    return compilation.ready_count(recipes, gpu.compile_architecture), len(recipes)


def recipes_of(model: Model, gpu: Gpu, precision: Precision) -> tuple[KernelRecipe, ...]:
    """Return the distinct kernels for one latent and one full picture: fused, plain, and for measurements.

    Of a network that is tried in fp16 when it is first opened, also those of the pictures that decide.
    """
    # Imported here: opening a model needs it, and the window's start does not.
    from gpu_backend.renderer.fp16_range import may_exceed_fp16

    usable, _ = usable_precision(model, gpu, precision)
    precisions = [usable]
    if usable in ("fp16", "fp8") and may_exceed_fp16(model.spec):
        precisions += ["fp16", "fp32"]
    return recipes_in(chain.from_iterable(schedules_of(model, gpu, one) for one in dict.fromkeys(precisions)))


def layer_recipes_of(model: Model, gpu: Gpu, precision: Precision) -> tuple[KernelRecipe, ...]:
    """Return the distinct kernels for taps of one picture and for local edits, fused and plain.

    Of blends they are those of one, in all layers.
    """
    from gpu_backend.cuda.launches.lowering import lower
    from gpu_backend.cuda.tiles.table import tuned_folder
    from gpu_backend.cuda.tiles.target import target_of

    precision, _ = usable_precision(model, gpu, precision)
    target = target_of(gpu, tuned_folder())
    model_id, side = model.facts.model_id, model.spec.resolution
    taps = (PlanKey(model_id, "synthesis", 1, precision=precision, tap=layer.name) for layer in model.facts.layers)
    edits = PlanEdits(tuple(sorted(bendable_layers(model.spec))), shifts_styles=True)
    edited = (
        PlanKey(model_id, "synthesis", 1, side, precision, edits=one)
        for one in (edits, PlanEdits(blends=(RowRange(),)))
    )
    build = partial(build_plan, model.spec)
    plans = [build(key_that_keeps(key, build)) for key in (*taps, *edited)]
    return recipes_in(
        lower(plan, model.weights, target, everything_plain=is_plain) for is_plain in (False, True) for plan in plans
    )


def recipes_in(schedules: Iterable[Schedule]) -> tuple[KernelRecipe, ...]:
    """Return the distinct kernels of schedules, including kernels for measurements and self-checks."""
    from gpu_backend.cuda.driver.comparison import COMPARISON
    from gpu_backend.cuda.executor import EMPTY

    of_schedules = (recipe for schedule in schedules for recipe in schedule.recipes)
    return tuple(dict.fromkeys((*of_schedules, EMPTY, COMPARISON)))


def schedules_of(model: Model, gpu: Gpu, precision: Precision) -> tuple[Schedule, Schedule, Schedule]:
    """Return the schedules of one full picture, of one latent, and of the picture with plain kernels only."""
    from gpu_backend.cuda.launches.lowering import lower
    from gpu_backend.cuda.tiles.table import tuned_folder
    from gpu_backend.cuda.tiles.target import target_of

    precision, _ = usable_precision(model, gpu, precision)
    target = target_of(gpu, tuned_folder())
    spec, model_id = model.spec, model.facts.model_id
    mapping = build_plan(spec, PlanKey(model_id, "mapping", 1, precision=precision))
    synthesis = build_plan(spec, PlanKey(model_id, "synthesis", 1, spec.resolution, precision))
    return (
        lower(synthesis, model.weights, target),
        lower(mapping, model.weights, target),
        lower(synthesis, model.weights, target, everything_plain=True),
    )

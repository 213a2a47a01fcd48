"""The kernels that a model needs on a GPU, made ready before anything is rendered.

Nothing here touches the driver but the probe, so any thread may compile while another one renders on the CPU. A kernel
that is ready lies in the person's cache folder, where the GPU's executor finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from gpu_backend.device import choose_gpu
from gpu_backend.model import Model
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey, Precision

if TYPE_CHECKING:
    from gpu_backend.cuda.probe import Gpu
    from gpu_backend.cuda.schedule import Schedule
    from gpu_backend.ops.kernels.recipe import KernelRecipe


def compile_kernels(
    model: Model,
    device: str = "auto",
    *,
    precision: Precision = "fp16",
    of_layers: bool = False,
    progress: Callable[[int, int], None] | None = None,
    should_cancel: Callable[[], bool] | None = None,
) -> None:
    """Compile what is missing for pictures of a model, one at a time; drafts need no others.

    Kernels that stand in for those that fail, and that those are checked with, are among them. A kernel that does not
    compile is no error here: the renderer names it, and what stands in for it.

    Parameters
    ----------
    device
        As for `Renderer`; where it stands for the CPU, there is nothing to do.
    of_layers
        Compile what it takes to show each layer instead of the picture, and on one thread: nobody waits for it yet, and
        pictures are rendered meanwhile.
    progress
        Told how many of how many are done: at the beginning, and whenever one is.
    should_cancel
        Asked every few hundredths of a second; once it says yes, nothing else is begun.

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
    # Imported here, like everything that only a GPU needs.
    from gpu_backend.cuda import compilation

    compilation.compile_kernels(
        layer_recipes_of(model, gpu, precision) if of_layers else recipes_of(model, gpu, precision),
        gpu.compile_architecture,
        progress=progress,
        should_cancel=should_cancel,
        threads=1 if of_layers else None,
    )


def kernels_ready(model: Model, device: str = "auto", *, precision: Precision = "fp16") -> tuple[int, int]:
    """Return how many of how many kernels need no compiling; (0, 0) where the CPU renders.

    Raises
    ------
    DeviceError
        If there is no device of that name, or no compiler.
    """
    gpu = choose_gpu(device)
    if gpu is None:
        return 0, 0
    from gpu_backend.cuda import compilation

    recipes = recipes_of(model, gpu, precision)
    return compilation.ready_count(recipes, gpu.compile_architecture), len(recipes)


def recipes_of(model: Model, gpu: Gpu, precision: Precision) -> tuple[KernelRecipe, ...]:
    """Return the kernels for one latent and one full picture, fused and plain, and for measuring, each once."""
    return recipes_in(schedules_of(model, gpu, precision))


def layer_recipes_of(model: Model, gpu: Gpu, precision: Precision) -> tuple[KernelRecipe, ...]:
    """Return the kernels that show any layer of one picture, fused and plain, each once."""
    from gpu_backend.cuda.lowering import lower
    from gpu_backend.cuda.target import target_of
    from gpu_backend.cuda.tiles import tuned_folder

    target = target_of(gpu, tuned_folder())
    keys = (
        PlanKey(model.facts.model_id, "synthesis", 1, precision=precision, tap=layer.name)
        for layer in model.facts.layers
    )
    plans = [build_plan(model.spec, key) for key in keys]
    return recipes_in(
        lower(plan, model.weights, target, everything_plain=is_plain) for is_plain in (False, True) for plan in plans
    )


def recipes_in(schedules: Iterable[Schedule]) -> tuple[KernelRecipe, ...]:
    """Return the kernels of schedules, and those for measuring and checking, each once."""
    from gpu_backend.cuda.comparison import COMPARISON
    from gpu_backend.cuda.executor import EMPTY

    of_schedules = (recipe for schedule in schedules for recipe in schedule.recipes)
    return tuple(dict.fromkeys((*of_schedules, EMPTY, COMPARISON)))


def schedules_of(model: Model, gpu: Gpu, precision: Precision) -> tuple[Schedule, Schedule, Schedule]:
    """Return the launches of one full picture, of one latent, and of the picture by plain kernels alone."""
    from gpu_backend.cuda.lowering import lower
    from gpu_backend.cuda.target import target_of
    from gpu_backend.cuda.tiles import tuned_folder

    target = target_of(gpu, tuned_folder())
    spec, model_id = model.spec, model.facts.model_id
    mapping = build_plan(spec, PlanKey(model_id, "mapping", 1, precision=precision))
    synthesis = build_plan(spec, PlanKey(model_id, "synthesis", 1, spec.resolution, precision))
    return (
        lower(synthesis, model.weights, target),
        lower(mapping, model.weights, target),
        lower(synthesis, model.weights, target, everything_plain=True),
    )

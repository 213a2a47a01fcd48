"""Time the steps of a drag on a GPU: ``python packaging/drag_steps.py``. Networks of public sizes, random weights.

``steps``     steps a second by own kernels, beside the same network, loss and Adam in plain PyTorch: as written,
              compiled, and compiled with CUDA graphs
``kernels``   microseconds of each kernel of a step, by CUPTI (extra ``profile``)
``families``  seconds of an iteration of Gauss-Newton, of its longest step and of a check of the handles, by PyTorch:
              StyleGAN1, StyleGAN3 and StyleGAN-XL

Tables go to ``assets/results/drag``. A step is forward to the block that a drag compares, loss, backward and Adam; by
own kernels it also moves the handle, and the host reads it back.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drag_benchmark import say, write_table

from gpu_backend import DragOptimizer, DragSettings, Handle, latent_statistics, open_gradients
from gpu_backend.bench.plain_stylegan2 import PlainSynthesis
from gpu_backend.bench.random_model import random_model
from gpu_backend.bench.shapes import SHAPES
from gpu_backend.cuda.timing.cupti_records import cupti_records
from gpu_backend.gradients.drag import default_block
from gpu_backend.gradients.drag_settings import default_drag_rows
from gpu_backend.gradients.gpu.drag import GpuDrag
from gpu_backend.gradients.sampling import patch_offsets, sample
from gpu_backend.model.spec import StyleGAN2Spec

_ROUNDS = 5
_TURN_S = 0.12
_RECORDED_STEPS, _WARM_UP_STEPS = 20, 50
_MODES: dict[str, str | None] = {"compiled, CUDA graphs": "reduce-overhead", "compiled": "default", "eager": None}
"""Ways of running PyTorch, by the mode of `torch.compile`."""


def own_drag(name: str) -> DragOptimizer:
    """Return a drag of one point under a mask, in the network of a shape, by own kernels. Its handle never arrives."""
    model = random_model(SHAPES[name])
    network = open_gradients(model)
    rows = np.random.default_rng(0).standard_normal((model.spec.num_ws, model.spec.w_dim)).astype(np.float32)
    side = model.spec.resolution
    mask = np.zeros((side, side), np.float32)
    mask[side // 2 :] = 1.0
    settings = DragSettings(mask=mask, check_every=0)
    handle = Handle((side / 3, side / 4), (side * 2 / 3, side / 3))
    known = latent_statistics(network)
    drag = DragOptimizer(network, known, rows, model.facts.row_resolutions, [handle], settings)
    if not isinstance(drag._engine, GpuDrag):
        raise SystemExit(network.own_kernels.problem if network.own_kernels else "There is no GPU for own kernels.")
    return drag


class PlainDrag:
    """A step of the same drag in plain PyTorch, on a network as one would write it.

    The handle stays where it is, and the template as well.
    """

    def __init__(self, name: str, mode: str | None, device: str = "cuda", dtype: torch.dtype = torch.float16) -> None:
        model = random_model(SHAPES[name])
        spec = model.spec
        assert isinstance(spec, StyleGAN2Spec)
        settings = DragSettings()
        torch.manual_seed(1)
        synthesis = PlainSynthesis(spec).to(device, dtype)
        synthesis = synthesis.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        block = default_block(open_gradients(model, device="cpu"))
        count = sum(layer.kind != "to_rgb" and layer.resolution <= block for layer in spec.layers)
        last = default_drag_rows(model.facts.row_resolutions).last
        assert last is not None
        rows = torch.randn(spec.num_ws, spec.w_dim, device=device)
        self._free = rows[: last + 1].clone().requires_grad_()
        fixed = rows[last + 1 :]
        self._adam = torch.optim.Adam([self._free], settings.rate, fused=device == "cuda")
        mask = torch.zeros(block, block, device=device)
        mask[block // 2 :] = 1.0
        patch = torch.tensor([block / 3, block / 4], device=device) + patch_offsets(settings.radius, rows)

        def features(free: Tensor) -> Tensor:
            ws = torch.cat([free, fixed]).to(dtype)[None]
            x: Tensor = synthesis.const
            for index in range(count):
                x = synthesis.convs[index](x, ws[:, index])
            return x.float()

        with torch.no_grad():
            first = features(self._free)
            template = sample(first, patch + 1.0)

        def loss(free: Tensor) -> Tensor:
            found = features(free)
            apart = (found - first).abs().mean(1)
            kept = settings.faint * apart.mean() + settings.keep * (apart * mask).mean()
            at_handle: Tensor = functional.l1_loss(sample(found, patch), template)
            return 1024.0 * (at_handle + kept)

        self._loss: Callable[[Tensor], Tensor] = loss if mode is None else torch.compile(loss, mode=mode, dynamic=False)

    def step(self) -> Tensor:
        """Do a step; return its loss, which may still be computed."""
        self._adam.zero_grad()
        loss = self._loss(self._free)
        loss.backward()  # type: ignore[no-untyped-call]
        self._adam.step()
        return loss.detach()


def seconds_a_step(ways: Sequence[Callable[[], int]]) -> list[float]:
    """Return the medians over rounds of each way's seconds a step; the ways take turns. A call returns its steps."""
    counts = [max(4, round(_TURN_S / _seconds_of(way, 4))) for way in ways]
    found: list[list[float]] = [[] for _ in ways]
    for _ in range(_ROUNDS):
        for way, count, times in zip(ways, counts, found, strict=True):
            times.append(_seconds_of(way, count))
    return [statistics.median(times) for times in found]


def _seconds_of(way: Callable[[], int], count: int) -> float:
    """Return the mean seconds of a step, of at least `count` in a row."""
    torch.cuda.synchronize()
    began_s, done = time.perf_counter(), 0
    while done < count:
        done += way()
    torch.cuda.synchronize()
    return (time.perf_counter() - began_s) / done


def _own_steps(drag: DragOptimizer) -> int:
    before = drag.count
    drag.step()
    return drag.count - before


def _peer_step(peer: PlainDrag) -> int:
    peer.step()
    return 1


def time_steps(names: Sequence[str], modes: Sequence[str]) -> None:
    """Write steps a second of each shape, by own kernels and by PyTorch, by turns; anew with each way of PyTorch."""
    table: list[dict[str, Any]] = []
    for name in names:
        drag = own_drag(name)
        drag.step()
        ways: dict[str, Callable[[], int]] = {"own kernels": partial(_own_steps, drag)}
        found: list[dict[str, Any]] = []
        for way in (None, *modes):
            if way is not None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    peer = PlainDrag(name, _MODES[way])
                    for _ in range(4):
                        if not torch.isfinite(peer.step()):
                            raise SystemExit(f"{way}: the loss is not finite")
                ways[f"torch {torch.__version__}, {way}"] = partial(_peer_step, peer)
            own_s, *peers_s = seconds_a_step(list(ways.values()))
            found = [_row(name, "own kernels", own_s) | {"gpu_ms": round(1e3 * replayed_seconds(drag), 4)}]
            for by, peer_s in zip(list(ways)[1:], peers_s, strict=True):
                found.append(_row(name, by, peer_s) | {"own_is_times": round(peer_s / own_s, 2)})
            write_table("steps", table + found)
        table += found
        torch.compiler.reset()


def _row(name: str, by: str, seconds: float) -> dict[str, Any]:
    return {"shape": name, "by": by, "ms": round(1e3 * seconds, 4), "steps_a_second": round(1 / seconds)}


def replayed_seconds(drag: DragOptimizer, count: int = 200) -> float:
    """Return a step's seconds on the GPU alone: its graph, replayed without reading anything back."""
    engine = drag._engine
    assert isinstance(engine, GpuDrag)
    found = []
    with engine._gpu.work(engine) as driver:
        assert engine._graph is not None
        for _ in range(_ROUNDS):
            driver.record(engine._gpu.done)
            driver.wait(engine._gpu.done)
            began_s = time.perf_counter()
            for _ in range(count):
                driver.replay(engine._graph)
            driver.record(engine._gpu.done)
            driver.wait(engine._gpu.done)
            found.append((time.perf_counter() - began_s) / count)
    return statistics.median(found)


def time_kernels(names: Sequence[str]) -> None:
    """Write the microseconds of each kernel of a step, medians, in the order in which they run."""
    records = cupti_records()
    if records is None:
        raise SystemExit("Kernels are timed with the extra profile: pip install 'latentloom[profile]'.")
    for name in names:
        drag = own_drag(name)
        network = drag._engine._gpu.network  # type: ignore[attr-defined]
        launched: list[tuple[str, tuple[int, int, int]]] = []
        launch = network.launch

        def noted(recipe: Any, grid: Any, *rest: Any, _launch: Any = launch, _to: Any = launched, **more: Any) -> None:
            _to.append((recipe.title, grid))
            _launch(recipe, grid, *rest, **more)

        network.launch = noted
        drag.step()  # captures
        for _ in range(_WARM_UP_STEPS):
            drag.step()
        runs: list[list[float]] = []
        gaps: list[float] = []
        for _ in range(_RECORDED_STEPS):
            records.start()
            drag._engine.step()  # one alone
            found = sorted((r for r in records.stop() if r.name.startswith("gradient_")), key=lambda r: r.start_ns)
            if len(found) == len(launched):
                runs.append([(r.end_ns - r.start_ns) / 1e3 for r in found])
                gaps.append((found[-1].end_ns - found[0].start_ns) / 1e3 - sum(runs[-1]))
        times = np.median(np.array(runs), 0)
        table = [
            {"number": number, "kernel": title, "grid": "x".join(map(str, grid)), "us": round(float(us), 2)}
            for number, ((title, grid), us) in enumerate(zip(launched, times, strict=True))
        ]
        table.append({"number": "", "kernel": "all", "grid": "", "us": round(float(times.sum()), 1)})
        table.append({"number": "", "kernel": "between them", "grid": "", "us": round(statistics.median(gaps), 1)})
        write_table(f"kernels_{name}", table)
        by_stem: dict[str, float] = {}
        for (title, _), us in zip(launched, times, strict=True):
            by_stem[title] = by_stem.get(title, 0.0) + float(us)
        for title, us in sorted(by_stem.items(), key=lambda item: -item[1]):
            say(f"  {name} {title}: {us:.1f} us")


def time_families(names: Sequence[str], device: str) -> None:
    """Write seconds of Gauss-Newton for each shape."""
    table: list[dict[str, Any]] = []
    for name in names:
        model = random_model(SHAPES[name])
        network = open_gradients(model, device=device)
        rows = np.random.default_rng(0).standard_normal((model.spec.num_ws, model.spec.w_dim)).astype(np.float32)
        side = model.spec.resolution
        handle = Handle((side / 3, side / 4), (side * 2 / 3, side / 3))
        known = latent_statistics(network)
        drag = DragOptimizer(network, known, rows, model.facts.row_resolutions, [handle], DragSettings(check_every=1))
        checks: list[float] = []
        steps: list[float] = []
        iterations: list[float] = []
        while len(checks) < _ROUNDS:
            seen, began_s = drag._seen, time.perf_counter()
            drag.step()
            if network.device.type == "cuda":
                torch.cuda.synchronize()
            took_s = time.perf_counter() - began_s
            drag._is_lost[0] = drag._is_weak[0] = False  # random weights do not move content along
            drag._choose_motions()
            if drag._seen is not seen:
                checks.append(took_s)
                iterations.append(0.0)
            else:
                steps.append(took_s)
                iterations[-1] += took_s
        table.append(
            {
                "shape": name,
                "block": default_block(network),
                "directions": len(known.directions),
                "iteration_s": round(statistics.median(iterations[1:-1]), 4),
                "longest_step_s": round(max(steps[len(steps) // _ROUNDS :]), 4),
                "check_s": round(statistics.median(checks[1:]), 4),
            }
        )
        write_table("families", table)


def main(words: Sequence[str] | None = None) -> None:
    """Run the parts that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=["kernels", "steps"], choices=("kernels", "steps", "families"))
    parser.add_argument("--shapes", nargs="+", default=["ffhq1024", "ffhq256"], choices=SHAPES)
    parser.add_argument(
        "--torch", nargs="*", default=list(_MODES), choices=list(_MODES), help="ways of running PyTorch"
    )
    parser.add_argument("--families", nargs="+", default=["adain1024", "t1024", "r1024", "xl1024"], choices=SHAPES)
    parser.add_argument("--device", default="auto", help="of the families")
    options = parser.parse_args(words)
    if "kernels" in options.parts:
        time_kernels(options.shapes)
    if "steps" in options.parts:
        time_steps(options.shapes, options.torch)
    if "families" in options.parts:
        time_families(options.families, options.device)


if __name__ == "__main__":
    main()

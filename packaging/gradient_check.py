"""Compare gradients of rows of w with fp64 autograd: ``python packaging/gradient_check.py``.

Networks are the golden StyleGAN2 files, some of ugly sizes with random weights, and the bundled model. For each row of
w and each of some latents the table has the cosine of the gradient with that of PyTorch in fp64 on the processor:

``drag``        of the loss of a step of a drag, as the step computes it: features, loss and the way back
``pass``        of the same loss, its gradient at the features given in fp64: the network's passes alone
``search``      of the loss of a step of a search at the full resolution, with features where the model has some

The absolute differences in a drag's loss have kinks: where rounding turns the sign of one, ``drag`` differs and
``pass`` does not. Gradients are those of the processor in fp32 and, where there is a GPU, of own kernels. The table
goes to ``assets/results/drag``.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parents[1]))

from drag_benchmark import say, write_table

from explorer_app.assets import bundled_model
from gpu_backend import (
    DifferentiableNetwork,
    DragOptimizer,
    DragSettings,
    Handle,
    LatentStatistics,
    Model,
    latent_statistics,
    open_encoder,
    open_features,
    open_gradients,
    read_model,
)
from gpu_backend.cuda.driver.probe import probe
from gpu_backend.gradients.drag import default_block
from gpu_backend.gradients.drag_engine import TorchEngine
from gpu_backend.gradients.gpu.drag import GpuDrag, GpuHandle
from gpu_backend.gradients.latents import sample_w
from gpu_backend.gradients.network import NetworkPasses, differentiable_network
from gpu_backend.gradients.picture_features import PictureFeatures
from gpu_backend.gradients.picture_loss import PictureLoss
from gpu_backend.model.spec import StyleGAN2Spec
from tests.helpers.networks import make_stylegan2

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "data" / "golden"
MUST, AIM = 0.999, 0.9999
_UGLY: dict[str, dict[str, Any]] = {
    "odd channels, 16": {"channels": {4: 36, 8: 28, 16: 25}},
    "odd channels, 64": {"resolution": 64, "channels": {4: 16, 8: 16, 16: 70, 32: 130, 64: 42}},
    "many channels, 64": {"resolution": 64, "channels": {4: 520, 8: 300, 16: 264, 32: 500, 64: 72}},
    "lopsided filter, 32": {"resolution": 32, "fir": (1, 2, 5, 1), "channel_max": 33, "channel_base": 1056},
    "orig, wide w, 32": {"resolution": 32, "architecture": "orig", "w_dim": 40, "channel_max": 40, "channel_base": 640},
}
_PSI = 0.8
_MOVED = 0.1
"""Of the way to another latent, for each row another one, that a drag or a search is away from its start or target."""

Rows = NDArray[np.float32]
"""(num_ws, w_dim)."""


def models(names: Sequence[str]) -> Iterator[tuple[str, Model]]:
    """Yield the networks of the table, those of some names alone if there are any."""
    found: dict[str, Callable[[], Model]] = {
        **{path.stem: partial(read_model, path) for path in sorted(GOLDEN.glob("*.pkl"))},
        **{name: partial(make_stylegan2, **options) for name, options in _UGLY.items()},
        "bundled": lambda: read_model(bundled_model()),
    }
    if unknown := {*names} - {*found}:
        raise SystemExit(f"There is no network {min(unknown)}; there are {', '.join(found)}.")
    for name in names or found:
        model = found[name]()
        if isinstance(model.spec, StyleGAN2Spec):
            yield name, model


class Way(NamedTuple):
    """One way to compute gradients.

    Attributes
    ----------
    by
        Its name in the table.
    passes
        The network's own, or those of own kernels.
    """

    by: str
    network: DifferentiableNetwork
    passes: NetworkPasses
    features: PictureFeatures | None


def in_torch(model: Model, by: str, dtype: torch.dtype) -> Way:
    """Return PyTorch on the processor."""
    network = differentiable_network(model, dtype=dtype)
    return Way(by, network, network, features_of(model, network))


def by_own_kernels(model: Model) -> Way:
    """Return own kernels on the GPU. Raises SystemExit if they refuse."""
    network = open_gradients(model, device="cuda")
    own = network.own_kernels
    passes = None if own is None else own.passes(network, 1, draft_side=0, draft_samples=1)
    if own is None or passes is None:
        raise SystemExit(f"Own kernels do not run here: {network.kernels_refusal or 'the log says why'}.")
    features = features_of(model, network)
    if features is not None:
        features = own.features(network, features, 1)
    return Way(f"own kernels, {torch.cuda.get_device_name()}", network, passes, features)


def features_of(model: Model, network: DifferentiableNetwork) -> PictureFeatures | None:
    """Return what a search compares pictures by; None for networks without a file."""
    has_file = Path(model.facts.path).is_file()
    return open_features(model, network, open_encoder(model, network)) if has_file else None


def latents(network: DifferentiableNetwork, seed: int) -> tuple[Rows, Rows]:
    """Return rows of a latent, and rows near it that differ from each other."""
    with torch.no_grad():
        w = sample_w(network, 1 + network.spec.num_ws, seed)
    w = network.mean_w + _PSI * (w - network.mean_w)
    start = w[:1].expand(network.spec.num_ws, -1)
    moved = start + _MOVED * (w[1:] - start)
    first, second = (np.ascontiguousarray(rows.cpu().numpy(), np.float32) for rows in (start, moved))
    return first, second


def drag_from(model: Model, way: Way, known: LatentStatistics, start: Rows) -> DragOptimizer:
    """Return a drag under a mask whose handle went one sample towards its target."""
    side = model.spec.resolution
    mask = np.zeros((side, side), np.float32)
    mask[side // 2 :] = 1.0
    handle = Handle((0.33 * side, 0.27 * side), (0.71 * side, 0.36 * side))
    settings = DragSettings(mask=mask, check_every=0, radius=1 if side < 64 else 2)
    drag = DragOptimizer(way.network, known, start, model.facts.row_resolutions, [handle], settings)
    own = way.network.own_kernels
    if own is not None and not isinstance(drag._engine, GpuDrag):
        raise SystemExit(f"PyTorch takes the place of own kernels: {own.problem}")
    (motion,) = drag._handles
    drag._engine.choose([motion])
    way_to_go = motion.target - motion.position
    place = motion.position + way_to_go / way_to_go.norm()
    if isinstance(motion, GpuHandle):
        motion._state[:2] = place.numpy()
    else:
        motion.position = place
    return drag


def gradient_of_drag(drag: DragOptimizer, rows: Rows) -> tuple[Rows, Tensor | None]:
    """Return the gradient of the loss of a drag's next step at other rows, and that at the features, of torch."""
    engine = drag._engine
    if isinstance(engine, GpuDrag):
        network = engine._gpu.network
        with engine._gpu.work(engine) as driver:
            driver.upload(network.ws, rows)
        engine.step()
        found = np.empty_like(rows)
        with engine._gpu.work(engine) as driver:
            # The step's own way back ends in new rows that may change, and leaves out the others' gradients.
            network.backward(engine._terms.block, engine._gradient, unit=engine._unit)
            driver.download(found, network.ws_gradient)
        return found, None
    assert isinstance(engine, TorchEngine)
    objective = engine._objective
    free = drag._network.tensor(rows)[None].requires_grad_()
    features = drag._network.features(free, objective._block)
    (at_features,) = torch.autograd.grad(objective.loss(features), features, retain_graph=True)
    (gradient,) = torch.autograd.grad(features, free, at_features)
    return gradient[0].numpy(), at_features


def gradient_of_pass(way: Way, block: int, rows: Rows, at_features: Tensor) -> Rows:
    """Return the gradient of rows from one at the features of a block."""
    free = way.network.tensor(rows)[None].requires_grad_()
    features = way.passes.features(free, block)
    (gradient,) = torch.autograd.grad(features, free, at_features.to(features))
    found: Rows = gradient[0].cpu().numpy()
    return found


def gradient_of_search(way: Way, wanted: Tensor, rows: Rows) -> Rows:
    """Return the gradient of the loss of a search for pictures (1, 3, side, side)."""
    free = way.network.tensor(rows)[None].requires_grad_()
    loss = PictureLoss(wanted.to(way.network.mean_w), way.features, way.passes.terms)
    (gradient,) = torch.autograd.grad(loss(way.passes.picture(free)).sum(), free)
    found: Rows = gradient[0].cpu().numpy()
    return found


def agreement(found: NDArray[Any], wanted: NDArray[Any]) -> list[tuple[float, float] | None]:
    """Return the cosine and the relative error of the length of each row; None for rows that nothing depends on."""
    agreements: list[tuple[float, float] | None] = []
    for mine, theirs in zip(found.astype(np.float64), wanted.astype(np.float64), strict=True):
        own_size, size = float(np.linalg.norm(mine)), float(np.linalg.norm(theirs))
        if size == own_size == 0.0:
            agreements.append(None)
            continue
        cosine = float(mine @ theirs) / max(size * own_size, 1e-300)
        agreements.append((cosine if np.isfinite(cosine) else 0.0, abs(own_size / max(size, 1e-300) - 1.0)))
    return agreements


def compared(name: str, model: Model, ways: Sequence[Way], count: int) -> list[dict[str, Any]]:
    """Return a row of the table for each row of w, loss and way."""
    exact = in_torch(model, "fp64", torch.float64)
    known = latent_statistics(exact.network)
    block = default_block(exact.network)
    found: dict[tuple[str, str], list[list[tuple[float, float] | None]]] = {}
    for seed in range(count):
        start, rows = latents(exact.network, seed)
        with torch.no_grad():
            wanted = exact.network.picture(exact.network.tensor(start)[None]).clamp(-1, 1)
        of_drag, at_features = gradient_of_drag(drag_from(model, exact, known, start), rows)
        assert at_features is not None
        of_search = gradient_of_search(exact, wanted, rows)
        for way in ways:
            gradients = {
                "drag": (gradient_of_drag(drag_from(model, way, known, start), rows)[0], of_drag),
                "pass": (gradient_of_pass(way, block, rows, at_features), of_drag),
                "search": (gradient_of_search(way, wanted, rows), of_search),
            }
            for loss, pair in gradients.items():
                found.setdefault((loss, way.by), []).append(agreement(*pair))
    table = []
    for (loss, by), of_latents in sorted(found.items()):
        for row, of_row in enumerate(zip(*of_latents, strict=True)):
            if agreements := [one for one in of_row if one is not None]:
                cosines, errors = zip(*agreements, strict=True)
                table.append(
                    {
                        "network": name,
                        "loss": loss,
                        "by": by,
                        "row": row,
                        "latents": len(cosines),
                        "least_cosine": f"{min(cosines):.9f}",
                        "median_cosine": f"{statistics.median(cosines):.9f}",
                        "length_error": f"{max(errors):.6f}",
                    }
                )
    return table


def summary(table: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each network, loss and way: the least cosine of all rows and latents, and medians."""
    yield f"{'network':<26}{'loss':<8}{'by':<30}{'rows':>5}{'least':>13}{'of row':>8}{'median':>13}"
    for key in dict.fromkeys((row["network"], row["loss"], row["by"]) for row in table):
        rows = [row for row in table if (row["network"], row["loss"], row["by"]) == key]
        worst = min(rows, key=lambda row: float(row["least_cosine"]))
        median = statistics.median(float(row["median_cosine"]) for row in rows)
        yield (
            f"{key[0]:<26}{key[1]:<8}{key[2]:<30}{len(rows):>5}{float(worst['least_cosine']):>13.8f}"
            f"{worst['row']:>8}{median:>13.8f}"
        )
    for by in dict.fromkeys(row["by"] for row in table):
        rows = [row for row in table if row["by"] == by]
        for limit in (MUST, AIM):
            reached = [sum(float(row[column]) >= limit for row in rows) for column in ("least_cosine", "median_cosine")]
            yield f"{by}: {limit} in every latent in {reached[0]} of {len(rows)} rows, in the median in {reached[1]}"


def main(words: Sequence[str] | None = None) -> None:
    """Write the table after each network, and print a short one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", default=[], metavar="NAME", help="some of the networks alone")
    parser.add_argument("--latents", type=int, default=8)
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"), help="auto takes a GPU if any")
    options = parser.parse_args(words)
    has_gpu = options.device == "cuda" or (
        options.device == "auto" and torch.cuda.is_available() and bool(probe().gpus)
    )
    table: list[dict[str, Any]] = []
    for name, model in models(options.networks):
        began_s = time.perf_counter()
        ways = [in_torch(model, "processor, fp32", torch.float32)]
        if has_gpu:
            ways.append(by_own_kernels(model))
        table += compared(name, model, ways, options.latents)
        write_table("gradient_cosines", table)
        say(f"{name}: {time.perf_counter() - began_s:.1f} s")
    for line in summary(table):
        say(line)


if __name__ == "__main__":
    main()

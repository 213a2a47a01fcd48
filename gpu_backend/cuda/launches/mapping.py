"""The operations of a mapping plan, one launch each. fp32 throughout; regions are the plan's buffers, not padded."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.conv_arguments import ACTIVATION_NUMBERS
from gpu_backend.cuda.launches.gpu_op import GpuOp, LoweringContext
from gpu_backend.cuda.launches.row_pass import rows_of_a_pass, shared_nbytes
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.schedule import Address, Built, Constant, Launch
from gpu_backend.model.model import Weights
from gpu_backend.ops.concat import Concat
from gpu_backend.ops.embedding import Embedding
from gpu_backend.ops.fully_connected import FullyConnected
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.normalize_2nd_moment import Normalize2ndMoment
from gpu_backend.plan.fusion import FusedStep
from gpu_backend.plan.plan import Step

_ROWS_OF_BLOCK = 4
_THREADS = 128
_THREADS_OF_ROW = 256


class MappingOp(GpuOp):
    """An operation of the mapping network: one kernel, fp32, over the plan's own buffers."""

    def __init__(self, build: Callable[[Step, Weights, int], Built]) -> None:
        self._build = build

    def plain(self, step: FusedStep, context: LoweringContext, reason: str) -> Built:
        """Return the one launch.

        Raises
        ------
        DeviceError
            If a layer has more features than a block's shared memory holds.
        """
        return self._build(step.main, context.weights, context.batch)


def fully_connected_launch(step: Step, weights: Weights, batch: int) -> Built:
    """Build one layer: reads the step's input (batch, in), writes its output (batch, out)."""
    attributes: FullyConnected = step.attributes
    act = attributes.act
    rows = rows_of_a_pass(attributes.in_features, batch)
    padded = pad8(attributes.in_features)
    table, bias = (f"{step.weights[role]}/fully_connected" for role in ("weight", "bias"))
    launch = Launch(
        step.layer,
        "fully_connected",
        KernelRecipe.of("fully_connected", ACTIVATION=ACTIVATION_NUMBERS[act.activation], BATCH=rows),
        (-(-attributes.out_features // _ROWS_OF_BLOCK), -(-batch // rows), 1),
        (_THREADS, 1, 1),
        shared_nbytes(padded, rows),
        {
            "x": Address(step.inputs[0], "region"),
            "table": Address(table, "constant"),
            "bias": Address(bias, "constant"),
            "y": Address(step.outputs[0], "region"),
            "batch": np.int32(batch),
            "in_features": np.int32(attributes.in_features),
            "out_features": np.int32(attributes.out_features),
            "groups": np.int32(padded // 4),
            "gain": np.float32(act.gain),
            "clamp": np.float32(math.inf if act.clamp is None else act.clamp),
        },
        flops=step.flops,
        nbytes=step.nbytes,
    )
    constants = (
        Constant(table, partial(_table, weights, step.weights["weight"], attributes)),
        Constant(bias, partial(_bias, weights, step.weights["bias"], attributes)),
    )
    return Built((launch,), constants)


def normalize_launch(step: Step, weights: Weights, batch: int) -> Built:
    """Build a normalisation: reads the step's input and writes its output, both (batch, features)."""
    attributes: Normalize2ndMoment = step.attributes
    launch = Launch(
        step.layer,
        "normalize_2nd_moment",
        KernelRecipe("normalize_2nd_moment"),
        (batch, 1, 1),
        (_THREADS_OF_ROW, 1, 1),
        0,
        {
            "x": Address(step.inputs[0], "region"),
            "y": Address(step.outputs[0], "region"),
            "features": np.int32(attributes.features),
        },
        flops=step.flops,
        nbytes=step.nbytes,
    )
    return Built((launch,))


def concat_launch(step: Step, weights: Weights, batch: int) -> Built:
    """Build the joining of two inputs, (batch, n) and (batch, m), to the step's output (batch, n + m)."""
    attributes: Concat = step.attributes
    first, second = attributes.widths
    launch = Launch(
        step.layer,
        "concat",
        KernelRecipe("concat"),
        (-(-(first + second) // _THREADS_OF_ROW), batch, 1),
        (_THREADS_OF_ROW, 1, 1),
        0,
        {
            "first": Address(step.inputs[0], "region"),
            "second": Address(step.inputs[1], "region"),
            "joined": Address(step.outputs[0], "region"),
            "first_width": np.int32(first),
            "second_width": np.int32(second),
        },
        flops=step.flops,
        nbytes=step.nbytes,
    )
    return Built((launch,))


def embedding_launch(step: Step, weights: Weights, batch: int) -> Built:
    """Build the picking of a table's rows: reads labels (batch, c_dim), writes the step's output (batch, width)."""
    attributes: Embedding = step.attributes
    name = step.weights["table"]
    launch = Launch(
        step.layer,
        "embedding",
        KernelRecipe("embedding"),
        (-(-attributes.width // _THREADS), batch, 1),
        (_THREADS, 1, 1),
        0,
        {
            "c": Address(step.inputs[0], "region"),
            "table": Address(name, "constant"),
            "y": Address(step.outputs[0], "region"),
            "c_dim": np.int32(attributes.c_dim),
            "width": np.int32(attributes.width),
        },
        flops=step.flops,
        nbytes=step.nbytes,
    )
    return Built((launch,), (Constant(name, partial(weights.__getitem__, name)),))


def _table(weights: Weights, name: str, attributes: FullyConnected) -> NDArray[np.float32]:
    """Return W lr / sqrt(in), (out, in padded to 8)."""
    table = np.zeros((attributes.out_features, pad8(attributes.in_features)), np.float32)
    scale = np.float32(attributes.lr_multiplier / math.sqrt(attributes.in_features))
    table[:, : attributes.in_features] = weights[name] * scale
    return table


def _bias(weights: Weights, name: str, attributes: FullyConnected) -> NDArray[np.float32]:
    """Return b lr, (out,)."""
    return weights[name] * np.float32(attributes.lr_multiplier)

"""The rows: each is the one before with one more optimisation, but for the last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch

from gpu_backend.training.benchmark.options import RowName
from gpu_backend.training.benchmark.plain_layers import (
    make_networks_of_one_weight,
    make_networks_of_one_weight_and_pass,
    make_plain_networks,
)
from gpu_backend.training.methods import StepMethods
from gpu_backend.training.network_pair import Make, make_networks


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the benchmark.

    Attributes
    ----------
    what
        What this row adds.
    make
        Makes the networks.
    prefetch
        Pictures are loaded by a thread, pinned, and copied beside the work; otherwise fetched when a step begins.
    problem
        Why it cannot be measured here; empty if it can.
    no_gain
        What explains a row that gains nothing, or is slower.
    base
        Name of the row that this one changes; empty for the row before.
    """

    name: RowName
    what: str
    methods: StepMethods
    make: Make
    prefetch: bool = False
    problem: str = ""
    no_gain: str = ""
    base: RowName | Literal[""] = ""


def ladder(device: torch.device) -> Iterator[Row]:
    """Yield all rows; an optimisation that this device lacks is left out of all following rows."""
    on_gpu = device.type == "cuda"
    plain = StepMethods(set_to_none=False)
    yield Row("fp32", "as written down from the papers, in fp32 without TF32", plain, make_plain_networks)
    last = replace(plain, channels_last=True)
    yield Row(
        "channels-last",
        "pictures, features and weights with channels last",
        last,
        make_plain_networks,
        no_gain="this format is what tensor cores read, which compute from the row bf16 on",
    )
    bf16 = replace(last, low=torch.bfloat16, tf32=on_gpu)
    yield Row(
        "bf16",
        "layers in bfloat16, what stays fp32 beside them in TF32; weights and optimisers in fp32",
        bf16,
        make_plain_networks,
        no_gain="convolutions whose weights differ from picture to picture leave tensor cores idle"
        if on_gpu
        else "a processor without units for bfloat16 converts the numbers of every product",
    )
    yield Row(
        "weights",
        "the same weights for all pictures, whose gradients have gradients at the cost of ordinary ones",
        bf16,
        make_networks_of_one_weight,
        no_gain="a grouped convolution is as fast here as one of all pictures",
    )
    few = "the convolutions take most of the step" if on_gpu else "its kernels of one pass are for GPUs"
    yield Row(
        "activations",
        "scale, noise, bias and activation in one pass, with gradients of their own",
        bf16,
        make_networks_of_one_weight_and_pass,
        no_gain=few,
    )
    yield Row("filters", "filters in one pass", bf16, make_networks, no_gain=few)
    fused = replace(bf16, fused=True)
    yield Row(
        "adam",
        "Adam updates all parameters in one kernel",
        fused,
        make_networks,
        no_gain="Adam reads and writes each parameter once a step, next to hundreds of passes over features",
    )
    dropped = replace(fused, set_to_none=True)
    yield Row(
        "set-to-none",
        "gradients are dropped instead of zeroed",
        dropped,
        make_networks,
        no_gain="zeroing writes each gradient once a step, next to hundreds of passes over features",
    )
    graphs = replace(dropped, graphs=on_gpu)
    yield Row(
        "graph",
        "each update is a CUDA graph",
        graphs,
        make_networks,
        problem="" if on_gpu else "CUDA graphs need a GPU",
        no_gain="the GPU had no gaps between its kernels",
    )
    yield Row(
        "loading",
        "a thread loads and pins pictures ahead of the steps",
        graphs,
        make_networks,
        prefetch=True,
        no_gain="these pictures come from memory; files that are decoded take longer than a step",
    )
    slow = "" if on_gpu else "compiling for the processor takes minutes"
    yield Row(
        "compile",
        "torch.compile of both networks, but not in the regularisers",
        replace(graphs, compile=True),
        make_networks,
        prefetch=True,
        problem=slow,
        no_gain="the rows before have fused what it would fuse, and the row graph has removed the gaps",
    )
    yield Row(
        "compile-alone",
        "the row bf16 with torch.compile, and with nothing of the rows in between",
        replace(bf16, compile=True),
        make_plain_networks,
        problem=slow,
        no_gain="second derivatives of the regularisers stay eager, and so do their gaps",
        base="bf16",
    )

"""How a step is computed: choices that change its speed, not what it does."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gpu_backend.training.options import TrainOptions

_PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True, slots=True)
class StepMethods:
    """The ways of a device.

    Attributes
    ----------
    low
        What layers compute in; weights, gradients and optimisers stay float32.
    tf32
        Products of float32 round their factors to TF32: those of the mapping, of styles and of the last layers, which
        stay float32 beside half precision.
    channels_last
        Layout of pictures, features and weights.
    fused
        The optimiser updates all parameters in one kernel.
    set_to_none
        Gradients are dropped after a step; otherwise they are set to zero and added to.
    graphs
        Updates are captured as CUDA graphs and replayed.
    compile
        Both networks go through torch.compile, except in the regularisers, which differentiate twice.
    """

    low: torch.dtype = torch.float32
    tf32: bool = False
    channels_last: bool = False
    fused: bool = False
    set_to_none: bool = True
    graphs: bool = False
    compile: bool = False

    @classmethod
    def of(cls, options: TrainOptions, device: torch.device) -> StepMethods:
        """Choose what is fast on a device. With float16, the loss scale is found by looking at it: no graphs."""
        on_gpu = device.type == "cuda"
        usual = "bf16" if on_gpu else "fp32"
        low = _PRECISIONS[usual if options.precision == "auto" else options.precision]
        return cls(
            low=low,
            tf32=on_gpu and low != torch.float32,
            channels_last=on_gpu,
            fused=on_gpu,
            graphs=options.graphs and on_gpu and low != torch.float16,
            compile=options.compile,
        )

    def set_for_all(self) -> None:
        """Tell torch what it is only told for the whole process."""
        torch.backends.cudnn.benchmark = True  # shapes stay the same, so trying pays
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = self.tf32

    @property
    def memory_format(self) -> torch.memory_format:
        """Of four-dimensional tensors."""
        return torch.channels_last if self.channels_last else torch.contiguous_format

"""Execution options of a training step, which change its speed but not its result."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gpu_backend.training.options import TrainOptions

_PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True, slots=True)
class StepMethods:
    """Execution options for a device.

    Attributes
    ----------
    low
        Precision of the layers; weights, gradients and optimiser states stay float32.
    tf32
        Use TF32 for float32 products: mapping, styles and the last layers, which do not use half precision.
    channels_last
        Memory format of pictures, features and weights.
    fused
        The optimiser updates all parameters in one kernel.
    set_to_none
        Free gradients after a step instead of zeroing them.
    graphs
        Updates are captured as CUDA graphs and replayed.
    compile
        Use torch.compile for both networks, except in the regularisers, which need second derivatives.
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
        """Return the fastest options for a device. float16 excludes graphs, because its loss scale is read back."""
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
        """Apply the options that torch has only for the whole process."""
        torch.backends.cudnn.benchmark = True  # shapes are constant, so benchmarking pays off
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = self.tf32

    @property
    def memory_format(self) -> torch.memory_format:
        """Memory format of four-dimensional tensors."""
        return torch.channels_last if self.channels_last else torch.contiguous_format

"""The skips of a resnet's blocks: products of a block's input, doubled and added to its output, and their gradients.

With S the 1 x 1 convolution, U the doubling and h the output of the block before::

    h of the block = z + U(S(h)),   its gradient dh = dz,   dh of the block before = s * g + S^T(U^T(dh))
"""

from __future__ import annotations

import numpy as np

from gpu_backend.cuda.driver.arguments import Value
from gpu_backend.gradients.gpu.convs.choice import ConvChoice
from gpu_backend.gradients.gpu.convs.launch import add_slices
from gpu_backend.gradients.gpu.kernels import skip_adjoint_kernel, skip_kernel
from gpu_backend.gradients.gpu.memory import DeviceArrays
from gpu_backend.gradients.gpu.placed import PlacedConv, PlacedNetwork
from gpu_backend.gradients.gpu.sequence import KernelSequence
from gpu_backend.gradients.gpu.strips import STRIP_THREADS, strip_grid
from gpu_backend.ops.upfirdn import doubling_left_pad

_THREADS = 128


class ResnetSkips:
    """The passes of a network's skips; without any, it holds no memory.

    Parameters
    ----------
    arrays
        Own the memory.
    taps
        Of the resampling filter.
    multiprocessors
        Of the device.
    """

    def __init__(
        self, arrays: DeviceArrays, placed: PlacedNetwork, choice: ConvChoice, taps: int, multiprocessors: int
    ) -> None:
        self._placed, self._choice, self._taps, self._multiprocessors = placed, choice, taps, multiprocessors
        most = {skip: placed.most_samples(skip.spec.resolution) for skip in placed.skips.values()}
        numbers = (choice.most_sums(skip, samples) for skip, samples in most.items())
        outputs = (samples * skip.outputs * skip.spec.resolution**2 for skip, samples in most.items())
        self._sums = arrays.empty(4 * max(numbers)) if most else 0
        self._gradient = arrays.empty(2 * max(outputs)) if most else 0

    def forward(self, sequence: KernelSequence, index: int, following: PlacedConv | None, samples: int) -> None:
        """Enqueue the skip of the block whose last layer is at `index`, its sum, and the input of the next layer."""
        skip = self._placed.skips[index]
        self._multiply(sequence, skip, skip.x, samples, is_backward=False)
        side = skip.spec.resolution
        sequence.launch(
            skip_kernel(self._taps),
            (-(-(side**2) * skip.outputs // 4 // _THREADS), samples, 1),
            (_THREADS, 1, 1),
            {
                "sums": np.uint64(self._sums),
                "filter": np.uint64(self._placed.filter),
                "z": np.uint64(self._placed.layers[index].z),
                "next_style": None if following is None else np.uint64(self._placed.styles_at(following.spec)),
                "h": np.uint64(skip.z),
                "x": None if following is None else np.uint64(following.x),
                "side": side,
                "channels": skip.outputs,
                "left": doubling_left_pad(self._taps),
                "style_count": self._placed.table.styles,
                "unit": skip.packed.unit,
            },
        )

    def backward(self, sequence: KernelSequence, index: int, scratch: int, samples: int) -> None:
        """Enqueue the way back of the skip of the block whose last layer is at `index`.

        Parameters
        ----------
        scratch
            Address of (samples, side / 2, side / 2, outputs) fp16.
        """
        skip = self._placed.skips[index]
        strips = strip_grid(skip.source, skip.outputs, samples, self._multiprocessors, step=2)
        sequence.launch(
            skip_adjoint_kernel(self._taps),
            (strips.blocks, samples, 1),
            (STRIP_THREADS, 1, 1),
            {
                "from": np.uint64(self._gradient),
                "filter": np.uint64(self._placed.filter),
                "to": np.uint64(scratch),
                "side": skip.spec.resolution,
                "channels": skip.outputs,
                "rows": strips.rows,
                "left": doubling_left_pad(self._taps),
            },
        )
        self._multiply(sequence, skip, scratch, samples, is_backward=True)

    def of_activation(self, index: int, last: int) -> dict[str, Value]:
        """Return what gradient_activation of a layer needs besides, in a pass to the layer `last`; empty for nothing.

        It writes the gradient of the block's output for `backward`, and reads that which the next block's left.
        """
        own, after = self._placed.skips.get(index), self._placed.skip_after(index) if index + 2 <= last else None
        if own is None and after is None:
            return {}
        return {
            "h": np.uint64(self._placed.output(index)),
            "skip_sums": None if after is None else np.uint64(self._sums),
            "block_gradient": None if own is None else np.uint64(self._gradient),
            "skip_unit": 1.0 if after is None else after.packed.unit,
        }

    def _multiply(
        self, sequence: KernelSequence, skip: PlacedConv, source: int, samples: int, *, is_backward: bool
    ) -> None:
        """Enqueue the 1 x 1 products, or their adjoint, of what is at `source` into one slice of sums."""
        conv = self._choice.to_sums(skip, samples, is_backward=is_backward)
        conv.enqueue(sequence, source, skip.backward_weight if is_backward else skip.forward_weight, self._sums)
        if conv.slices > 1:
            channels = skip.inputs if is_backward else skip.outputs
            add_slices(sequence, self._sums, samples * skip.source**2 * channels, conv.slices)

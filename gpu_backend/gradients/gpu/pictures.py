"""The pictures of a skip generator: toRGB layers, doubled and added up, and the gradients of all from the last one's.

With p the picture of a side, R its toRGB layer and U the doubling::

    p = U(p of half the side) + clamp(R(z)),   dp of half the side = U^T(dp)

The way back from dp through R is part of gradient_activation.
"""

from __future__ import annotations

import numpy as np

from gpu_backend.cuda.driver.arguments import Value
from gpu_backend.cuda.driver.interface import Driver
from gpu_backend.gradients.gpu.kernels import PICTURE_LANES, GradientKernel, picture_adjoint_kernel, picture_kernel
from gpu_backend.gradients.gpu.placed import COLOURS, PlacedNetwork
from gpu_backend.gradients.gpu.sequence import KernelSequence
from gpu_backend.ops.upfirdn import doubling_left_pad

SCALE_BLOCKS = 264
"""Of gradient_largest and gradient_scaled: two for each multiprocessor of a large GPU."""
_BUSY_PIXELS = 256
"""Of a multiprocessor, from which on few threads do a pixel of a picture."""
_THREADS, _ADJOINT_THREADS, _PIXELS = 256, 128, 4
"""Of blocks, and pixels of the work of a thread of gradient_picture."""


class GpuPictures:
    """The passes of a network's pictures.

    Parameters
    ----------
    taps
        Of the resampling filter.
    multiprocessors
        Of the device.
    """

    def __init__(self, driver: Driver, placed: PlacedNetwork, taps: int, multiprocessors: int) -> None:
        self._driver, self._placed, self._taps, self._multiprocessors = driver, placed, taps, multiprocessors

    def forward(self, sequence: KernelSequence, side: int, samples: int) -> int:
        """Enqueue the picture of a side from activations and styles; return its address."""
        before: int | None = None
        for rgb in self._placed.rgbs_up_to(side):
            last = self._placed.last(rgb.spec.resolution)
            channels, pixels = self._placed.layers[last].outputs, rgb.spec.resolution**2
            lanes = PICTURE_LANES[0 if samples * pixels >= _BUSY_PIXELS * self._multiprocessors else 1]
            sequence.launch(
                picture_kernel(self._taps, lanes),
                (-(-pixels * lanes // (_PIXELS * _THREADS)), samples, 1),
                (_THREADS, 1, 1),
                {
                    "z": np.uint64(self._placed.output(last)),
                    "style": np.uint64(self._placed.styles_at(rgb.spec)),
                    "weight": np.uint64(rgb.weight),
                    "bias": np.uint64(rgb.bias),
                    "filter": np.uint64(self._placed.filter),
                    "before": None if before is None else np.uint64(before),
                    "planes": np.uint64(rgb.planes),
                    "picture": np.uint64(rgb.picture),
                    "side": rgb.spec.resolution,
                    "channels": channels,
                    "left": doubling_left_pad(self._taps),
                    "style_count": self._placed.table.styles,
                    "clamp": rgb.clamp,
                },
                shared_nbytes=4 * COLOURS * channels,
            )
            before = rgb.picture
        assert before is not None
        return before

    def take_gradient(
        self, sequence: KernelSequence, side: int, gradient: int, largest: int, least: float, parts: int, samples: int
    ) -> int:
        """Enqueue the gradient of a picture, divided by its largest magnitude; return its address for `backward`.

        Parameters
        ----------
        gradient
            Address of (samples, 3, side, side) fp32.
        largest
            Address of (samples,), for what each is divided by, at least `least`.
        parts
            Address of (samples, `SCALE_BLOCKS`).
        """
        to = self._placed.rgbs_up_to(side)[-1].gradient
        pointers = {"from": gradient, "largest": largest, "parts": parts, "to": to}
        values: dict[str, Value] = {name: np.uint64(address) for name, address in pointers.items()}
        values |= {"quads": COLOURS * side**2 // 4, "least": least}
        for stem in ("gradient_largest", "gradient_scaled"):
            kernel = GradientKernel(stem)
            arguments = {name: values[name] for name in kernel.parameters.names or ()}
            sequence.launch(kernel, (SCALE_BLOCKS, samples, 1), (_THREADS, 1, 1), arguments)
        return to

    def backward(self, sequence: KernelSequence, side: int, gradient: int, samples: int) -> None:
        """Enqueue the gradients of the pictures of all blocks.

        Parameters
        ----------
        gradient
            Address of the last one's, (samples, 3, side, side) fp32, which is not copied if `take_gradient` returned
            it.
        """
        rgbs = self._placed.rgbs_up_to(side)
        if gradient != rgbs[-1].gradient:
            sequence.break_sequence()
            self._driver.copy(rgbs[-1].gradient, gradient, 4 * samples * COLOURS * side**2)
            sequence.break_sequence()
        for rgb, before in zip(rgbs[:0:-1], rgbs[-2::-1], strict=True):
            sequence.launch(
                picture_adjoint_kernel(self._taps),
                (-(-(before.spec.resolution**2) // _ADJOINT_THREADS), COLOURS * samples, 1),
                (_ADJOINT_THREADS, 1, 1),
                {
                    "from": np.uint64(rgb.gradient),
                    "filter": np.uint64(self._placed.filter),
                    "to": np.uint64(before.gradient),
                    "side": rgb.spec.resolution,
                    "left": doubling_left_pad(self._taps),
                },
            )

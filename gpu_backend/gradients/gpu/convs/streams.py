"""Launches of gradient_streaming_conv, whose warpgroups go down strips of a wide picture with few channels."""

from __future__ import annotations

from gpu_backend.cuda.driver.arguments import EncodeMap
from gpu_backend.cuda.schedule import Address, TensorMap
from gpu_backend.gradients.gpu.convs.launch import WARPGROUP, ConvLaunch, channels_of, no_end
from gpu_backend.gradients.gpu.kernels import STREAMED_CHANNELS
from gpu_backend.gradients.gpu.placed import PlacedConv
from gpu_backend.ops.kernels.conv_tile import ALIGNMENT, aligned
from gpu_backend.ops.kernels.recipe import KernelRecipe

_STRIP_COLUMNS = 64
"""Of a warpgroup."""
_STREAMED_TAPS = 15
"""In shared memory: five rows of taps for each column, of which three begin any turn."""


def streaming_launch(
    kernel: KernelRecipe,
    layer: PlacedConv,
    samples: int,
    multiprocessors: int,
    encode: EncodeMap,
    *,
    is_backward: bool = False,
) -> ConvLaunch:
    """Return the launch of a kernel for at most `streamed_channels` channels, on so many multiprocessors."""
    inputs, outputs = channels_of(layer, is_backward=is_backward)
    macros, names, side = dict(kernel.defines), kernel.parameters.names or (), layer.source
    channels, warpgroups, stages = (int(macros[name]) for name in ("CHANNELS", "WARPGROUPS", "STAGES"))
    strips, is_way_back = -(-side // _STRIP_COLUMNS), "style_sums" in names
    # Several samples leave as many rows of sums each for any number of them.
    beside = min(samples, 2) if is_way_back else samples
    rows = -(-side // max(1, warpgroups * multiprocessors // (strips * beside)))
    blocks = -(-strips * -(-side // rows) // warpgroups)
    box = (channels, _STRIP_COLUMNS + 2, 1)
    row_nbytes = aligned(2 * channels * box[1])
    return ConvLaunch(
        kernel,
        (blocks, 1, samples),
        WARPGROUP * warpgroups,
        1,
        {
            **no_end(kernel),
            "side": side,
            "cin": inputs,
            "cout": outputs,
            "strip_rows": rows,
            "is_adjoint": int(is_backward),
        },
        ALIGNMENT + _STREAMED_TAPS * channels * 2 * channels + warpgroups * stages * row_nbytes,
        encode,
        {"x_map": TensorMap(Address("x", "region"), (inputs, side, side, samples), box)},
        blocks if is_way_back else 0,
    )


def streamed_channels(layer: PlacedConv) -> int:
    """Return the one of `STREAMED_CHANNELS` for a layer."""
    return next(channels for channels in STREAMED_CHANNELS if channels >= max(layer.inputs, layer.outputs))

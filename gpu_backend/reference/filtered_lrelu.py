"""The activation between two filters (Karras et al. 2021, section 3.1)."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from gpu_backend.ops.filtered_lrelu import FilteredLrelu
from gpu_backend.reference.bias_act import bias_act
from gpu_backend.reference.upfirdn import upfirdn


def filtered_lrelu(
    x: Tensor, up_filter: Tensor | None, down_filter: Tensor | None, attributes: FilteredLrelu
) -> Tensor:
    """Return fir(bias_act(fir(x))), (batch, channels, out_size, out_size).

    Parameters
    ----------
    x
        (batch, channels, in_size, in_size), with its bias.
    up_filter
        (up_taps,); None for none.
    down_filter
        (down_taps,), or (down_taps, down_taps) if it is radial; None for none.
    """
    taps = [1.0] if up_filter is None else up_filter.tolist()
    x = upfirdn(x, taps, up=attributes.up, pads=attributes.pads, gain=float(attributes.up) ** 2)
    x = bias_act(x, None, attributes.act)
    if down_filter is None:
        return x[:, :, :: attributes.down, :: attributes.down]
    channels, down = x.shape[1], attributes.down
    kernel = down_filter.flip(tuple(range(down_filter.ndim)))  # conv2d correlates
    if attributes.is_radial:
        return functional.conv2d(x, kernel.expand(channels, 1, -1, -1), stride=down, groups=channels)
    x = functional.conv2d(x, kernel[:, None].expand(channels, 1, -1, -1), stride=(down, 1), groups=channels)
    return functional.conv2d(x, kernel.expand(channels, 1, 1, -1), stride=(1, down), groups=channels)

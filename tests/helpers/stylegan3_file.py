"""The synthesis network of a StyleGAN3 in the format of NVIDIA's tools."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from gpu_backend.model import StyleGAN3Spec
from gpu_backend.model.spec import FilteredLayerSpec
from tests.helpers.pickle_writer import Call, Global
from tests.helpers.stylegan_xl_file import dill_array, stem_attributes

if TYPE_CHECKING:
    from tests.helpers.network_file import NetworkWriter


def stylegan3_synthesis(writer: NetworkWriter, spec: StyleGAN3Spec) -> Call:
    """All layers, with the attributes that the reader may look at."""
    attributes = {
        "w_dim": spec.w_dim,
        "num_ws": spec.num_ws,
        "img_resolution": spec.resolution,
        "img_channels": spec.img_channels,
        "num_layers": len(spec.layers) - 1,
        "num_critical": 2,
        "margin_size": 10,
        "output_scale": spec.output_scale,
        "num_fp16_res": 4,
        "layer_names": [layer.name for layer in spec.layers],
    }
    is_xl = spec.family == "stylegan_xl"
    if is_xl:
        attributes |= stem_attributes(spec)
    grid = spec.input
    modules = {
        "input": writer.module(
            "synthesis.input",
            "SynthesisInput",
            {
                "w_dim": spec.w_dim,
                "channels": grid.channels,
                "size": two_sizes(grid.size, is_dilled=is_xl),
                "sampling_rate": grid.sampling_rate,
                "bandwidth": grid.bandwidth,
            },
            ("weight",),
            ("transform", "freqs", "phases"),
            {"affine": writer.connected("synthesis.input.affine", "linear", 1.0, spec.w_dim)},
        )
    }
    modules |= {layer.name: _layer(writer, layer, spec.w_dim, is_xl) for layer in spec.layers}
    return writer.module("synthesis", "SynthesisNetwork", attributes, modules=modules)


def two_sizes(size: int, *, is_dilled: bool = False) -> Call:
    """A NumPy array of two equal whole numbers."""
    if is_dilled:
        return dill_array([size, size])
    dtype = Call(Global("numpy", "dtype"), ("i8", False, True), state=(3, "<", None, None, None, -1, -1, 0))
    made = (Global("numpy", "ndarray"), (0,), b"b")
    data = struct.pack("<2q", size, size)
    return Call(Global("numpy.core.multiarray", "_reconstruct"), made, state=(1, (2,), dtype, False, data))


def _layer(writer: NetworkWriter, layer: FilteredLayerSpec, w_dim: int, is_xl: bool) -> Call:
    path, (low, high) = f"synthesis.{layer.name}", layer.pads
    attributes: dict[str, Any] = {
        "w_dim": w_dim,
        "is_torgb": layer.kind == "to_rgb",
        "use_fp16": layer.use_fp16,
        "in_channels": layer.in_channels,
        "out_channels": layer.out_channels,
        "in_size": two_sizes(layer.in_size, is_dilled=is_xl),
        "out_size": two_sizes(layer.out_size, is_dilled=is_xl),
        "in_sampling_rate": layer.in_rate,
        "out_sampling_rate": layer.out_rate,
        "tmp_sampling_rate": layer.rate,
        "conv_kernel": layer.kernel,
        "conv_clamp": layer.conv_clamp,
        "up_factor": layer.up,
        "up_taps": layer.up_taps,
        "down_factor": layer.down,
        "down_taps": layer.down_taps,
        "down_radial": layer.is_radial,
        "padding": [low, high, low, high],
    }
    if is_xl:
        attributes |= {"filter_size": 6, "use_radial_filters": layer.is_radial, "lrelu_upsampling": 2}
    affine = {"affine": writer.connected(f"{path}.affine", "linear", 1.0, w_dim)}
    buffers = ("magnitude_ema", "up_filter", "down_filter")
    return writer.module(path, "SynthesisLayer", attributes, ("weight", "bias"), buffers, affine)

"""What StyleGAN-XL's tools store beyond NVIDIA's: dill's forms of arrays and sets, a table of classes, heads."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_backend.model import StyleGAN3Spec
from tests.helpers.pickle_writer import Call, Global

if TYPE_CHECKING:
    from tests.helpers.network_file import NetworkWriter

_UNUSED_ROWS, _UNUSED_WIDTH = 5, 3
"""Of the table in a network without classes."""


def dill_array(values: list[Any], code: str = "i8") -> Call:
    """An array as dill writes it: all in one call."""
    dtype = Call(Global("numpy", "dtype"), (code, False, True), state=(3, "<", None, None, None, -1, -1, 0))
    made = (Global("numpy", "ndarray"), (0,), b"b")
    data = struct.pack(f"<{len(values)}{'q' if code == 'i8' else 'd'}", *values)
    state = (1, (len(values),), dtype, False, data)
    reconstruct = Global("numpy.core.multiarray", "_reconstruct")
    return Call(Global("dill._dill", "_create_array"), (reconstruct, made, state, None))


def dill_set() -> Call:
    """An empty set as dill writes it in protocol 3."""
    return Call(Call(Global("dill._dill", "_load_type"), ("set",)), ([],))


def is_grown(spec: StyleGAN3Spec) -> bool:
    """Whether layers were cut off on the way, which the numbers tell."""
    return any(not layer.name.startswith(f"L{index}_") for index, layer in enumerate(spec.layers))


def stale(spec: StyleGAN3Spec) -> dict[str, Any]:
    """What a grown network says of itself as a whole: the stem's."""
    return {"num_ws": 12, "img_resolution": 16, "num_layers": 10} if is_grown(spec) else {}


def stem_attributes(spec: StyleGAN3Spec) -> dict[str, Any]:
    """What the synthesis network says beyond StyleGAN3's."""
    return {
        "channel_base": 65536,
        "channel_max": 1024,
        "first_cutoff": 2,
        "first_stopband": 2**2.1,
        "last_stopband_rel": 2**0.3,
        "conv_kernel": spec.layers[0].kernel,
        "use_radial_filters": spec.layers[0].is_radial,
        "sampling_rates": dill_array([float(layer.in_rate) for layer in spec.layers], "f8"),
        **stale(spec),
    }


def class_table(table: np.ndarray[Any, Any], tensor: Call, **changes: Any) -> Call:
    """A ``torch.nn.Embedding``."""
    state: dict[str, Any] = {
        "training": True,
        "_parameters": {"weight": tensor},
        "_buffers": {},
        "_modules": {},
        "num_embeddings": table.shape[0],
        "embedding_dim": table.shape[-1],
        "padding_idx": None,
        "max_norm": None,
        "norm_type": 2.0,
        "scale_grad_by_freq": False,
        "sparse": False,
    }
    return Call(Global("torch.nn.modules.sparse", "Embedding"), (), state={**state, **changes}, is_new=True)


def class_modules(writer: NetworkWriter, spec: StyleGAN3Spec) -> dict[str, Call]:
    """The table of classes, which is always there, and the layer after it."""
    table = writer.weights.get("mapping.embed.weight", np.zeros((_UNUSED_ROWS, _UNUSED_WIDTH), np.float32))
    modules = {"embed": class_table(table, writer.tensors.parameter(table))}
    if spec.mapping.class_table is not None:
        modules["embed_proj"] = writer.connected("mapping.embed_proj", "lrelu", 1.0, spec.mapping.class_table.width)
    return modules

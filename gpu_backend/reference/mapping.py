"""A whole mapping network (Karras et al. 2019, section 2; labels: Karras et al. 2020a, Sauer et al. 2022)."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from gpu_backend.model.mapping_network import label_multiplier
from gpu_backend.model.spec import NetworkSpec
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.fully_connected import FullyConnected
from gpu_backend.reference.concat import concat
from gpu_backend.reference.embedding import embedding
from gpu_backend.reference.fully_connected import fully_connected
from gpu_backend.reference.normalize_2nd_moment import normalize_2nd_moment


def run_mapping(spec: NetworkSpec, weights: Mapping[str, Tensor], z: Tensor, c: Tensor | None = None) -> Tensor:
    """(batch, z_dim) and labels (batch, c_dim) to (batch, w_dim), before truncation."""
    mapping = spec.mapping
    x = z if mapping.joins_label else normalize_2nd_moment(z)
    if mapping.c_dim > 0:
        if c is None:
            raise ValueError("a conditional network needs labels")
        name, label, act = "mapping.embed", c, BiasAct()
        if mapping.class_table is not None:
            name, label = "mapping.embed_proj", embedding(c, weights["mapping.embed.weight"])
            act = BiasAct.of_layer("lrelu")
        embed = FullyConnected(label.shape[1], mapping.embed_dim, label_multiplier(mapping), act)
        y = fully_connected(label, weights[f"{name}.weight"], weights[f"{name}.bias"], embed)
        x = normalize_2nd_moment(concat(x, y)) if mapping.joins_label else concat(x, normalize_2nd_moment(y))
    act = BiasAct.of_layer(mapping.activation)
    for index, width in enumerate(mapping.widths):
        layer = FullyConnected(x.shape[1], width, mapping.lr_multiplier, act)
        x = fully_connected(x, weights[f"mapping.fc{index}.weight"], weights[f"mapping.fc{index}.bias"], layer)
    return x

"""Plan of a mapping network: z and a label to one row of w (Karras et al. 2019, section 2).

StyleGAN-XL looks its label embedding up in a table of classes (Sauer et al. 2022).

Inputs
    ``z`` (batch, z_dim); ``c`` (batch, c_dim) if the network is conditional.
Output
    ``w`` (batch, w_dim), before truncation. `gpu_backend.latent` truncates on the host.
"""

from __future__ import annotations

from gpu_backend.model.mapping_network import label_multiplier
from gpu_backend.model.spec import NetworkSpec
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.concat import Concat
from gpu_backend.ops.embedding import Embedding
from gpu_backend.ops.fully_connected import FullyConnected
from gpu_backend.ops.normalize_2nd_moment import Normalize2ndMoment
from gpu_backend.plan.builder import PlanBuilder
from gpu_backend.plan.plan import Plan, PlanKey, Precision


def build_mapping_plan(spec: NetworkSpec, model_id: str, *, batch: int = 1, precision: Precision = "fp32") -> Plan:
    """Build the plan of the mapping network for `batch` rows of z."""
    mapping = spec.mapping
    plan = PlanBuilder(PlanKey(model_id, "mapping", batch, precision=precision))
    x = plan.buffer("z", (batch, mapping.z_dim), "input")
    features = mapping.z_dim
    if not mapping.joins_label:
        x = _normalized(plan, "mapping.normalize", x, "z/normal", features, batch)
    if mapping.c_dim > 0:
        label = plan.buffer("c", (batch, mapping.c_dim), "input")
        layer, inputs, act = "mapping.embed", mapping.c_dim, BiasAct()
        if mapping.class_table is not None:
            inputs, act = mapping.class_table.width, BiasAct.of_layer("lrelu")
            label, layer = _picked(plan, label, Embedding(mapping.c_dim, inputs), batch), "mapping.embed_proj"
        embed = FullyConnected(inputs, mapping.embed_dim, label_multiplier(mapping), act)
        embedded = plan.buffer("c/embedded", embed.output_shape(batch), "intermediate")
        plan.step(layer, "fully_connected", embed, (label,), (embedded,), _weights(layer))
        y = embedded
        if not mapping.joins_label:
            y = _normalized(plan, "mapping.embed.normalize", embedded, "c/normal", mapping.embed_dim, batch)
        concat = Concat((features, mapping.embed_dim))
        joined = plan.buffer("z+c", concat.output_shape(batch), "intermediate")
        plan.step("mapping.concat", "concat", concat, (x, y), (joined,))
        x, features = joined, features + mapping.embed_dim
        if mapping.joins_label:
            x = _normalized(plan, "mapping.normalize", x, "z+c/normal", features, batch)
    for index, width in enumerate(mapping.widths):
        last = index == len(mapping.widths) - 1
        layer = f"mapping.fc{index}"
        attributes = FullyConnected(features, width, mapping.lr_multiplier, BiasAct.of_layer(mapping.activation))
        out = plan.buffer("w" if last else f"fc{index}", (batch, width), "output" if last else "intermediate")
        plan.step(layer, "fully_connected", attributes, (x,), (out,), _weights(layer))
        x, features = out, width
    return plan.freeze()


def _picked(plan: PlanBuilder, label: str, attributes: Embedding, batch: int) -> str:
    out = plan.buffer("c/picked", attributes.output_shape(batch), "intermediate")
    plan.step("mapping.embed", "embedding", attributes, (label,), (out,), {"table": "mapping.embed.weight"})
    return out


def _normalized(plan: PlanBuilder, layer: str, source: str, name: str, features: int, batch: int) -> str:
    attributes = Normalize2ndMoment(features)
    out = plan.buffer(name, attributes.output_shape(batch), "intermediate")
    plan.step(layer, "normalize_2nd_moment", attributes, (source,), (out,))
    return out


def _weights(layer: str) -> dict[str, str]:
    return {"weight": f"{layer}.weight", "bias": f"{layer}.bias"}

"""What pickled StyleGAN-XL generators (Sauer et al. 2022) have beyond those of a StyleGAN3.

The mapping network looks classes up in a table, which is a module of torch's own and stands in files without classes
too. A network for super-resolution keeps the first layers of a smaller one and adds others; numbers of layers are left
out where it was cut, and what the synthesis network says of itself as a whole is that of the smaller one. So each layer
is asked, and the order is that of ``layer_names``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpu_backend.model.attribute_checks import check_expected, check_roles, expected_of_connected, in_words
from gpu_backend.model.modules import CLASS_TABLE, SUPER_RESOLUTION, Modules
from gpu_backend.model.records import TensorRecord
from gpu_backend.model.refusal import Refusal, Unsupported, shown
from gpu_backend.model.spec import StyleGAN3Spec
from gpu_backend.model.stylegan3_attributes import STYLEGAN3_ATTRIBUTES, STYLEGAN3_ROLES, expected_of_stylegan3

STYLEGAN_XL = "StyleGAN-XL repository"

_EMBEDDING = "torch.nn.modules.sparse Embedding"
_TABLE = "a table of classes at mapping.embed"

_ATTRIBUTES = {
    **STYLEGAN3_ATTRIBUTES,
    SUPER_RESOLUTION: STYLEGAN3_ATTRIBUTES["Generator"] | {"path_stem", "head_layers", "up_factor"},
    "MappingNetwork": STYLEGAN3_ATTRIBUTES["MappingNetwork"] | {"embed_proj", "rand_embedding"},
}

_STALE = {("", "num_ws"), ("synthesis", "num_ws"), ("synthesis", "img_resolution"), ("synthesis", "num_layers")}
"""Attributes of a super-resolution network about its stem."""


def stylegan_xl_flavour(modules: Modules) -> str:
    """Whose conventions the file follows, and whether the network was grown from a smaller one."""
    return f"{STYLEGAN_XL}, super-resolution" if _is_grown(modules) else STYLEGAN_XL


def check_stylegan_xl_classes(modules: Modules) -> tuple[str, ...]:
    """Check the class of each module; return warnings about unknown attributes.

    Raises
    ------
    Unsupported
        If a module stands where StyleGAN-XL has none, or is of another class.
    """
    roles = (
        (re.compile(r""), SUPER_RESOLUTION if _is_grown(modules) else "Generator"),
        (re.compile(r"mapping\.embed_proj"), "FullyConnectedLayer"),
        *STYLEGAN3_ROLES,
    )
    return check_roles(modules, roles, _ATTRIBUTES)


def stylegan_xl_tensors(modules: Modules) -> tuple[dict[str, TensorRecord], tuple[str, ...]]:
    """Return the tensors to decode, state-dict name -> tensor, and what is left alone, a phrase each.

    Raises
    ------
    Unsupported
        If the table of classes is of another kind.
    Refusal
        If it holds anything but one tensor, or contradicts itself.
    """
    tensors = dict(modules.tensors)
    table = _class_table(modules)
    if "mapping.embed_proj" in modules.records:
        if table is None:
            raise Refusal(_TABLE, "there is none")
        return {**tensors, f"{CLASS_TABLE}.weight": table}, ()
    return tensors, () if table is None else (f"{CLASS_TABLE}: a table of classes, which this network has not",)


def check_stylegan_xl_attributes(modules: Modules, spec: StyleGAN3Spec) -> None:
    """Check the attributes of the modules against their tensors.

    Raises
    ------
    Refusal
        If an attribute contradicts a shape, a name or another attribute.
    """
    check_expected(modules, _expected(spec, _STALE if _is_grown(modules) else set()))


def _expected(spec: StyleGAN3Spec, stale: set[tuple[str, str]]) -> Iterator[tuple[str, str, object]]:
    mapping = spec.mapping
    yield from (item for item in expected_of_stylegan3(spec) if item[:2] not in stale)
    if mapping.class_table is not None:
        width = mapping.class_table.width
        yield from expected_of_connected("mapping.embed_proj", width, mapping.embed_dim, "lrelu", 1.0)


def _class_table(modules: Modules) -> TensorRecord | None:
    """Return the tensor of ``torch.nn.Embedding(rows, width)``, None where there is no such module."""
    foreign = modules.foreign.get(CLASS_TABLE)
    if foreign is None:
        return None
    if str(foreign.name) != _EMBEDDING:
        raise Unsupported(_TABLE, f"there is one of the foreign class {shown(str(foreign.name))}")
    state = foreign.state if isinstance(foreign.state, dict) else {}
    parameters = state.get("_parameters")
    table = parameters.get("weight") if isinstance(parameters, dict) else None
    if not isinstance(table, TensorRecord) or not isinstance(parameters, dict) or len(parameters) != 1:
        raise Refusal(_TABLE, "it holds something else")
    if state.get("max_norm") is not None:
        raise Unsupported(
            "a table of classes as it is stored", "found one whose rows are scaled when they are looked up"
        )
    for name, count in zip(("num_embeddings", "embedding_dim"), table.shape, strict=False):
        if name in state and state[name] != count:
            raise Refusal(f"{CLASS_TABLE}.{name} to be {count}, as its tensor is", f"it is {in_words(state[name])}")
    return table


def _is_grown(modules: Modules) -> bool:
    return modules.records[""].class_name == SUPER_RESOLUTION

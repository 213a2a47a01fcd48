"""Networks that are recognised by their tensor names but not supported."""

from __future__ import annotations

from collections.abc import Collection

from gpu_backend.model.refusal import Unsupported
from gpu_backend.model.shapes import GENERATOR

_MARKS = (
    ("mapping.embed_proj.weight", "the tensors of a StyleGAN-XL generator without its settings"),
    ("synthesis.input.freqs", "the tensors of a StyleGAN3 generator without its settings"),
    ("style_conv1.modulated_conv.weight", "StyleGAN2 (BasicSR)"),
    ("initial_block", "lucidrains' network, which is not StyleGAN2"),
    ("backbone.synthesis.b4.const", "a three-dimensional network (EG3D)"),
)
"""A tensor name without a tool's prefix, and the network that it indicates."""

PROJECTED = "FastGAN or ProjectedGAN"

_FAST = ("feat_8.", "synthesis.feat_8.")


def not_run(network: str) -> Unsupported:
    """Say that a network was recognised."""
    return Unsupported(GENERATOR, f"it holds {network}, not run by this version")


def network_named(names: Collection[str]) -> str:
    """Return the network that has tensors of these names; empty if they name none."""
    for mark, network in _MARKS:
        if any(name == mark or name.endswith(f".{mark}") for name in names):
            return network
    if any(name.startswith(_FAST) for name in names):
        return PROJECTED
    if any(".iwt." in name for name in names):
        return "SWAGAN"
    return ""

"""Selects the plan builder of a network's family."""

from __future__ import annotations

from collections.abc import Mapping

from gpu_backend.model.spec import NetworkSpec, StyleGAN1Spec, StyleGAN2Spec
from gpu_backend.plan import stylegan1, stylegan2, stylegan3
from gpu_backend.plan.mapping import build_mapping_plan
from gpu_backend.plan.plan import Plan, PlanKey


def build_plan(spec: NetworkSpec, key: PlanKey, *, readouts: Mapping[int, int] | None = None) -> Plan:
    """Build the plan of a key; drafts of a side in `readouts` end in a readout of so many channels.

    Raises
    ------
    ValueError
        If the network has no picture of the key's resolution, or no layer of the tap's name.
    """
    if key.part == "mapping":
        return build_mapping_plan(spec, key.model_id, batch=key.batch, precision=key.precision)
    if isinstance(spec, StyleGAN2Spec):
        return stylegan2.build_synthesis_plan(
            spec,
            key.model_id,
            batch=key.batch,
            resolution=key.resolution,
            precision=key.precision,
            tap=key.tap,
            readouts=readouts,
            edits=key.edits,
        )
    if isinstance(spec, StyleGAN1Spec):
        return stylegan1.build_synthesis_plan(
            spec,
            key.model_id,
            batch=key.batch,
            resolution=key.resolution,
            precision=key.precision,
            tap=key.tap,
            edits=key.edits,
        )
    return stylegan3.build_synthesis_plan(
        spec, key.model_id, batch=key.batch, precision=key.precision, tap=key.tap, edits=key.edits
    )

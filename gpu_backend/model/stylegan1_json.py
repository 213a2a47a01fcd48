"""The settings of a StyleGAN1 network in the header of our own model files."""

from __future__ import annotations

from gpu_backend.model.network_json import SETTINGS, activation_of, positive_of, table_of
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.stylegan1_assembly import StyleGAN1Settings


def stylegan1_settings_from_json(data: object) -> StyleGAN1Settings:
    """Read from the header the settings that the tensor shapes of a StyleGAN1 do not determine.

    Raises
    ------
    Refusal
        If a field is missing or of the wrong kind.
    """
    fields = table_of(data)
    mapping, layers = table_of(fields.get("mapping")), fields.get("layers")
    if not isinstance(layers, list) or not layers:
        raise Refusal(SETTINGS, "its layers are missing")
    return StyleGAN1Settings(
        mapping_activation=activation_of(mapping.get("activation")),
        lr_multiplier=positive_of(mapping.get("lr_multiplier")),
        joins_label=mapping.get("joins_label") is True,
        activation=activation_of(table_of(layers[0]).get("activation")),
        epsilon=positive_of(fields.get("epsilon")),
        blurs_bias=fields.get("blurs_bias") is True,
    )

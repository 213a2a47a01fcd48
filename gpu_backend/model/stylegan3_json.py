"""The settings of a StyleGAN3 network in the header of our own model files."""

from __future__ import annotations

from gpu_backend.model.network_json import SETTINGS, activation_of, positive_of, table_of
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.stylegan3_assembly import FilteredLayerSettings, StyleGAN3Settings


def stylegan3_settings_from_json(data: object) -> StyleGAN3Settings:
    """Read from the header the settings that the tensor shapes of a StyleGAN3 do not determine.

    Raises
    ------
    Refusal
        If a field is missing or of the wrong kind.
    """
    fields = table_of(data)
    mapping, grid, listed = table_of(fields.get("mapping")), table_of(fields.get("input")), fields.get("layers")
    if not isinstance(listed, list):
        raise Refusal(SETTINGS, "its layers are missing")
    layers: dict[str, FilteredLayerSettings] = {}
    for item in listed:
        layer = table_of(item)
        name, clamp, use_fp16 = layer.get("name"), layer.get("conv_clamp"), layer.get("use_fp16")
        if not isinstance(name, str) or not isinstance(use_fp16, bool) or name in layers:
            raise Refusal(SETTINGS, "a layer has no unique name or no precision")
        layers[name] = FilteredLayerSettings(
            in_rate=_count(layer.get("in_rate")),
            out_rate=_count(layer.get("out_rate")),
            rate=_count(layer.get("rate")),
            conv_clamp=None if clamp is None else positive_of(clamp),
            use_fp16=use_fp16,
        )
    return StyleGAN3Settings(
        mapping_activation=activation_of(mapping.get("activation")),
        lr_multiplier=positive_of(mapping.get("lr_multiplier")),
        input_size=_count(grid.get("size")),
        sampling_rate=positive_of(grid.get("sampling_rate")),
        bandwidth=positive_of(grid.get("bandwidth")),
        output_scale=positive_of(fields.get("output_scale")),
        layers=layers,
    )


def _count(value: object) -> int:
    number = positive_of(value)
    if number != int(number):
        raise Refusal(SETTINGS, "one that must be a whole number is not")
    return int(number)

"""A spec as JSON and back: the hyper-parameters in the header of our own model files."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any, NoReturn, cast, get_args

from gpu_backend.model.assembly import LayerSettings, Settings
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.spec import Activation, NetworkSpec, StyleGAN2Spec

SETTINGS = "the settings of a network in the file's header"
"""Expected kind of every field."""


def parse_json(text: str) -> dict[str, object]:
    """Read a JSON object strictly: no doubled keys, no NaN, no nesting beyond reason.

    Raises
    ------
    Refusal
        If it is anything else.
    """
    try:
        value = strict_json(text)
    except (ValueError, RecursionError):
        raise Refusal("JSON in the file's header", "found something else") from None
    if not isinstance(value, dict):
        raise Refusal("a JSON object in the file's header", "found another value")
    return value


def strict_json(text: str) -> object:
    """Read any JSON value: no doubled keys, no NaN.

    Raises
    ------
    ValueError, RecursionError
        If it is anything else, or nested beyond reason.
    """
    value: object = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    return value


def spec_to_json(spec: NetworkSpec) -> dict[str, Any]:
    """Return every hyper-parameter of a spec as JSON-able data."""
    data = asdict(spec)
    data["mapping"]["widths"] = list(spec.mapping.widths)
    if not spec.mapping.joins_label:
        del data["mapping"]["joins_label"]  # older files lack this field
    if spec.mapping.class_table is None:
        del data["mapping"]["class_table"]  # likewise
    data["layers"] = list(data["layers"])
    if isinstance(spec, StyleGAN2Spec):
        data["resample_filter"] = list(spec.resample_filter)
    return data


def settings_from_json(data: object) -> Settings:
    """Read the settings of a StyleGAN2 that tensor shapes do not determine from the header.

    Raises
    ------
    Refusal
        If a field is missing or of the wrong kind.
    """
    fields = table_of(data)
    mapping = table_of(fields.get("mapping"))
    layers = fields.get("layers")
    taps = fields.get("resample_filter")
    if not isinstance(layers, list) or not isinstance(taps, list) or not 1 <= len(taps) <= 32:
        raise Refusal(SETTINGS, "its layers or its filter are missing")
    settings: dict[str, LayerSettings] = {}
    for item in layers:
        layer = table_of(item)
        name, clamp, use_fp16 = layer.get("name"), layer.get("conv_clamp"), layer.get("use_fp16")
        if not isinstance(name, str) or not isinstance(use_fp16, bool):
            raise Refusal(SETTINGS, "a layer has no name or precision")
        limit = None if clamp is None else positive_of(clamp)
        settings[name] = LayerSettings(activation_of(layer.get("activation")), limit, use_fp16)
    return Settings(
        mapping_activation=activation_of(mapping.get("activation")),
        lr_multiplier=positive_of(mapping.get("lr_multiplier")),
        resample_filter=tuple(number_of(tap) for tap in taps),
        layers=settings,
        joins_label=mapping.get("joins_label") is True,
    )


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("doubled key")
    return table


def _no_constant(text: str) -> NoReturn:
    raise ValueError(text)


def table_of(value: object) -> dict[str, object]:
    """Return a JSON object."""
    if not isinstance(value, dict):
        raise Refusal(SETTINGS, "a part of them is missing")
    return cast("dict[str, object]", value)


def number_of(value: object) -> float:
    """Return a number within a plausible range."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e30:
        raise Refusal(SETTINGS, "a number is missing among them")
    return float(value)


def positive_of(value: object) -> float:
    """Return a number above 0."""
    number = number_of(value)
    if not 0 < number < math.inf:
        raise Refusal(SETTINGS, "one that must be above 0 is not")
    return number


def activation_of(value: object) -> Activation:
    """Return an activation."""
    if value not in get_args(Activation):
        raise Refusal(SETTINGS, "an activation among them is not known")
    return cast("Activation", value)

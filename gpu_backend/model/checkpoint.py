"""Checkpoints that hold a generator's tensors by name, and no network: rosinality's, GenForce's, state dicts alone.

In a torch file the tensors are at the top level or under a tool's key for the averaged weights. Their names may have a
prefix, as for the decoder of an encoder. The non-averaged training weights are not used.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import cast

from gpu_backend.model.found import Found
from gpu_backend.model.ignored import describe_ignored
from gpu_backend.model.layout import Layout, place_tensors
from gpu_backend.model.layouts import GENFORCE, OFFICIAL, ROSINALITY
from gpu_backend.model.pickled import Pickled
from gpu_backend.model.placed_network import find_placed, taps_of, uniform_settings
from gpu_backend.model.recognised import network_named, not_run
from gpu_backend.model.records import Persistent, TensorRecord
from gpu_backend.model.refusal import Refusal, shown
from gpu_backend.model.resample_filters import USUAL_TAPS
from gpu_backend.model.shapes import GENERATOR
from gpu_backend.model.source import Source
from gpu_backend.model.stylegan1_files import find_stylegan1
from gpu_backend.model.stylegan1_layout import StyleGAN1Layout
from gpu_backend.model.stylegan1_layouts import GENFORCE_STYLEGAN1, LERNAPPARAT, ROSINALITY_STYLEGAN1
from gpu_backend.model.tensor_table import RecordTable, TensorTable

_LAYOUTS = (OFFICIAL, ROSINALITY, GENFORCE, LERNAPPARAT, GENFORCE_STYLEGAN1, ROSINALITY_STYLEGAN1)
_AVERAGES = ("g_ema", "G_ema", "generator_smooth", "generator_ema", "params_ema", "g_running", "state_dict")
"""Keys of the averaged weights in the files of known tools."""
_IN_TRAINING = ("g", "G", "generator", "params")
_PREFIXES = ("", "g_ema.", "G_ema.", "generator_ema.", "generator_smooth.", "decoder.", "module.")
_MODELS = "models"
_MEAN = "latent_avg"
_MAX_TENSORS = 5000
_RATES = (1.0, 0.1, 0.01, 0.001)

Table = Mapping[object, object]


def holds_tensors(value: object) -> bool:
    """Return whether a value from a pickle is a dict of tensors, or of such dicts, and not a pickled network."""
    if not isinstance(value, dict) or isinstance(value.get("G_ema"), Persistent):
        return False
    return any(_tensors(table) for _, table in _tables(value, (*_AVERAGES, *_IN_TRAINING)))


def find_checkpoint(source: Source, pickled: Pickled) -> Found:
    """Find the generator in a torch file of tensors.

    Raises
    ------
    Unsupported
        If the tensors belong to a network that is recognised but not supported.
    Refusal
        If there is no averaged generator, or it is inconsistent.
    """
    value = cast("dict[object, object]", pickled.value)
    for key, table in _tables(value, _AVERAGES):
        tensors = _tensors(table)
        known = recognise_layout(tensors)
        if known is None:
            continue
        layout, prefix = known
        records = {own: tensors[name] for own, name in own_names(tensors, layout, prefix).items()}
        mean = value.get(_MEAN)
        if layout is ROSINALITY and isinstance(mean, TensorRecord):
            records.setdefault(_MEAN, mean)
        return find_tensors(
            RecordTable(source, records),
            layout,
            container=pickled.container,
            requested=frozenset(pickled.requested),
            ignored=(*(describe_ignored(value, {key, _MEAN}) if key else ()), *ignored_beside(prefix)),
        )
    raise _nothing_in(value)


def find_tensors(
    table: TensorTable,
    layout: Layout | StyleGAN1Layout,
    *,
    container: str,
    requested: frozenset[str] = frozenset(),
    ignored: tuple[str, ...] = (),
) -> Found:
    """Find the generator in a table of tensors, with the fixed settings of its tool.

    NVIDIA's names are used with several settings, which the tensors do not determine; a warning lists those assumed.
    """
    if isinstance(layout, StyleGAN1Layout):
        return find_stylegan1(table, layout, container=container, requested=requested, ignored=ignored)
    placed = place_tensors(layout, table.shapes)
    taps = taps_of(table, layout, placed) or USUAL_TAPS
    rate = 0.01
    warnings: tuple[str, ...] = ()
    if layout is OFFICIAL:
        rate = _learning_rate(table)
        warnings = (
            "The file holds tensors without settings: it is run without clamps and half precision, with leaky ReLU "
            f"and a learning-rate multiplier of {rate:g} in the mapping network.",
        )
    return find_placed(
        table,
        placed,
        uniform_settings(placed, taps, lr_multiplier=rate),
        container=container,
        flavour=layout.flavour,
        requested=requested,
        ignored=ignored,
        warnings=warnings,
    )


def recognise_layout(names: Collection[str]) -> tuple[Layout | StyleGAN1Layout, str] | None:
    """Return the tool of these names and their common prefix; None if unknown.

    Raises
    ------
    Unsupported
        If the names belong to a network that is recognised but not supported.
    Refusal
        If there are more than any checkpoint has.
    """
    if len(names) > _MAX_TENSORS:
        raise Refusal(f"at most {_MAX_TENSORS} tensors in a checkpoint", "this one has more")
    for layout in _LAYOUTS:
        for prefix in _PREFIXES:
            if f"{prefix}{layout.marker}" in names:
                network = network_named([name for name in names if name.startswith(prefix)])
                if network:
                    raise not_run(network)
                return layout, prefix
    return None


def own_names(names: Collection[str], layout: Layout | StyleGAN1Layout, prefix: str) -> dict[str, str]:
    """Return the tool's own name of each tensor of the generator -> its name in the file."""
    own = {name.removeprefix(prefix): name for name in names if name.startswith(prefix)}
    if layout is ROSINALITY and _MEAN in names:
        own.setdefault(_MEAN, _MEAN)
    return own


def ignored_beside(prefix: str) -> tuple[str, ...]:
    """Describe the tensors beside those with this prefix."""
    return (f"tensors that are not under {prefix.rstrip('.')}: not needed",) if prefix else ()


def no_generator(names: Collection[str]) -> Refusal:
    """Describe tensors that belong to no known generator."""
    network = network_named(names)
    if network:
        return not_run(network)
    if not names:
        return Refusal(GENERATOR, "it holds no tensors")
    first = ", ".join(shown(name) for name in sorted(names)[:3])
    return Refusal(GENERATOR, f"it holds other tensors ({first})")


def _tables(value: Table, keys: tuple[str, ...]) -> Iterator[tuple[str, Table]]:
    """Yield the tables under these keys, then the top-level table with an empty key."""
    models = value.get(_MODELS)
    for holder in (value, models):
        if isinstance(holder, dict):
            for key in keys:
                table = holder.get(key)
                if isinstance(table, dict):
                    yield key if holder is value else _MODELS, table
    yield "", value


def _tensors(table: Table) -> dict[str, TensorRecord]:
    return {name: part for name, part in table.items() if isinstance(name, str) and isinstance(part, TensorRecord)}


def _nothing_in(value: Table) -> Refusal:
    """Describe the content of a file of tensors without averaged weights."""
    tables = [_tensors(table) for _, table in _tables(value, _AVERAGES)]
    for key, table in _tables(value, _IN_TRAINING):
        tensors = _tensors(table)
        tables.append(tensors)
        if key and recognise_layout(tensors) is not None:
            return Refusal("the average of a generator (g_ema)", f"there is only {key}, as it was in training")
    return no_generator(max(tables, key=len))


def _learning_rate(table: TensorTable) -> float:
    """Estimate the mapping network's learning-rate multiplier m: its weights are initialised with std 1 / m."""
    values = table.some("mapping.fc0.weight") if "mapping.fc0.weight" in table.shapes else []
    spread = math.sqrt(math.fsum(value * value for value in values) / max(1, len(values)))
    if not 0.0 < spread < math.inf:
        return 0.01
    return min(_RATES, key=lambda rate: abs(math.log10(rate * spread)))

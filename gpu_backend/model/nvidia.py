"""StyleGAN2 and StyleGAN3 generators as NVIDIA's PyTorch tools store them, in any of the pickle containers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from gpu_backend.model.assembly import assemble
from gpu_backend.model.attributes import (
    STYLEGAN3_REPOSITORY,
    check_attributes,
    check_classes,
    flavour_of,
    read_settings,
)
from gpu_backend.model.found import Found
from gpu_backend.model.ignored import describe_ignored
from gpu_backend.model.modules import Modules, family_of, take_apart
from gpu_backend.model.pickle_values import kind_of
from gpu_backend.model.pickled import PLAIN, Pickled
from gpu_backend.model.records import Persistent, TensorRecord
from gpu_backend.model.refusal import Refusal, shown
from gpu_backend.model.resample_filters import common_taps
from gpu_backend.model.shapes import GENERATOR
from gpu_backend.model.source import Source
from gpu_backend.model.spec import NetworkSpec
from gpu_backend.model.stylegan3_assembly import assemble_stylegan3
from gpu_backend.model.stylegan3_attributes import (
    check_stylegan3_attributes,
    check_stylegan3_classes,
    decode_small_arrays,
    read_stylegan3_settings,
)
from gpu_backend.model.tensors import check_wrapped, load_tensors, small_values

_SNAPSHOT = "a snapshot with a generator G_ema"


_Read = tuple[NetworkSpec, Mapping[str, TensorRecord], str, tuple[str, ...]]
"""Spec, tensors to decode, flavour, warnings."""


def find_network(source: Source, pickled: Pickled) -> Found:
    """Find the generator in what a pickle file holds.

    Raises
    ------
    Unsupported
        If it is a network of a kind that is recognised and not run.
    Refusal
        If there is no generator, or it contradicts itself.
    """
    generator, ignored = _choose(pickled.value)
    modules = take_apart(generator)
    family = family_of(modules)
    spec, tensors, flavour, warnings = (_stylegan2 if family == "stylegan2" else _stylegan3)(source, modules)
    return Found(
        spec=spec,
        load=partial(load_tensors, source, tensors),
        container="NVIDIA PyTorch pickle" if pickled.container == PLAIN else pickled.container,
        flavour=flavour,
        requested=frozenset(pickled.requested),
        ignored=(*ignored, "program source inside the file: never run"),
        warnings=warnings,
    )


def _stylegan2(source: Source, modules: Modules) -> _Read:
    warnings = check_classes(modules)
    flavour = flavour_of(modules)
    settings = read_settings(modules, _taps(source, modules), flavour)
    tensors = {name: record for name, record in modules.tensors.items() if not name.endswith(".resample_filter")}
    spec = assemble({name: record.shape for name, record in tensors.items()}, settings)
    check_attributes(modules, spec)
    return spec, tensors, flavour, warnings


def _stylegan3(source: Source, modules: Modules) -> _Read:
    warnings = check_stylegan3_classes(modules)
    decode_small_arrays(source, modules)
    settings = read_stylegan3_settings(modules)
    spec = assemble_stylegan3({name: record.shape for name, record in modules.tensors.items()}, settings)
    check_stylegan3_attributes(modules, spec)
    return spec, modules.tensors, STYLEGAN3_REPOSITORY, warnings


def _choose(value: object) -> tuple[Persistent, tuple[str, ...]]:
    """Pick the generator to use, and describe what is left alone."""
    if isinstance(value, Persistent):
        return value, ()
    if not isinstance(value, dict):
        raise Refusal(_SNAPSHOT, f"it holds {kind_of(value)}")
    if "G_ema" not in value:
        keys = ", ".join(shown(str(key)) for key in list(value)[:4] if isinstance(key, str))
        raise Refusal(_SNAPSHOT, f"it holds {keys or 'nothing'} instead")
    generator = value["G_ema"]
    if not isinstance(generator, Persistent):
        raise Refusal(_SNAPSHOT, f"its G_ema is {kind_of(generator)}")
    return generator, describe_ignored(value, {"G_ema"})


def _taps(source: Source, modules: Modules) -> tuple[float, ...]:
    """Read the resample filters, which must be one and the same everywhere."""
    filters = {name: record for name, record in modules.tensors.items() if name.endswith(".resample_filter")}
    check_wrapped(source, filters.values())
    taps = common_taps((name, record.shape, small_values(source, record, name)) for name, record in filters.items())
    if taps is None:
        raise Refusal(GENERATOR, "its resample filters are missing")
    return taps

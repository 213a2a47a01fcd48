"""Generators as NVIDIA's PyTorch tools and StyleGAN-XL's store them, in any of the pickle containers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

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
from gpu_backend.model.recognised import PROJECTED, not_run
from gpu_backend.model.records import Foreign, Persistent, TensorRecord
from gpu_backend.model.refusal import Refusal, Unsupported, shown
from gpu_backend.model.resample_filters import common_taps, used_filters
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
from gpu_backend.model.stylegan_xl import (
    check_stylegan_xl_attributes,
    check_stylegan_xl_classes,
    stylegan_xl_flavour,
    stylegan_xl_tensors,
)
from gpu_backend.model.tensors import check_wrapped, load_tensors, small_values

_SNAPSHOT = "a snapshot with a generator G_ema"


class _Read(NamedTuple):
    """What is found of a generator. `tensors` names the tensors to decode."""

    spec: NetworkSpec
    tensors: Mapping[str, TensorRecord]
    flavour: str
    warnings: tuple[str, ...]
    ignored: tuple[str, ...] = ()


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
    read = _READERS[family_of(modules)](source, modules)
    return Found(
        spec=read.spec,
        load=partial(load_tensors, source, read.tensors),
        container="NVIDIA PyTorch pickle" if pickled.container == PLAIN else pickled.container,
        flavour=read.flavour,
        requested=frozenset(pickled.requested),
        ignored=(*ignored, *read.ignored, "program source inside the file: never run"),
        warnings=read.warnings,
    )


def _stylegan2(source: Source, modules: Modules) -> _Read:
    warnings = check_classes(modules)
    flavour = flavour_of(modules)
    settings = read_settings(modules, _taps(source, modules), flavour)
    tensors = {name: record for name, record in modules.tensors.items() if not name.endswith(".resample_filter")}
    spec = assemble({name: record.shape for name, record in tensors.items()}, settings)
    check_attributes(modules, spec)
    return _Read(spec, tensors, flavour, warnings)


def _stylegan3(source: Source, modules: Modules) -> _Read:
    warnings = check_stylegan3_classes(modules)
    decode_small_arrays(source, modules)
    settings = read_stylegan3_settings(modules)
    spec = assemble_stylegan3({name: record.shape for name, record in modules.tensors.items()}, settings)
    check_stylegan3_attributes(modules, spec)
    return _Read(spec, modules.tensors, STYLEGAN3_REPOSITORY, warnings)


def _stylegan_xl(source: Source, modules: Modules) -> _Read:
    warnings = check_stylegan_xl_classes(modules)
    decode_small_arrays(source, modules)
    settings = read_stylegan3_settings(modules)
    tensors, ignored = stylegan_xl_tensors(modules)
    spec = assemble_stylegan3({name: record.shape for name, record in tensors.items()}, settings, "stylegan_xl")
    check_stylegan_xl_attributes(modules, spec)
    return _Read(spec, tensors, stylegan_xl_flavour(modules), warnings, ignored)


_READERS: Mapping[str, Callable[[Source, Modules], _Read]] = {
    "stylegan2": _stylegan2,
    "stylegan3": _stylegan3,
    "stylegan_xl": _stylegan_xl,
}


def _choose(value: object) -> tuple[Persistent, tuple[str, ...]]:
    """Pick the generator to use, and describe what is left alone."""
    if isinstance(value, Persistent):
        return value, ()
    if isinstance(value, Foreign):
        raise _foreign(value)
    if not isinstance(value, dict):
        raise Refusal(_SNAPSHOT, f"it holds {kind_of(value)}")
    if "G_ema" not in value:
        keys = ", ".join(shown(str(key)) for key in list(value)[:4] if isinstance(key, str))
        raise Refusal(_SNAPSHOT, f"it holds {keys or 'nothing'} instead")
    generator = value["G_ema"]
    if isinstance(generator, Foreign):
        raise _foreign(generator)
    if not isinstance(generator, Persistent):
        raise Refusal(_SNAPSHOT, f"its G_ema is {kind_of(generator)}")
    return generator, describe_ignored(value, {"G_ema"})


def _foreign(generator: Foreign) -> Refusal:
    """Say what a generator of another library's class is: FastGAN and ProjectedGAN store theirs this way."""
    name = f"{generator.name.module}.{generator.name.name}"
    if name.startswith(("pg_modules.", "training.")):
        return not_run(f"{PROJECTED} (class {shown(name)})")
    return Unsupported(GENERATOR, f"its network is of the foreign class {shown(name)}")


def _taps(source: Source, modules: Modules) -> tuple[float, ...]:
    """Read the resample filters that are applied, which must be one and the same everywhere."""
    stored = [name for name in modules.tensors if name.endswith(".resample_filter")]
    filters = {name: modules.tensors[name] for name in used_filters(stored, modules.tensors)}
    check_wrapped(source, filters.values())
    taps = common_taps((name, record.shape, small_values(source, record, name)) for name, record in filters.items())
    if taps is None:
        raise Refusal(GENERATOR, "its resample filters are missing")
    return taps

"""StyleGAN2 generators as NVIDIA's PyTorch tools store them, in any of the pickle containers."""

from __future__ import annotations

from functools import partial

from gpu_backend.model.assembly import assemble
from gpu_backend.model.attributes import check_attributes, check_classes, flavour_of, read_settings
from gpu_backend.model.found import Found
from gpu_backend.model.modules import Modules, check_family, take_apart
from gpu_backend.model.pickle_values import kind_of
from gpu_backend.model.pickled import Pickled
from gpu_backend.model.records import Foreign, Persistent, TensorFlowNetwork, TensorRecord
from gpu_backend.model.refusal import Refusal, Unsupported, shown
from gpu_backend.model.resample_filters import common_taps
from gpu_backend.model.shapes import GENERATOR
from gpu_backend.model.source import Source
from gpu_backend.model.tensors import check_wrapped, load_tensors, small_values

_SNAPSHOT = "a snapshot with a generator G_ema"
_PURPOSES = {
    "G": "the generator as it was in training",
    "D": "the discriminator",
    "augment_pipe": "the augmentation used in training",
    "training_set_kwargs": "settings of the training set",
    "progress": "how far training was",
}


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
    check_family(modules)
    warnings = check_classes(modules)
    flavour = flavour_of(modules)
    settings = read_settings(modules, _taps(source, modules), flavour)
    tensors = {name: record for name, record in modules.tensors.items() if not name.endswith(".resample_filter")}
    spec = assemble({name: record.shape for name, record in tensors.items()}, settings)
    check_attributes(modules, spec)
    return Found(
        spec=spec,
        load=partial(load_tensors, source, tensors),
        container=pickled.container,
        flavour=flavour,
        requested=frozenset(pickled.requested),
        ignored=(*ignored, "program source inside the file: never run"),
        warnings=warnings,
    )


def _choose(value: object) -> tuple[Persistent, tuple[str, ...]]:
    """Pick the generator to use, and describe what is left alone."""
    if isinstance(value, Persistent):
        return value, ()
    if isinstance(value, tuple) and any(isinstance(item, TensorFlowNetwork) for item in value):
        if len(value) != 3 or not all(isinstance(item, TensorFlowNetwork) for item in value):
            raise Refusal("three networks in a TensorFlow file", f"there are {len(value)} values")
        raise Unsupported(GENERATOR, "it holds TensorFlow networks, which this version recognises and does not run")
    if not isinstance(value, dict):
        raise Refusal(_SNAPSHOT, f"it holds {kind_of(value)}")
    if "G_ema" not in value:
        _check_other_families(value)
        keys = ", ".join(shown(str(key)) for key in list(value)[:4] if isinstance(key, str))
        raise Refusal(_SNAPSHOT, f"it holds {keys or 'nothing'} instead")
    generator = value["G_ema"]
    if not isinstance(generator, Persistent):
        raise Refusal(_SNAPSHOT, f"its G_ema is {kind_of(generator)}")
    return generator, tuple(_described(key, part) for key, part in value.items() if key != "G_ema")


def _described(key: object, part: object) -> str:
    name = key if isinstance(key, str) and key in _PURPOSES else shown(str(key)) if isinstance(key, str) else "a part"
    purpose = _PURPOSES.get(name, "not known here")
    if part is None:
        return f"{name}: empty"
    if isinstance(part, Foreign):
        return f"{name}: {purpose} (foreign class {part.name.module}.{part.name.name})"
    return f"{name}: {purpose}"


def _check_other_families(value: dict[object, object]) -> None:
    """Say so if a dict of tensors is a checkpoint of another tool."""
    for table in (value.get("g_ema"), value.get("generator_smooth"), value.get("state_dict"), value):
        if not isinstance(table, dict):
            continue
        names = {name for name, part in table.items() if isinstance(name, str) and isinstance(part, TensorRecord)}
        if "input.input" in names or "decoder.input.input" in names:
            raise Unsupported(
                GENERATOR, "it holds a StyleGAN2 checkpoint of rosinality's tools, which this version does not run yet"
            )
        if "synthesis.early_layer.const" in names or "synthesis.layer0.weight" in names:
            raise Unsupported(GENERATOR, "it holds a checkpoint of GenForce, which this version does not run")
        if "synthesis.b4.const" in names or "synthesis.input.freqs" in names:
            raise Unsupported(
                GENERATOR, "it holds tensors alone, without the settings", "open the snapshot that they were taken from"
            )


def _taps(source: Source, modules: Modules) -> tuple[float, ...]:
    """Read the resample filters, which must be one and the same everywhere."""
    filters = {name: record for name, record in modules.tensors.items() if name.endswith(".resample_filter")}
    check_wrapped(source, filters.values())
    taps = common_taps((name, record.shape, small_values(source, record, name)) for name, record in filters.items())
    if taps is None:
        raise Refusal(GENERATOR, "its resample filters are missing")
    return taps

"""Making a direction file: options in, the file and a table of what was found out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from gpu_backend.errors import RequestError
from gpu_backend.model import (
    Model,
    NamedDirections,
    concatenated,
    direction_path,
    read_directions,
    read_model,
    selected,
    write_directions,
)
from gpu_backend.model.named_directions import is_direction_name
from gpu_backend.recipe import RowRange
from gpu_backend.renderer import Renderer
from gpu_backend.result_folder import make_folder
from gpu_backend.torch_import import torch_needed
from gpu_backend.training.directions.components import sefa_by_rows
from gpu_backend.training.directions.factor_search import (
    FactorDirection,
    FactorSearch,
    direction_name,
    find_factor_directions,
    named,
)
from gpu_backend.training.directions.options import DirectionOptions
from gpu_backend.training.directions.probe import Probe, ReadFactors
from gpu_backend.training.directions.search import DirectionSearch, MapsLatents, find_directions
from gpu_backend.whole_file import write_whole

Say = Callable[[str], None]


def run_directions(options: DirectionOptions, note: Say, status: Say | None = None) -> list[str]:
    """Find directions, write the file and return a table of them.

    Parameters
    ----------
    note
        Called with a line for each finished part.
    status
        Called with the number of pictures drawn so far.

    Raises
    ------
    LoomError
        If a file cannot be read or written, or nothing was found.
    """
    model = read_model(options.model)
    path = options.out or direction_path(options.model)
    if path.exists() and path.samefile(options.model):
        raise RequestError(f"{path} is the model itself; choose another --out.")
    facts = model.facts
    kept = _kept(path, model, options)
    make_folder(path.parent)  # before minutes are spent
    if options.method == "sefa":
        found = sefa_by_rows(model, options.count)
    else:
        renderer = Renderer(model, options.device)
        try:
            found = _found(renderer, options, note, status)
        finally:
            renderer.close()
    joined = found if kept is None else _joined(kept, found)
    if path.is_file() and (kept is None or len(joined) < len(kept) + len(found)):
        old = path.with_name(f"{path.name}.old")
        write_whole(old, path.read_bytes())
        note(f"The directions that are replaced stay in {old}.")
    write_directions(joined, path, facts.model_id)
    count = f"{len(joined)} direction{'' if len(joined) == 1 else 's'}"
    note(f"{path} holds {count} of {facts.name}, {len(found)} of them from method {options.method}.")
    return table(found)


def _found(renderer: MapsLatents, options: DirectionOptions, note: Say, status: Say | None) -> NamedDirections:
    if options.method == "pca":
        every = RowRange(0, renderer.facts.num_ws - 1)
        components = DirectionSearch("pca", "pca", every, options.count, options.latents, options.seed, options.psi)
        return find_directions(components, renderer)
    read, skill = _reader(options, note)
    factors, read = _able(read, skill, options, note)
    unknown = [name for name in options.factors if name not in factors]
    if unknown:
        raise RequestError(f"Factors to move must be among {', '.join(factors)}, not {unknown[0]!r}.")
    search = FactorSearch(
        latents=options.latents,
        probes=options.probes,
        measured=options.measured,
        psi=options.psi,
        seed=options.seed,
    )
    say = status or (lambda text: None)
    probe = Probe(renderer, read, lambda count: say(f"{count} pictures drawn"))
    directions = find_factor_directions(renderer, probe, factors, search, options.factors or None, note)
    if not directions:
        raise RequestError("No direction of this model that moves a factor was found.")
    return named(_good(directions, options, note), options.method)


def _good(directions: list[FactorDirection], options: DirectionOptions, note: Say) -> list[FactorDirection]:
    """Drop the directions that miss their requirements."""

    def is_good(item: FactorDirection) -> bool:
        effect = item.effect
        return effect.spearman >= options.least_spearman and effect.selectivity >= options.least_selectivity

    lost = [
        f"{item.factor} (spearman {item.effect.spearman:.2f}, selectivity {item.effect.selectivity:.1f})"
        for item in directions
        if not is_good(item)
    ]
    if len(lost) == len(directions):
        raise RequestError(
            f"Directions should keep to --least-spearman {options.least_spearman:g} and --least-selectivity "
            f"{options.least_selectivity:g}, but none does; the best is {_best(directions)}."
        )
    if lost:
        note(f"Left out, since they move their factor too unevenly or others with it: {', '.join(lost)}")
    return [item for item in directions if is_good(item)]


def _best(directions: list[FactorDirection]) -> str:
    best = max(directions, key=lambda item: min(item.effect.selectivity, 10.0) * max(item.effect.spearman, 0.0))
    return f"{best.factor} with {best.effect.spearman:.2f} and {best.effect.selectivity:.1f}"


def _reader(options: DirectionOptions, note: Say) -> tuple[ReadFactors, dict[str, float]]:
    """Return what reads factors off pictures, and its skill at each."""
    with torch_needed("Reading factors off pictures"):
        from gpu_backend.training.directions.label_reader import fit_label_reader, train_label_reader
        from gpu_backend.training.directions.labelled_pictures import read_labelled
        from gpu_backend.training.quality.feature_file import read_features
        from gpu_backend.training.quality.feature_training import FeatureTraining
        from gpu_backend.training.quality.reading import FeatureReader, torch_device

    device = torch_device(options.device)
    network, skill = read_features(options.features) if options.features is not None else (None, {})
    if options.labels is None:
        assert network is not None  # as the options request
        _check_names(skill, options)
        return FeatureReader(network, device).factors, skill
    training = FeatureTraining(steps=options.steps, seed=options.seed)
    labelled = read_labelled(options.labels, (network or training).shape.side)
    _check_names(labelled.names, options)
    if network is not None:
        return fit_label_reader(labelled, FeatureReader(network, device))
    note(f"Training a network on {len(labelled.values)} labelled pictures")
    return train_label_reader(
        labelled, training, device, lambda step, error: note(f"step {step} of {training.steps}: error {error:.3f}")
    )


def _check_names(factors: Iterable[str], options: DirectionOptions) -> None:
    """Refuse factors that a file cannot tell apart as directions, before hours are spent. Raises RequestError."""
    owners: dict[str, str] = {}
    for factor in sorted(options.factors or factors):
        name = direction_name(options.method, factor)
        if not is_direction_name(name):
            raise RequestError(f"{factor!r} cannot name a direction; use letters, digits and other printable signs.")
        if name in owners:
            raise RequestError(f"{owners[name]!r} and {factor!r} would both be the direction {name!r}; rename one.")
        owners[name] = factor


def _able(
    read: ReadFactors, skill: dict[str, float], options: DirectionOptions, note: Say
) -> tuple[tuple[str, ...], ReadFactors]:
    """Drop the factors that the network hardly distinguishes: their readings are noise."""
    names = tuple(skill)
    able = [place for place, name in enumerate(names) if skill[name] >= options.least_skill]
    lost = [f"{name} ({skill[name]:.2f})" for name in names if skill[name] < options.least_skill]
    if lost:
        note(f"Left out, since the network explains too little of them: {', '.join(lost)}")
    if not able:
        raise RequestError(
            f"Factors should be explained to {options.least_skill:g} at least, but none is; "
            "train longer or lower --least-skill."
        )
    return tuple(names[place] for place in able), lambda pictures: read(pictures)[:, able]


def _kept(path: Path, model: Model, options: DirectionOptions) -> NamedDirections | None:
    """Return what a file holds that is to be kept; None if nothing.

    Raises
    ------
    RequestError
        If the file is there and neither ``--add`` nor ``--replace`` came.
    """
    if not path.exists() or options.replace:
        return None
    if not options.add:
        raise RequestError(
            f"{path} already exists; keep its other sets with --add, replace it with --replace, or choose --out."
        )
    return read_directions(path, model.facts.model_id, model.spec.w_dim, model.spec.num_ws)


def _joined(kept: NamedDirections, found: NamedDirections) -> NamedDirections:
    """Return both, without the kept sets that were found again. Sets stay in their order."""
    sets = {name.partition("/")[0] for name in found.names}
    places = [place for place, name in enumerate(kept.names) if name.partition("/")[0] not in sets]
    rest = selected(kept, places)
    return found if rest is None else concatenated(rest, found)


def table(directions: NamedDirections) -> list[str]:
    """Return directions as lines of text."""
    lines = [f"{'direction':<32}{'rows':>7}{'from':>7}{'to':>6}  measured"]
    columns = (directions.names, directions.rows, directions.reach, directions.centre, directions.measures)
    for name, rows, reach, centre, measures in zip(*columns, strict=True):
        told = ", ".join(f"{key} {value:.3g}" for key, value in measures.items())
        span = f"{rows.first}-{rows.last}"
        lines.append(f"{name:<32}{span:>7}{centre - reach:>7.3g}{centre + reach:>6.3g}  {told}".rstrip())
    return lines

"""Reading of a model file, in five steps.

1. Open the file. 2. Detect its format and find the network, without decoding tensors. 3. Decode the tensors and compute
the SHA-256 of the file, in one pass if the format allows it. 4. Read named directions, draft readouts and class names
beside it. 5. Assemble the facts.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from gpu_backend.errors import ModelFileError
from gpu_backend.model.class_names import class_names_beside
from gpu_backend.model.detection import HEAD_BYTES, find_model, kind_of_file
from gpu_backend.model.direction_file import direction_path, read_directions
from gpu_backend.model.draft_file import Readouts, draft_path, read_readouts
from gpu_backend.model.facts import FileFacts, facts_of
from gpu_backend.model.model import Model
from gpu_backend.model.model_facts import ModelFacts
from gpu_backend.model.named_directions import NamedDirections, joined_directions
from gpu_backend.model.particulars import Particulars
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.source import open_source
from gpu_backend.model.spec import NetworkSpec
from gpu_backend.model.watch import Progress, Watch


def read_model(
    path: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    known_digest: Callable[[os.stat_result], str] | None = None,
) -> Model:
    """Read a model file on the host. No code in the file is executed.

    Parameters
    ----------
    progress
        Called with the bytes read and the total.
    cancelled
        Called often; return True to cancel.
    known_digest
        Called with the status of the opened file; returns its SHA-256 if that is known, so that it is not computed, or
        an empty text.

    Raises
    ------
    ModelFileError
        If the file is damaged, inconsistent, imports other than allowed names, or is not a model file. The details have
        path, size, first bytes and the requested names.
    UnsupportedModelError
        If this version does not support the network.
    CancelledError
        If `cancelled` returned True.
    """
    path = Path(path)
    watch = Watch(progress, cancelled)
    known = Particulars(path)
    try:
        with open_source(path) as source:
            known.nbytes, known.head = source.size, source.read(0, HEAD_BYTES)
            known.kind = kind_of_file(known.head, source.size)
            if known_digest is not None:
                source.known_digest = known_digest(source.opened)
            found = find_model(source, watch, known.imports)
            loaded = found.load(watch)
            if source.known_digest:
                source.check_unchanged()
            file = FileFacts(path, source.size, loaded.digest)
    except Refusal as refusal:
        known.facts = refusal.facts
        raise refusal.error(refusal.sentence(path.name or str(path)), known.text) from refusal
    except MemoryError as error:
        raise ModelFileError(
            f"{path.name} was not opened: expected memory for its tensors, but there is too little.",
            known.text,
        ) from error
    base = file if found.base is None else FileFacts(found.base[0], 0, found.base[1])
    directions, warnings = _directions_beside(file, base, found.spec)
    readouts, notes = _readouts_beside(base, found.spec)
    classes, remarks = class_names_beside(base.path, found.spec.mapping.c_dim)
    facts = facts_of(
        found.spec,
        file,
        container=found.container,
        flavour=found.flavour,
        names_requested=found.requested,
        ignored=found.ignored,
        warnings=(*found.warnings, *warnings, *notes, *remarks),
        named_directions=() if directions is None else directions.names,
        class_names=classes,
    )
    return Model(found.spec, loaded.weights, facts, directions, readouts, found.warnings)


def inspect_model(path: str | os.PathLike[str]) -> ModelFacts:
    """Read a model file as `read_model` does, tensors and all, and keep only the facts."""
    return read_model(path).facts


def _readouts_beside(file: FileFacts, spec: NetworkSpec) -> tuple[Readouts, tuple[str, ...]]:
    """Return the draft readouts beside a model, or a warning that says why they are not used."""
    path = draft_path(file.path)
    if not os.path.exists(path):
        return {}, ()
    try:
        return read_readouts(path, file.model_id, spec), ()
    except ModelFileError as error:
        return {}, (error.sentence,)


def _directions_beside(
    file: FileFacts, base: FileFacts, spec: NetworkSpec
) -> tuple[NamedDirections | None, tuple[str, ...]]:
    """Return the named directions beside a model and its base, and warnings that say why some are not used.

    Of two directions of one name, that of the model is used.
    """
    kept, warnings = (None, ()) if base == file else _directions_beside(base, base, spec)
    path = direction_path(file.path)
    if not os.path.exists(path):  # Path's own fails for a name that the system finds too long
        return kept, warnings
    try:
        own = read_directions(path, file.model_id, spec.w_dim, spec.num_ws)
    except ModelFileError as error:
        return kept, (*warnings, error.sentence)
    return joined_directions(kept, own), warnings

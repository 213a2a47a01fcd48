"""``latentloom inspect``: what a model file holds, found out without running anything in it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from explorer_app.cli.arguments import Parser
from explorer_app.cli.console import Console
from explorer_app.session.class_names import class_text
from gpu_backend import ModelFacts, ModelFileError, inspect_model

_TOLD = 6
"""Names of classes that are listed."""


def parser() -> Parser:
    """Return the parser of this command."""
    made = Parser("latentloom inspect", "List the contents of a model file without executing code from it.")
    made.add_argument("file", type=Path, metavar="FILE", help="network pickle, torch file or safetensors")
    made.add_argument("--json", action="store_true", help="print JSON for other programs")
    return made


def run(words: Sequence[str], console: Console) -> int:
    """Print a model's facts to stdout; for a refused file, what is known about it."""
    options = parser().parse_args(words)
    try:
        facts = inspect_model(options.file)
    except ModelFileError as error:
        if not options.json:
            console.results(error.details.split("\n"))
        raise
    if options.json:
        console.results(json.dumps(dataclasses.asdict(facts), indent=2).split("\n"))
    else:
        console.results(_lines(facts))
    return 0


def _lines(facts: ModelFacts) -> Iterator[str]:
    """Yield the facts as a user reads them, a label and a value a line."""
    picture = {1: "grey", 3: "RGB", 4: "RGBA"}.get(facts.img_channels, f"{facts.img_channels} channels")
    rows = [
        ("File", [facts.path]),
        ("Size", [f"{facts.nbytes:,} bytes"]),
        ("SHA-256", [facts.model_id]),
        ("Container", [facts.container]),
        ("Family", [f"{facts.family} ({facts.flavour}), {facts.architecture}"]),
        ("Resolution", [f"{facts.resolution} x {facts.resolution}, {picture}"]),
        ("Latent", [f"z {facts.z_dim}, w {facts.w_dim}, {facts.num_ws} w rows"]),
        ("Mapping", [f"{facts.mapping_layers} layers"]),
        ("Classes", _classes(facts)),
        ("Parameters", [f"{facts.parameters:,}"]),
        ("Clamp", ["none" if facts.conv_clamp is None else f"{facts.conv_clamp:g}"]),
        ("Half precision", facts.fp16_layers),
        ("Noise inputs", facts.noise_layers),
        ("Transform", ["moves, turns and scales"] if facts.has_transform else []),
        ("Layers", [f"{layer.name}: {layer.channels} of {layer.side} x {layer.side}" for layer in facts.layers]),
        ("Directions", facts.named_directions),
        ("Names requested", facts.names_requested),
        ("Ignored", facts.ignored),
        ("Warnings", facts.warnings),
    ]
    width = max(len(label) for label, _ in rows) + 2
    for label, values in rows:
        for number, value in enumerate(values or ["none"]):
            yield (label if number == 0 else "").ljust(width) + value


def _classes(facts: ModelFacts) -> list[str]:
    """Return how many classes there are, and the first and the last of their names."""
    if not facts.class_names:
        return [str(facts.c_dim)] if facts.c_dim else []
    listed = [class_text(number, facts.class_names) for number in range(facts.c_dim)]
    if len(listed) > _TOLD:
        listed[_TOLD - 2 : -1] = ["…"]
    return [f"{facts.c_dim}, with names from {facts.class_file}:", *listed]

"""The command-line options of `latentloom directions`."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from gpu_backend.argument_types import whole_number
from gpu_backend.errors import RequestError
from gpu_backend.model.direction_file import MAX_COUNT

Method = Literal["world", "labels", "pca", "sefa"]
_COUNT = whole_number(1)
_USUAL_COUNT = {"pca": 16, "sefa": 8}


@dataclass(frozen=True, slots=True)
class DirectionOptions:
    """What to look for in which model. `add_direction_options` documents the fields in its help texts."""

    model: Path
    method: Method
    out: Path | None = None
    add: bool = False
    replace: bool = False
    features: Path | None = None
    labels: Path | None = None
    factors: tuple[str, ...] = ()
    least_skill: float = 0.5
    least_spearman: float = -1.0
    least_selectivity: float = 0.0
    count: int = 16
    latents: int = 4096
    probes: int = 32
    measured: int = 64
    steps: int = 1000
    psi: float = 0.7
    seed: int = 0
    device: str = "auto"


def add_direction_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to a parser; `direction_options_of` reads what it gives."""
    usual = DirectionOptions(Path(), "pca")
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL", help="the model file")
    add(
        "--method",
        choices=get_args(Method),
        required=True,
        help="world: a direction for each factor that --features reads; labels: for each label of --labels; "
        "pca: principal components of w; sefa: of the weights, for coarse, middle and fine rows by themselves",
    )
    add("--features", type=Path, metavar="FILE", help="network of features, for world; for labels instead of a new one")
    add("--labels", type=Path, metavar="PATH", help="a folder with a subfolder a label, or a CSV of files and labels")
    add("--factors", default="", metavar="LIST", help="only these factors or labels, with commas between")
    add(
        "--least-skill",
        type=float,
        default=usual.least_skill,
        metavar="X",
        help="leave out what the network explains less of, in 0..1 "
        f"(default: {usual.least_skill}); what is left out does not count as crosstalk either",
    )
    add(
        "--least-spearman",
        type=float,
        default=usual.least_spearman,
        metavar="X",
        help="leave out directions that move their factor less evenly, by mean rank correlation (default: keep all)",
    )
    add(
        "--least-selectivity",
        type=float,
        default=usual.least_selectivity,
        metavar="X",
        help="leave out directions that move their factor less than so many times as much as any other "
        "(default: keep all)",
    )
    add(
        "--count",
        type=whole_number(1, MAX_COUNT),
        metavar="N",
        help="how many, for pca (default: 16) and sefa (default: 8 a group)",
    )
    add("--latents", type=_COUNT, default=usual.latents, metavar="N", help=f"to learn from ({usual.latents})")
    add("--probes", type=_COUNT, default=usual.probes, metavar="N", help=f"to choose rows on ({usual.probes})")
    add("--measured", type=_COUNT, default=usual.measured, metavar="N", help=f"to measure on ({usual.measured})")
    add("--steps", type=_COUNT, default=usual.steps, metavar="N", help=f"of training on labels ({usual.steps})")
    add("--psi", type=float, default=usual.psi, metavar="X", help=f"truncation of the latents ({usual.psi})")
    add("--seed", type=whole_number(0), default=usual.seed, metavar="N", help="first seed of the latents (0)")
    add("--device", default=usual.device, metavar="NAME", help="auto, cpu, cuda or cuda:1 (auto)")
    add("--out", type=Path, metavar="FILE", help="the file to write (default: beside the model, where it is found)")
    add("--add", action="store_true", help="keep the other sets of directions that the file holds already")
    add("--replace", action="store_true", help="replace all directions that the file holds already")


def direction_options_of(found: argparse.Namespace) -> DirectionOptions:
    """Return the options that a parser found.

    Raises
    ------
    RequestError
        If they do not go together.
    """
    method = cast("Method", found.method)
    usual = DirectionOptions(Path(), method)
    if method == "world" and found.features is None:
        raise RequestError(
            "Directions of the world's factors need --features, a file made by "
            "'python -m gpu_backend.training.quality.train_features', but none was named."
        )
    if (method == "labels") != (found.labels is not None):
        raise RequestError("Method labels and --labels go together; give both or neither.")
    if found.features is not None and method not in ("world", "labels"):
        raise RequestError(f"Method {method} uses no pictures; leave --features out.")
    if found.factors and method not in ("world", "labels"):
        raise RequestError(f"Method {method} uses no factors; leave --factors out.")
    if found.count is not None and method not in _USUAL_COUNT:
        raise RequestError(f"Method {method} finds a direction for each factor; leave --count out.")
    wanted = (usual.least_spearman, usual.least_selectivity)
    if (found.least_spearman, found.least_selectivity) != wanted and method not in ("world", "labels"):
        raise RequestError(f"Method {method} measures no factors; leave --least-spearman and --least-selectivity out.")
    numbers = (found.psi, found.least_skill, found.least_spearman, found.least_selectivity)
    if not all(math.isfinite(number) for number in numbers):
        raise RequestError("--psi and the --least options must be finite numbers.")
    if found.add and found.replace:
        raise RequestError("Either --add keeps the other sets of the file or --replace replaces them, not both.")
    if found.latents < 10 or found.probes > found.latents:
        raise RequestError("There should be at least 10 latents, and no more probes than latents.")
    return DirectionOptions(
        model=found.model,
        method=method,
        out=found.out,
        add=found.add,
        replace=found.replace,
        features=found.features,
        labels=found.labels,
        factors=tuple(part.strip() for part in found.factors.split(",") if part.strip()),
        least_skill=found.least_skill,
        least_spearman=found.least_spearman,
        least_selectivity=found.least_selectivity,
        count=found.count or _USUAL_COUNT.get(method, 0),
        latents=found.latents,
        probes=found.probes,
        measured=found.measured,
        steps=found.steps,
        psi=found.psi,
        seed=found.seed,
        device=found.device,
    )

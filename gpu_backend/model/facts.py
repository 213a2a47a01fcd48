"""Facts of a model, from its spec and its file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gpu_backend.model import stylegan1, stylegan2, stylegan3
from gpu_backend.model.class_names import ClassNames
from gpu_backend.model.model_facts import LayerFacts, ModelFacts
from gpu_backend.model.spec import NetworkSpec
from gpu_backend.quick_dataclass import dataclass

FAMILY_NAMES = {
    "stylegan1": "StyleGAN1",
    "stylegan2": "StyleGAN2",
    "stylegan3": "StyleGAN3",
    "stylegan_xl": "StyleGAN-XL",
}
"""Display names of the families."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Facts of a file that do not depend on its network. `model_id` is its SHA-256 in hexadecimal."""

    path: Path
    nbytes: int
    model_id: str


def facts_of(
    spec: NetworkSpec,
    file: FileFacts,
    *,
    container: str,
    flavour: str,
    names_requested: Iterable[str] = (),
    ignored: Iterable[str] = (),
    warnings: Iterable[str] = (),
    named_directions: Iterable[str] = (),
    class_names: ClassNames | None = None,
) -> ModelFacts:
    """Return the facts of a model; those of the network are derived from the spec."""
    clamps = [layer.conv_clamp for layer in spec.layers if layer.kind != "skip"]
    if spec.family == "stylegan1":
        parameters, row_resolutions = stylegan1.parameter_count(spec), stylegan1.row_resolutions(spec)
        layers = [LayerFacts(layer.name, layer.out_channels, layer.resolution) for layer in spec.layers]
    elif spec.family == "stylegan2":
        parameters = stylegan2.parameter_count(spec)
        row_resolutions = stylegan2.row_resolutions(spec.layers, spec.num_ws)
        layers = [LayerFacts(layer.name, layer.out_channels, layer.resolution) for layer in spec.layers]
    else:
        parameters, row_resolutions = stylegan3.parameter_count(spec), stylegan3.row_resolutions(spec)
        layers = [LayerFacts(layer.name, layer.out_channels, layer.out_size) for layer in spec.layers]
        layers.insert(0, LayerFacts("input", spec.input.channels, spec.input.size))
    return ModelFacts(
        path=str(file.path),
        name=file.path.stem,
        nbytes=file.nbytes,
        model_id=file.model_id,
        container=container,
        family=FAMILY_NAMES[spec.family],
        flavour=flavour,
        architecture=spec.architecture,
        resolution=spec.resolution,
        img_channels=spec.img_channels,
        z_dim=spec.mapping.z_dim,
        w_dim=spec.w_dim,
        num_ws=spec.num_ws,
        c_dim=spec.mapping.c_dim,
        mapping_layers=len(spec.mapping.widths),
        parameters=parameters,
        conv_clamp=clamps[0],
        fp16_layers=tuple(layer.name for layer in spec.layers if layer.use_fp16),
        noise_layers=spec.noise_layers,
        draft_resolutions=spec.draft_resolutions,
        row_resolutions=row_resolutions,
        names_requested=tuple(sorted(set(names_requested))),
        ignored=tuple(ignored),
        warnings=tuple(warnings),
        named_directions=tuple(named_directions),
        class_names=() if class_names is None else class_names.names,
        class_file="" if class_names is None else class_names.file,
        has_transform=spec.has_transform,
        layers=tuple(layers),
        usual_cutoff=spec.usual_cutoff if spec.family == "stylegan1" else None,
        looks_classes_up=spec.mapping.class_table is not None,
    )

"""The arguments that a TensorFlow network was built with: its settings, and whether they agree with the tensors.

Arguments that are not stored had the defaults of NVIDIA's tools when the network was built.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from gpu_backend.model.assembly import Settings, find_architecture
from gpu_backend.model.attribute_checks import as_activation, as_clamp, in_words
from gpu_backend.model.layout import Placed
from gpu_backend.model.layouts import JOINED_LABEL
from gpu_backend.model.mapping_network import find_mapping
from gpu_backend.model.placed_network import uniform_settings
from gpu_backend.model.refusal import Refusal, Unsupported, shown
from gpu_backend.model.shapes import shape_of
from gpu_backend.model.stylegan2 import block_resolutions
from gpu_backend.model.tensorflow_network import TensorFlowParts

_MAX_TAPS = 32
KNOWN = frozenset(
    (
        *("resolution", "num_channels", "label_size", "latent_size", "dlatent_size", "normalize_latents"),
        *("fmap_base", "fmap_decay", "fmap_min", "fmap_max", "fmap_const", "label_fmaps"),
        *("mapping_layers", "mapping_fmaps", "mapping_lrmul", "mapping_nonlinearity", "mapping_func"),
        *("synthesis_func", "architecture", "nonlinearity", "resample_kernel", "num_fp16_res", "conv_clamp"),
        *("truncation_psi", "truncation_cutoff", "truncation_psi_val", "truncation_cutoff_val"),
        *("style_mixing_prob", "dlatent_avg_beta", "dlatent_broadcast", "dtype", "fused_modconv"),
        *("use_noise", "randomize_noise", "func_name", "structure", "blur_filter", "force_clean_graph"),
    )
)
"""Arguments that are read, or that do not affect the picture of a full network."""


def read_settings(parts: TensorFlowParts, placed: Placed, resolution: int) -> tuple[Settings, tuple[str, ...]]:
    """Collect the hyper-parameters that shapes do not determine, and warnings about unknown arguments.

    Raises
    ------
    Unsupported
        If the network computes something that is not supported.
    Refusal
        If an argument has the wrong type.
    """
    arguments = parts.arguments
    rate = learning_rate(arguments)
    halves = arguments.get("num_fp16_res", 0)
    if halves is None:
        halves = 0
    if isinstance(halves, bool) or not isinstance(halves, int) or not 0 <= halves < 32:
        raise Refusal("how many resolutions run in half precision", f"found {in_words(halves)}")
    settings = uniform_settings(
        placed,
        _taps(arguments.get("resample_kernel", [1, 3, 3, 1])),
        activation=as_activation(arguments.get("nonlinearity", "lrelu"), "the synthesis network"),
        mapping_activation=as_activation(arguments.get("mapping_nonlinearity", "lrelu"), "the mapping network"),
        lr_multiplier=rate,
        conv_clamp=as_clamp(arguments.get("conv_clamp"), "the synthesis network"),
        fp16_from=(2 * resolution) >> halves if halves else None,
        joins_label=JOINED_LABEL in parts.tensors,
    )
    return settings, unknown_arguments(arguments, KNOWN)


def learning_rate(arguments: Mapping[str, object]) -> float:
    """Return the mapping network's learning-rate multiplier.

    Raises
    ------
    Unsupported
        If the mapping network does not normalise z.
    Refusal
        If the multiplier is not above 0.
    """
    if arguments.get("normalize_latents", True) is not True:
        raise Unsupported("a mapping network that normalises z", "this one does not")
    rate = arguments.get("mapping_lrmul", 0.01)
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < math.inf:
        raise Refusal("a learning-rate multiplier above 0 in the mapping network", f"found {in_words(rate)}")
    return float(rate)


def unknown_arguments(arguments: Collection[str], known: frozenset[str]) -> tuple[str, ...]:
    """Return a warning about unknown arguments; empty if there are none."""
    unknown = ", ".join(shown(name) for name in sorted(set(arguments) - known)[:3])
    if not unknown:
        return ()
    return (f"The network keeps settings that are not known here ({unknown}): its pictures may differ.",)


def check_arguments(parts: TensorFlowParts, placed: Placed, resolution: int) -> None:
    """Check the stored arguments against the tensors.

    Raises
    ------
    Refusal
        If one contradicts them.
    """
    architecture = find_architecture(placed.shapes, block_resolutions(resolution))
    check_sizes(parts, placed, resolution, {"architecture": architecture})


def check_sizes(parts: TensorFlowParts, placed: Placed, resolution: int, more: Mapping[str, object]) -> None:
    """Check the arguments that every StyleGAN has, and those in `more`: name -> value that the tensors determine.

    Raises
    ------
    Refusal
        If one contradicts the tensors.
    """
    shapes = placed.shapes
    mapping = find_mapping(shapes, "lrelu", 1.0)
    expected: dict[str, object] = {
        "resolution": resolution,
        "num_channels": shape_of(shapes, f"synthesis.b{resolution}.torgb.weight", 4)[0],
        "label_size": mapping.c_dim,
        "latent_size": mapping.z_dim,
        "dlatent_size": mapping.w_dim,
        "mapping_layers": len(mapping.widths),
        **more,
    }
    for name, value in expected.items():
        found = parts.arguments.get(name, value)
        if found != value or isinstance(found, bool):
            raise Refusal(f"{name} to be {in_words(value)}, as its tensors are", f"it is {in_words(found)}")


def _taps(value: object) -> tuple[float, ...]:
    """Return a filter's taps with a sum of 1; None means no filter."""
    taps = [1.0] if value is None else list(value) if isinstance(value, list | tuple) else []
    numbers = [float(tap) for tap in taps if isinstance(tap, int | float) and abs(tap) < 1e6]
    total = math.fsum(numbers)
    if not 1 <= len(numbers) <= _MAX_TAPS or len(numbers) != len(taps) or abs(total) < 1e-6:
        raise Refusal(f"a resample filter of 1 to {_MAX_TAPS} taps", f"found {in_words(value)}")
    return tuple(tap / total for tap in numbers)

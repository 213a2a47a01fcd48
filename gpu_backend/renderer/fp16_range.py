"""Whether a network's numbers fit fp16, found by rendering a few latents when the network is opened on a GPU."""

from __future__ import annotations

import numpy as np

from gpu_backend.model import Model
from gpu_backend.model.spec import NetworkSpec, StyleGAN2Spec
from gpu_backend.model_runner import ModelRunner
from gpu_backend.plan.plan import Precision
from gpu_backend.recipe import Noise

_LATENTS = 8
_WITHOUT_TF32 = ("sm_75",)


def may_exceed_fp16(spec: NetworkSpec) -> bool:
    """Return whether nothing bounds a network's activations: a StyleGAN2 whose convolutions do not clamp.

    StyleGAN1 normalises its activations, and StyleGAN3 clamps them.
    """
    return isinstance(spec, StyleGAN2Spec) and any(
        layer.kind in ("conv", "up_conv") and layer.conv_clamp is None for layer in spec.layers
    )


def exceeds_fp16(runner: ModelRunner, model: Model) -> bool:
    """Return whether one of a few pictures, always of the same latents and without truncation, is not finite.

    Closes the runner if it is so, and if a picture fails.
    """
    try:
        is_beyond = may_exceed_fp16(model.spec) and _has_infinite_pictures(runner, model)
    except BaseException:
        runner.close()
        raise
    if is_beyond:
        runner.close()
    return is_beyond


def _has_infinite_pictures(runner: ModelRunner, model: Model) -> bool:
    mapping = model.spec.mapping
    z = np.random.default_rng(0).standard_normal((_LATENTS, mapping.z_dim), np.float32)
    labels = np.zeros((_LATENTS, mapping.c_dim), np.float32)
    labels[:, :1] = 1.0
    for latent, label in zip(z, labels, strict=True):
        w = runner.map(latent[None], label[None])
        ws = np.repeat(w[:, None], model.spec.num_ws, axis=1)
        run = runner.submit(runner.synthesis_key(1), ws, Noise(), outputs=("flags",))
        if runner.finish(run)["flags"].any():
            return True
    return False


def wider_precision(architecture: str) -> Precision:
    """Return the fastest precision of a GPU with the range of fp32."""
    return "fp32" if architecture in _WITHOUT_TF32 else "tf32"

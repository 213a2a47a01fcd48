"""Whether fp16 has the range and the precision that a network needs.

Kernels saturate what exceeds fp16, since one infinite number would spread over the whole picture. A StyleGAN1 divides
each channel by its deviation, which magnifies what was rounded before. So only a comparison shows it: the first time
that such a network is opened on a GPU, a few latents are rendered in fp16 and in fp32.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import DeviceMemoryError
from gpu_backend.limits import LimitError, read_regular_file
from gpu_backend.model import Model
from gpu_backend.model.spec import NetworkSpec, StyleGAN1Spec, StyleGAN2Spec
from gpu_backend.model_runner import ModelRunner
from gpu_backend.plan.executor import FRAME_OUTPUTS, IMAGE_OUTPUT
from gpu_backend.plan.plan import Precision
from gpu_backend.recipe import Noise
from gpu_backend.whole_file import write_whole

_LATENTS = 8
_MOST_DIFFERENCE = 8.0 / 127.5
"""Of a number of a picture in -1..1: eight steps of 255, in proportion where pictures exceed that range. Rounding to
fp16 alone gives four at most."""
_MOST_SHOWN_DIFFERENCE, _MOST_DIFFERING = 6.0 / 127.5, 1e-4
"""Of a StyleGAN1, at what is shown of a picture: six steps of 255, and the share of numbers that may differ by more. In
tf32 such a network renders by plain kernels, many times slower, so single pixels do not decide."""
_WITHOUT_TF32 = ("sm_75",)
_FORMAT = 3
_MOST_NBYTES = 100


def may_exceed_fp16(spec: NetworkSpec) -> bool:
    """Return whether a network may need more than fp16: a StyleGAN1, or a StyleGAN2 whose convolutions do not clamp.

    StyleGAN3 clamps its activations.
    """
    if isinstance(spec, StyleGAN1Spec):
        return True
    return isinstance(spec, StyleGAN2Spec) and any(
        layer.kind in ("conv", "up_conv") and layer.conv_clamp is None for layer in spec.layers
    )


def stored_verdict(model: Model) -> bool | None:
    """Return what `exceeds_fp16` found of a network before; None if it has not looked, or that cannot be read."""
    return _read_verdict(_verdict_path(model))


def exceeds_fp16(runner: ModelRunner, model: Model, open_fp32: Callable[[], ModelRunner]) -> bool:
    """Return whether one of a few pictures in fp16 is not finite, or differs visibly from the same picture in fp32.

    Pictures are of the same latents for every network, without truncation. The verdict is stored in the cache folder,
    so that the next start renders none. Closes `runner` if the answer is yes, and if a picture fails.

    Parameters
    ----------
    runner
        Of the network in fp16.
    open_fp32
        Returns a runner of the network in fp32, which is closed here. If the device has too little memory for both,
        fp16 is taken to do.

    Raises
    ------
    DeviceError
        If the device fails.
    """
    if not may_exceed_fp16(model.spec):
        return False
    verdict = _verdict_path(model)
    try:
        is_beyond = _read_verdict(verdict)
        if is_beyond is None:
            is_beyond = _differs(runner, open_fp32, model)
            _store_verdict(verdict, is_beyond)
    except DeviceMemoryError:
        return False
    except BaseException:
        runner.close()
        raise
    if is_beyond:
        runner.close()
    return is_beyond


def _differs(runner: ModelRunner, open_fp32: Callable[[], ModelRunner], model: Model) -> bool:
    found = list(_pictures(runner, model))
    differ = _differ_as_shown if isinstance(model.spec, StyleGAN1Spec) else _differ
    with closing(open_fp32()) as wide:
        return any(differ(picture, expected) for picture, expected in zip(found, _pictures(wide, model), strict=True))


def _differ_as_shown(picture: NDArray[np.float32], expected: NDArray[np.float32]) -> bool:
    """Compare what is inside -1..1; normalisation bounds the rest."""
    is_near = np.abs(picture.clip(-1.0, 1.0) - expected.clip(-1.0, 1.0)) <= _MOST_SHOWN_DIFFERENCE  # not of NaN
    return bool(1.0 - is_near.mean() > _MOST_DIFFERING)


def _differ(picture: NDArray[np.float32], expected: NDArray[np.float32]) -> bool:
    most = float(np.abs(expected).max())
    # A network whose pictures are not finite in fp32 either gains nothing by it. NaN differs.
    return bool(np.isfinite(most)) and not np.abs(picture - expected).max() <= _MOST_DIFFERENCE * max(1.0, most)


def _pictures(runner: ModelRunner, model: Model) -> Iterator[NDArray[np.float32]]:
    mapping = model.spec.mapping
    z = np.random.default_rng(0).standard_normal((_LATENTS, mapping.z_dim), np.float32)
    labels = np.zeros((_LATENTS, mapping.c_dim), np.float32)
    labels[:, :1] = 1.0
    for latent, label in zip(z, labels, strict=True):
        w = runner.map(latent[None], label[None])
        ws = np.repeat(w[:, None], model.spec.num_ws, axis=1)
        run = runner.submit(runner.synthesis_key(1), ws, Noise(), outputs=(*FRAME_OUTPUTS, IMAGE_OUTPUT))
        yield np.array(runner.finish(run)[IMAGE_OUTPUT])


def _verdict_path(model: Model) -> Path:
    """Path of a network's verdict. The name depends on the sum of each weight: a changed network has another."""
    # Imported here: only the GPU's path needs a cache.
    from gpu_backend.cuda.compiling.kernel_cache import cache_folder

    with np.errstate(invalid="ignore"):  # infinities of both signs
        sums = [(name, float(np.sum(array, dtype=np.float64))) for name, array in sorted(model.weights.items())]
    digest = hashlib.sha256(json.dumps([_FORMAT, sums]).encode()).hexdigest()
    return cache_folder() / "fp16_range" / f"{digest[:32]}.json"


def _read_verdict(path: Path) -> bool | None:
    """Return a stored verdict; None if there is none, or it cannot be read."""
    with contextlib.suppress(OSError, LimitError, ValueError, RecursionError):
        found = json.loads(read_regular_file(path, _MOST_NBYTES, "a verdict"))
        return found if isinstance(found, bool) else None
    return None


def _store_verdict(path: Path, is_beyond: bool) -> None:
    """Store a verdict; one that cannot be written is found again at the next start."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(is_beyond).encode())


def wider_precision(architecture: str) -> Precision:
    """Return the fastest precision of a GPU with the range of fp32."""
    return "fp32" if architecture in _WITHOUT_TF32 else "tf32"

"""Make the bundled model: ``python packaging/make_model.py [file.safetensors]``.

Nothing is trained and nothing is drawn from pictures: the weights are worked out. The same bytes come each time.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "packaging")]

from bundled_model.mapping import LAYERS, LR_MULTIPLIER, W_DIM, Z_DIM  # noqa: E402
from bundled_model.network import tensors  # noqa: E402
from bundled_model.scene import CLAMP, WIDTHS  # noqa: E402

from gpu_backend.model.facts import FileFacts, facts_of  # noqa: E402
from gpu_backend.model.model import Model  # noqa: E402
from gpu_backend.model.safetensors_file import write_safetensors  # noqa: E402
from gpu_backend.model.spec import MappingSpec, StyleGAN2Spec  # noqa: E402
from gpu_backend.model.stylegan2 import num_ws_of, stylegan2_layers, tensor_shapes  # noqa: E402

DEFAULT = ROOT / "assets" / "models" / "loom-hills-256.safetensors"


def make_model(path: Path) -> None:
    """Write the model to `path`."""
    resolution = max(WIDTHS)
    spec = StyleGAN2Spec(
        family="stylegan2",
        architecture="skip",
        resolution=resolution,
        img_channels=3,
        num_ws=num_ws_of(resolution),
        mapping=MappingSpec(Z_DIM, 0, 0, (W_DIM,) * LAYERS, lr_multiplier=LR_MULTIPLIER),
        layers=stylegan2_layers("skip", WIDTHS, 3, conv_clamp=CLAMP),
    )
    made = tensors()
    weights = {}
    for name, shape in tensor_shapes(spec).items():
        # Half precision is what the file keeps; rounding first lets the digest below describe it.
        weights[name] = np.ascontiguousarray(made[name], dtype=np.float16).astype(np.float32).reshape(shape)
    digest = hashlib.sha256(b"".join(weights[name].tobytes() for name in sorted(weights))).hexdigest()
    nbytes = sum(array.size * 2 for array in weights.values())
    facts = facts_of(spec, FileFacts(path, nbytes, digest), container="made", flavour="written by make_model.py")
    write_safetensors(Model(spec, weights, facts), path, dtype="float16")


if __name__ == "__main__":
    make_model(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT)

"""Make the picture of the bundled model's sliders again: ``python packaging/slider_picture.py [file.jpg]``.

A row for each named direction, from its low end to its high one, all of the picture that a first session begins with.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from explorer_app.assets import BUNDLED_SEED, bundled_model  # noqa: E402
from gpu_backend import Renderer, read_model  # noqa: E402
from gpu_backend.training.directions.probe import pushed  # noqa: E402

DEFAULT = bundled_model().with_name("loom-landscapes-256-sliders.jpg")
PSI = 0.7
COLUMNS = 7
SMALLER = 2
SPACE_PX = 4


def take_picture(target: Path) -> None:
    """Render all sliders and write the sheet."""
    model = read_model(bundled_model())
    directions = model.directions
    if directions is None:
        raise SystemExit("The bundled model has no named directions beside it.")
    renderer = Renderer(model, "cpu")
    ws = renderer.map(np.random.RandomState(BUNDLED_SEED).randn(1, model.facts.z_dim), psi=PSI)
    side = model.facts.resolution // SMALLER
    step = side + SPACE_PX
    sheet = Image.new("RGB", (COLUMNS * step - SPACE_PX, len(directions.names) * step - SPACE_PX))
    columns = (directions.vectors, directions.rows, directions.centre, directions.reach)
    for row, (vector, rows, centre, reach) in enumerate(zip(*columns, strict=True)):
        for column, amount in enumerate(np.linspace(centre - reach, centre + reach, COLUMNS)):
            image = renderer.synthesize(pushed(ws, amount * vector, rows))[0].transpose(1, 2, 0)
            pixels = np.clip(image * 127.5 + 128, 0, 255).astype(np.uint8)
            small = Image.fromarray(pixels).resize((side, side), Image.Resampling.BOX)
            sheet.paste(small, (column * step, row * step))
    renderer.close()
    sheet.save(target, quality=88)


if __name__ == "__main__":
    take_picture(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT)

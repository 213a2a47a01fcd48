"""Write what the very first start shows before the bundled model is read: its facts and its first picture.

    python packaging/make_first_start.py

Run it after replacing the bundled model or `BUNDLED_SEED`; `tests/test_bundled_model.py` tells when it is due.
"""

from __future__ import annotations

from dataclasses import replace

from PIL import Image

from explorer_app.assets import BUNDLED_SEED, bundled_model
from explorer_app.controller.known_model import KnownModel, known_to_json
from explorer_app.controller.last_start import SHIPPED_MODEL, SHIPPED_PICTURE
from explorer_app.session.adapting import adapt
from explorer_app.session.edits import GoToSeed
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Session
from gpu_backend import Renderer, read_model


def main() -> None:
    """Open the model, render its first session, write the two files beside it."""
    path = bundled_model()
    with Renderer(read_model(path), "cpu") as renderer:
        known = replace(KnownModel.of(renderer.facts, renderer.directions), mtime_ns=0)
        session = adapt(GoToSeed(BUNDLED_SEED).apply(Session()), renderer.facts).session
        frame = renderer.render(resolve(session))
    # Where the model lies is another place on every machine.
    known = replace(known, facts=replace(known.facts, path=path.name))
    path.with_suffix(SHIPPED_MODEL).write_bytes(known_to_json(known))
    Image.fromarray(frame.to_rgb()).save(path.with_suffix(SHIPPED_PICTURE), quality=92)


if __name__ == "__main__":
    main()

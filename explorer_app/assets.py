"""Data that comes with the program: the bundled model and the fonts of the window."""

from __future__ import annotations

from pathlib import Path

from gpu_backend import ModelFileError

_PACKAGE = Path(__file__).resolve().parent

_PLACES = (_PACKAGE / "_assets", _PACKAGE.parent / "assets")
"""In an installed package, and in a checkout."""

BUNDLED_SEED = 38
"""Where a first session on the bundled model begins: a snowy mountain at noon in autumn, with a meadow and firs to its
left, mountains over a lake to its right and snow by the water below. Chosen by eye; look again when the model is
trained again."""


def bundled_model() -> Path:
    """Return the model file that comes with the program.

    Raises
    ------
    ModelFileError
        If the installation lacks it.
    """
    for place in _PLACES:
        # Its named directions are beside it, in a file of the same kind.
        models = place / "models"
        found = sorted(set(models.glob("*.safetensors")) - set(models.glob("*.*.safetensors")))
        if found:
            return found[0]
    raise ModelFileError(
        "The bundled model is missing from this installation; install Latent Loom again or name a model."
    )


def font_files() -> tuple[Path, ...]:
    """Return the fonts of the window, none where the installation lacks them."""
    for place in _PLACES:
        found = tuple(sorted((place / "fonts").glob("*.ttf")))
        if found:
            return found
    return ()


def icon_outlines() -> Path:
    """Return the file with the outlines of the window's icons."""
    paths = [place / "icons" / "phosphor.json" for place in _PLACES]
    return next((path for path in paths if path.exists()), paths[-1])

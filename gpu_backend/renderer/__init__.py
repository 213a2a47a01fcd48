"""A model that answers requests with frames.

The story of `Renderer.submit` and of the PendingFrame that it returns::

    request -> checks                  a RequestError says what does not fit, before anything is computed
            -> anchors -> w rows       latent/; what was mapped lately is kept
            -> plan of the key, run    model_runner.py: built once, run many times; noise copied in only when it changed
    wait    -> Frame                   owns its bytes

`Renderer.render` is both. On a GPU up to two frames may be on their way at once; on the CPU `submit` does all the work.
"""

from typing import TYPE_CHECKING

from gpu_backend.lazy_names import lazy_names

if TYPE_CHECKING:
    from gpu_backend.renderer.renderer import (
        PLAN_BUDGET_NBYTES as PLAN_BUDGET_NBYTES,
        Renderer as Renderer,
        open_renderer as open_renderer,
    )

__getattr__, __dir__ = lazy_names(__name__, {"renderer": ("PLAN_BUDGET_NBYTES", "Renderer", "open_renderer")})

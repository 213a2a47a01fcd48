"""The renderer: requests to frames.

Stages of `Renderer.submit` and of the PendingFrame that it returns::

    request -> checks                  RequestError before anything is computed
            -> anchors -> w rows       latent/; recently mapped anchors are cached
            -> plan of the key, run    model_runner.py: built once, run many times; noise copied only when it changed
    wait    -> Frame                   owns its pixels

`Renderer.render` does both. On a GPU up to two frames are in flight; on the CPU `submit` does all the work.
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

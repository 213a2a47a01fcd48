"""Collections are off within a block, and on again after the outermost one."""

import gc

from gpu_backend.garbage import without_collections


def test_python_s_own_collections_are_switched_on_again_where_they_were() -> None:
    was_on = gc.isenabled()
    gc.enable()
    try:
        with without_collections():
            assert not gc.isenabled()
            with without_collections():
                pass
            assert not gc.isenabled()
        assert gc.isenabled()
    finally:
        if not was_on:
            gc.disable()
